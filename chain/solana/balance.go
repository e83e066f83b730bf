package solana

import (
	"context"
	"errors"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// place is where a holding is kept: the owner's own account, or its associated token account.
type place struct {
	key  solanago.PublicKey
	mint *mint // nil for the native coin
}

func (d *Driver) placeOf(h chain.Holding) (place, error) {
	owner, err := parseKey(string(h.Address))
	if err != nil {
		return place{}, err
	}

	if h.AssetID == d.native.ID {
		return place{key: owner}, nil
	}

	m, ok := d.mintOf(h.AssetID)
	if !ok {
		return place{}, fault.New(
			fault.Invalid, "asset_unknown", "network %s has no asset with id %q",
			d.network.Slug, h.AssetID,
		)
	}

	account, err := m.accountOf(owner)

	return place{key: account, mint: &m}, err
}

// amount reads what an account holds; 0 for one that does not exist or, being no token account of
// the mint, holds no tokens.
func (p place) amount(a *accountInfo) uint64 {
	if a == nil {
		return 0
	}

	if p.mint == nil {
		return a.Lamports
	}

	t, err := readTokenAccount(a, *p.mint)
	if err != nil {
		return 0
	}

	return t.amount
}

// change returns what an account held before and after a transaction; named is false when the
// transaction does not name it.
func (p place) change(x executed) (before, after uint64, named bool) {
	at := slices.Index(x.keys, p.key)
	if at < 0 {
		return 0, 0, false
	}

	if p.mint == nil {
		return x.meta.PreBalances[at], x.meta.PostBalances[at], true
	}

	tokens := func(balances []tokenBalance) uint64 {
		for _, b := range balances {
			if b.AccountIndex == at && b.Mint == p.mint.key.String() {
				return uint64(b.Amount.Digits)
			}
		}

		return 0
	}

	return tokens(x.meta.PreTokenBalances), tokens(x.meta.PostTokenBalances), true
}

// Balances returns the balances after a block. Nodes only tell those of their newest block, so what
// came later is undone: the balance is what the first later transaction that names the account
// found there.
func (d *Driver) Balances(
	ctx context.Context,
	at chain.Ref,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	places := make([]place, len(holdings))
	for i, h := range holdings {
		var err error
		if places[i], err = d.placeOf(h); err != nil {
			return nil, err
		}
	}

	if len(holdings) == 0 && ctx.Err() == nil {
		return nil, nil
	}

	amounts := make([]chain.Amount, len(holdings))

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		h, err := d.headerAt(ctx, e, at.Height)
		if err != nil {
			return err
		}

		if h.Hash != at.Hash {
			return e.Garbled("its block %d is %s, not %s", at.Height, h.Hash, at.Hash)
		}

		keys := make([]solanago.PublicKey, len(places))
		for i, p := range places {
			keys[i] = p.key
		}

		now, slot, err := e.accounts(ctx, keys, h.slot)
		if err != nil {
			return err
		}

		return e.each(ctx, len(places), func(ctx context.Context, i int) error {
			amount := places[i].amount(now[i])

			var err error
			if slot > h.slot {
				amount, err = d.amountAfter(ctx, e, places[i], h.slot, slot, amount)
			}

			amounts[i] = chain.Units(amount)

			return err
		})
	})
	if err != nil {
		if errors.Is(err, fault.Stopped) && fault.Code(err) == "node_pruned" {
			err = fault.Wrap(
				err, fault.Unavailable, "node_pruned", "no node of network %s has block %d",
				d.network.Slug, at.Height,
			)
		}

		return nil, err
	}

	return amounts, nil
}

// amountAfter returns what an account held after a slot, holding amount at a later one.
func (d *Driver) amountAfter(
	ctx context.Context,
	e *endpoint,
	p place,
	slot, now, amount uint64,
) (uint64, error) {
	later, _, err := e.signatures(ctx, p.key.String(), slot+1, now)
	if err != nil || len(later) == 0 {
		return amount, err
	}

	first := later[len(later)-1]

	f, err := d.lookUp(ctx, e, first.Signature)
	if err != nil {
		return 0, err
	}

	before, _, named := p.change(f.executed)
	if named {
		return before, nil
	}

	return 0, e.Garbled(
		"transaction %s is listed for account %s and does not name it",
		first.Signature, p.key,
	)
}
