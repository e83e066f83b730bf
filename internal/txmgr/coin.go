package txmgr

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// On networks that spend outputs, coins serve the purpose of nonces. At most one transaction of ours reserves
// a coin, from the storing of its bytes until one attempt is final or all are dead. utxoindex.go records
// which coins exist.

// compareOutpoints orders outpoints by hash and index.
func compareOutpoints(a, b chain.Outpoint) int {
	return cmp.Or(cmp.Compare(a.TxHash, b.TxHash), cmp.Compare(a.Vout, b.Vout))
}

// coinsAt returns the coins of ours among outpoints, ordered by outpoint.
func coinsAt(
	ctx context.Context,
	r wallet.Reader,
	network string,
	outpoints []chain.Outpoint,
) ([]wallet.Coin, error) {
	hashes := make([]string, len(outpoints))
	for i, o := range outpoints {
		hashes[i] = o.TxHash
	}

	slices.Sort(hashes)

	coins, err := r.CoinsOf(ctx, network, slices.Compact(hashes))
	if err != nil {
		return nil, err
	}

	coins = slices.DeleteFunc(
		coins, func(c wallet.Coin) bool { return !slices.Contains(outpoints, c.Outpoint) },
	)
	slices.SortFunc(coins, func(a, b wallet.Coin) int { return compareOutpoints(a.Outpoint, b.Outpoint) })

	return coins, nil
}

// reserveCoinsTx reserves the coins that signed bytes spend. A coin that is unknown, reserved by another
// transaction or spent is fault.State with code coin_unknown, coin_taken or coin_spent.
func (d *walletWorker) reserveCoinsTx(
	ctx context.Context,
	tx wallet.Tx,
	t wallet.Transaction,
	inputs []chain.Outpoint,
) error {
	if len(inputs) == 0 {
		return nil
	}

	coins, err := coinsAt(ctx, tx, t.Network, inputs)
	if err != nil {
		return err
	}

	for _, in := range inputs {
		i := slices.IndexFunc(coins, func(c wallet.Coin) bool { return c.Outpoint == in })
		if i < 0 {
			return fault.New(
				fault.State, "coin_unknown",
				"output %s:%d is no coin of ours; transaction %s is built again",
				in.TxHash, in.Vout, t.ID,
			)
		}

		c := coins[i]
		switch {
		case reservedFor(c, t):
			// the displaced transaction keeps the reservation of its cancel's coins, until one of them is
			// final
			continue
		case c.ReservedBy != "":
			return fault.New(
				fault.State, "coin_taken",
				"output %s:%d is reserved by %s; transaction %s is built again",
				in.TxHash, in.Vout, c.ReservedBy, t.ID,
			)
		case c.SpentBy != "":
			return fault.New(
				fault.State, "coin_spent",
				"output %s:%d is spent by %s; transaction %s is built again",
				in.TxHash, in.Vout, c.SpentBy, t.ID,
			)
		}

		c.ReservedBy = t.ID
		if err := tx.PutCoin(ctx, &c); err != nil {
			return err
		}
	}

	return nil
}

// releaseCoinsTx ends the reservations of a transaction that is over. It releases all coins of a failed
// transaction. Of a confirmed one, it releases the coins that only the other attempts spend; the confirmed
// attempt keeps its own.
func (d *walletWorker) releaseCoinsTx(ctx context.Context, tx wallet.Tx, t wallet.Transaction) error {
	winner := -1
	if t.State == wallet.Confirmed {
		winner = walletstate.AttemptIndex(&t, t.TxHash)
	}

	var unused []chain.Outpoint

	for i, a := range t.Attempts {
		if i == winner {
			continue
		}

		for _, in := range a.Signed.Inputs {
			if winner < 0 || !slices.Contains(t.Attempts[winner].Signed.Inputs, in) {
				unused = append(unused, in)
			}
		}
	}

	if len(unused) == 0 {
		return nil
	}

	coins, err := coinsAt(ctx, tx, t.Network, unused)
	if err != nil {
		return err
	}

	for _, c := range coins {
		if c.ReservedBy != t.ID {
			continue
		}

		c.ReservedBy = ""
		if err := tx.PutCoin(ctx, &c); err != nil {
			return err
		}
	}

	return nil
}

// sharesCoin reports whether all attempts and next spend a common output, so that at most one of them can
// be included.
func sharesCoin(attempts []wallet.Attempt, next []chain.Outpoint) bool {
	for _, coin := range next {
		all := true
		for _, a := range attempts {
			all = all && slices.Contains(a.Signed.Inputs, coin)
		}

		if all {
			return true
		}
	}

	return false
}
