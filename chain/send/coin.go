package send

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Coins are the nonces of networks that spend outputs: each has one transaction of ours at most, from when its bytes are
// stored until one of its attempts is final or all are dead.

// coinsOf returns the coins that a transaction holds, and those that nobody does.
func (d *desk) coinsOf(ctx context.Context, t Transaction) ([]chain.Coin, error) {
	coins, err := d.db.Coins(ctx, t.Network, d.party.Address)
	if err != nil {
		return nil, &storeError{err}
	}
	var out []chain.Coin
	for _, c := range coins {
		if c.SpentBy == "" && (c.ReservedBy == t.ID || c.ReservedBy == "") {
			out = append(out, c.Coin)
		}
	}
	return out, nil
}

// takeCoinsTx reserves the coins that signed bytes spend.
func (d *desk) takeCoinsTx(ctx context.Context, tx Tx, t Transaction, inputs []chain.Outpoint) error {
	if len(inputs) == 0 {
		return nil
	}
	coins, err := tx.Coins(ctx, t.Network, d.party.Address)
	if err != nil {
		return err
	}
	for _, in := range inputs {
		i := slices.IndexFunc(coins, func(c Coin) bool { return c.Outpoint == in })
		if i < 0 {
			return fault.New(fault.State, "coin_unknown", "output %s:%d is not a coin of %s; transaction %s is built again", in.TxHash, in.Vout, d.party.Address, t.ID)
		}
		c := coins[i]
		if c.ReservedBy == t.ID {
			continue
		}
		if c.ReservedBy != "" && (t.Kind != Cancel || c.ReservedBy != t.ObjectID) {
			return fault.New(fault.State, "coin_taken", "output %s:%d is reserved by %s; transaction %s is built again", in.TxHash, in.Vout, c.ReservedBy, t.ID)
		}
		if t.Kind == Cancel {
			continue // stays with what is displaced, until one of both is final
		}
		c.ReservedBy = t.ID
		if err := tx.PutCoin(ctx, &c); err != nil {
			return err
		}
	}
	return nil
}

// settleCoinsTx marks the coins of a confirmed transaction as spent, and frees those of a failed one.
func (d *desk) settleCoinsTx(ctx context.Context, tx Tx, t Transaction) error {
	if len(t.Attempts) == 0 || len(t.last().Signed.Inputs) == 0 {
		return nil
	}
	spent := map[chain.Outpoint]bool{}
	if i := t.attempt(t.TxHash); t.State == Confirmed && i >= 0 {
		for _, in := range t.Attempts[i].Signed.Inputs {
			spent[in] = true
		}
	}
	coins, err := tx.Coins(ctx, t.Network, t.Order.From.Address)
	if err != nil {
		return err
	}
	for _, c := range coins {
		switch {
		case spent[c.Outpoint]:
			c.SpentBy = t.TxHash
		case c.ReservedBy == t.ID:
			c.ReservedBy = ""
		default:
			continue
		}
		if err := tx.PutCoin(ctx, &c); err != nil {
			return err
		}
	}
	return nil
}

// sharesCoin reports whether some output is spent by all the attempts and by next, so that at most one of them can ever be
// included.
func sharesCoin(attempts []Attempt, next []chain.Outpoint) bool {
	for _, coin := range next {
		all := true
		for _, a := range attempts {
			found := false
			for _, in := range a.Signed.Inputs {
				found = found || in == coin
			}
			all = all && found
		}
		if all {
			return true
		}
	}
	return false
}
