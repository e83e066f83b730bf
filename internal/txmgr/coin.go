package txmgr

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// Coins are the nonces of networks that spend outputs: each has one transaction of ours at most,
// from when its bytes are stored until one of its attempts is final or all are dead. book.go keeps
// which coins there are.

// maxDepth is how many waiting transactions of ours a coin may rest on: nodes keep chains of 25
// (decisions part 5).
const maxDepth = 20

func compareOutpoints(a, b chain.Outpoint) int {
	return cmp.Or(cmp.Compare(a.TxHash, b.TxHash), cmp.Compare(a.Vout, b.Vout))
}

// offered returns the coins that the bytes of a transaction may spend: those it holds already (as
// does the one that it displaces), and those that nobody holds. An order that names its coins gets
// no others.
func (d *walletWorker) spendableCoins(ctx context.Context, t wallet.Transaction) ([]chain.Coin, error) {
	coins, err := d.candidateCoins(ctx, t)
	if err != nil {
		return nil, &storeError{err}
	}

	var out []chain.Coin

	for _, c := range coins {
		if c.SpentBy == "" && (c.ReservedBy == "" && spendable(c, t) || reservedFor(c, t)) {
			out = append(out, c.Coin)
		}
	}

	return out, nil
}

func (d *walletWorker) candidateCoins(ctx context.Context, t wallet.Transaction) ([]wallet.Coin, error) {
	if len(t.Order.Coins) == 0 {
		return d.db.Coins(ctx, t.Network, d.party.Address)
	}

	named := make([]chain.Outpoint, len(t.Order.Coins))
	for i, c := range t.Order.Coins {
		named[i] = c.Outpoint
	}

	return coinsAt(ctx, d.db, t.Network, named)
}

// reservedFor reports whether the coin is reserved for a transaction, or for the one that it displaces.
func reservedFor(c wallet.Coin, t wallet.Transaction) bool {
	return c.ReservedBy != "" &&
		(c.ReservedBy == t.ID || t.Kind == wallet.Cancel && c.ReservedBy == t.ObjectID)
}

// spendable reports whether a coin may be spent anew: one in a block, or change of ours that does not
// rest on too many waiting transactions. A release moves what is in blocks, and a lift rests on one
// transaction only.
func spendable(c wallet.Coin, t wallet.Transaction) bool {
	return c.Height > 0 ||
		len(t.Order.Coins) == 0 && t.Order.Bumps == nil && c.Depth > 0 && c.Depth <= maxDepth
}

// coinsAt returns the coins of ours among outputs, in their order.
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

// reserveCoinsTx reserves the coins that signed bytes spend.
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
			// what a cancelling transaction spends stays with what it displaces, until one of both is final
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

// releaseCoinsTx lets go of the coins of a transaction that is over: all of a failed one, and of a
// confirmed one those that only its other attempts spend. What a confirmed one spends stays
// reserved for it, however far the blocks are booked.
func (d *walletWorker) releaseCoinsTx(ctx context.Context, tx wallet.Tx, t wallet.Transaction) error {
	winner := -1
	if t.State == wallet.Confirmed {
		winner = t.AttemptIndex(t.TxHash)
	}

	var held []chain.Outpoint

	for i, a := range t.Attempts {
		if i == winner {
			continue
		}

		for _, in := range a.Signed.Inputs {
			if winner < 0 || !slices.Contains(t.Attempts[winner].Signed.Inputs, in) {
				held = append(held, in)
			}
		}
	}

	if len(held) == 0 {
		return nil
	}

	coins, err := coinsAt(ctx, tx, t.Network, held)
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

// sharesCoin reports whether some output is spent by all the attempts and by next, so that at most
// one of them can ever be included.
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
