package solana

import (
	"context"
	"encoding/json"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// draft is Unsigned.Raw: the message that is signed, and until when it can be included.
type draft struct {
	// Message is the legacy message in its wire form.
	Message []byte `json:"message"`
	// ValidToHeight is the last block height that may hold it.
	ValidToHeight uint64 `json:"valid_to_height"`
}

// Build makes a transaction that pays all outputs of an order, native coin or one token, on the
// newest finalized blockhash: a younger one could leave the chain, and the transaction with it.
// Token accounts that a destination lacks are made and paid for by the fee payer. A transfer fee of
// the token is put on top, so that the amount arrives.
//
// An order to close is carried out where it empties a token account: the rent returns to whoever
// paid it; where that cannot be found out, the account stays. One that would leave less than the
// rent minimum of coin, since more arrived than it was planned for, pays the last output less by
// what is missing.
func (d *Driver) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	s, err := d.spendOf(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	var u chain.Unsigned

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		s := s

		s.payments = slices.Clone(s.payments)
		if err := d.survey(ctx, e, &s); err != nil {
			return err
		}

		if err := d.closing(ctx, e, &s); err != nil {
			return err
		}

		price, err := d.price(ctx, e, &s)
		if err != nil {
			return err
		}

		limit := s.limit()
		if price, err = s.affordable(price, limit); err != nil {
			return err
		}

		if err := d.settleAmounts(&s, s.feeAt(price, limit)); err != nil {
			return err
		}

		blockhash, validTo, err := e.blockhash(ctx)
		if err != nil {
			return err
		}

		u, err = s.unsigned(price, limit, blockhash, validTo)

		return err
	})

	return u, err
}

// settleAmounts takes the fee out of the last output where the order wants that, and makes sure
// that everything can be paid.
func (d *Driver) settleAmounts(s *spend, fee uint64) error {
	if s.order.SubtractFee {
		last := &s.payments[len(s.payments)-1]
		if s.order.Close {
			var paid chain.Amount
			for _, p := range s.payments {
				paid = paid.Add(chain.Units(p.amount))
			}

			last.amount -= min(last.amount, s.missing(paid, false))
		}

		if last.amount <= fee {
			return fault.New(
				fault.State, "insufficient_funds",
				"the %d lamports to send do not exceed the network fee of %d",
				last.amount, fee,
			)
		}

		last.amount -= fee
		last.Amount = chain.Units(last.amount)
	}

	return s.judge(d.native, fee)
}

// blockhash returns the newest finalized blockhash and the last height at which it can be used.
func (e *endpoint) blockhash(ctx context.Context) (solanago.Hash, uint64, error) {
	final := map[string]any{"commitment": "finalized"}

	var height uint64
	if err := e.call(ctx, &height, "getBlockHeight", final); err != nil {
		return solanago.Hash{}, 0, err
	}

	var latest struct {
		Value struct {
			Hash    string `json:"blockhash"`
			ValidTo uint64 `json:"lastValidBlockHeight"`
		} `json:"value"`
	}
	if err := e.call(ctx, &latest, "getLatestBlockhash", final); err != nil {
		return solanago.Hash{}, 0, err
	}

	hash, err := solanago.HashFromBase58(latest.Value.Hash)
	// A transaction counts as expired once this height is final, so a node must not make it up.
	if err != nil || latest.Value.ValidTo < height+blockhashAge ||
		latest.Value.ValidTo > height+4*blockhashAge {
		return solanago.Hash{}, 0, e.Garbled(
			"its blockhash %q can be used up to height %d, and its final height is %d",
			e.Clean(latest.Value.Hash), latest.Value.ValidTo, height,
		)
	}

	return hash, latest.Value.ValidTo, nil
}

// blockhashAge is for how many blocks a blockhash can be used. Source: Agave, MAX_PROCESSING_AGE.
const blockhashAge = 150

// unsigned writes the message.
func (s *spend) unsigned(
	price, limit uint64,
	blockhash solanago.Hash,
	validTo uint64,
) (chain.Unsigned, error) {
	tx, err := solanago.NewTransaction(
		s.instructions(price, limit), blockhash, solanago.TransactionPayer(s.payer),
	)
	if err != nil {
		return chain.Unsigned{}, fault.Wrap(
			err, fault.Invalid, "order_invalid",
			"the order from %s cannot be written as a transaction",
			s.from,
		)
	}

	message, err := tx.Message.MarshalBinary()
	if err == nil && 1+64*int(tx.Message.Header.NumRequiredSignatures)+len(message) > maxTransaction {
		err = errMalformed
	}

	if err != nil {
		return chain.Unsigned{}, fault.Wrap(
			err, fault.Unsupported, "order_unsupported",
			"the order from %s pays %d outputs, more than fit into one transaction",
			s.from, len(s.payments),
		)
	}

	raw, err := json.Marshal(draft{message, validTo})
	if err != nil {
		return chain.Unsigned{}, err
	}

	u := chain.Unsigned{Raw: raw, MaxFee: chain.Units(s.feeAt(price, limit)).Add(chain.Units(s.rent))}
	if s.payer != s.from {
		u.Payloads = append(u.Payloads, chain.Payload{Key: s.order.FeePayer.Key, Data: message})
	}

	u.Payloads = append(u.Payloads, chain.Payload{Key: s.order.From.Key, Data: message})
	for _, p := range s.payments {
		u.Outputs = append(u.Outputs, p.Output)
	}

	return u, nil
}

// maxTransaction is the most bytes of a transaction. Source: solana.com/docs/core/transactions.
const maxTransaction = 1232

func (s *spend) instructions(price, limit uint64) []solanago.Instruction {
	list := []solanago.Instruction{setComputeUnitLimit(uint32(limit))}
	if price > 0 {
		list = append(list, setComputeUnitPrice(price))
	}

	for _, p := range s.payments {
		if p.mint == nil {
			list = append(list, transferCoin(s.from, p.to, p.amount))
			continue
		}

		if p.create {
			list = append(list, createTokenAccount(s.payer, p.account, p.to, *p.mint))
		}

		list = append(list, transferTokens(s.source, p.account, s.from, *p.mint, p.gross, p.fee, p.hasFee))
	}

	if s.refund != nil {
		if s.payments[0].hasFee {
			list = append(list, harvestFees(s.source, *s.sourceMint))
		}

		list = append(list, closeTokenAccount(s.source, *s.refund, s.from, *s.sourceMint))
	}

	return list
}
