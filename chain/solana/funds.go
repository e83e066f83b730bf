package solana

import (
	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// checkFunds returns fault.State when sender or payer cannot pay, with a network fee in lamports.
func (b *txBuilder) checkFunds(native chain.Asset, fee uint64) error {
	var coin, tokens chain.Amount

	for _, p := range b.payments {
		if p.mint == nil {
			coin = coin.Add(chain.Units(p.amount))
		} else {
			tokens = tokens.Add(chain.Units(p.gross))
		}
	}

	if b.sourceMint != nil {
		if err := b.checkTokens(tokens); err != nil {
			return err
		}
	}

	due := map[solanago.PublicKey]chain.Amount{}
	due[b.from] = coin
	due[b.payer] = due[b.payer].Add(chain.Units(fee)).Add(chain.Units(b.rent))

	for account, balance := range map[solanago.PublicKey]uint64{b.from: b.coin, b.payer: b.payerCoin} {
		needed := due[account]
		if needed.IsZero() {
			continue
		}

		remaining := chain.Units(balance).SubFloor(needed)
		belowRent := !remaining.IsZero() && remaining.Less(chain.Units(b.minBalance))

		if chain.Units(balance).Less(needed) || belowRent {
			return fault.New(
				fault.State, "insufficient_funds",
				"%s holds %d base units of %s, %s are needed, and what is left must be nothing or at "+
					"least the rent minimum of %d",
				account, balance, native.Symbol, needed, b.minBalance,
			)
		}
	}

	return nil
}

// checkTokens returns fault.State when the source is frozen or holds less than the amount, in base units.
func (b *txBuilder) checkTokens(needed chain.Amount) error {
	if b.held.frozen {
		return fault.New(
			fault.State, "wallet_frozen", "the token account %s is frozen by the issuer of %s",
			b.source, b.sourceMint.Symbol,
		)
	}

	if shown, _ := needed.Uint64(); chain.Units(b.held.amount).Less(needed) {
		return fault.New(
			fault.State, "insufficient_funds", "%s holds %d base units of %s, %d are needed",
			b.from, b.held.amount, b.sourceMint.Symbol, shown,
		)
	}

	return nil
}

// rentShortfall returns the lamports by which to reduce a planned payment, so that the sender's account
// keeps nothing or the rent minimum. With keepOpen it keeps the rent minimum.
func (b *txBuilder) rentShortfall(planned chain.Amount, keepOpen bool) uint64 {
	remaining, _ := chain.Units(b.coin).SubFloor(planned).Uint64() // at most coin, so it fits
	if remaining == 0 && !keepOpen {
		return 0
	}

	return b.minBalance - min(b.minBalance, remaining)
}
