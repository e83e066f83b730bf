package txmgr

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// RefreshBalances reads the balances of wallets at the newest block and stores them, ending the
// reservations that the block fulfils. Without parties it reads every row of the network.
// fault.Unsupported: the driver cannot read balances. fault.Unavailable: the node gave no full answer.
func (o *Manager) RefreshBalances(ctx context.Context, network string, parties ...chain.Party) error {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return err
	}

	if _, ok := driver.(chain.CoinReader); ok {
		return o.sumCoins(ctx, driver.Network(), parties)
	}

	balancer, ok := driver.(chain.Balancer)
	if !ok {
		return balancesUnsupported(network)
	}

	rows, err := o.balanceRows(ctx, driver.Network(), parties)
	if err != nil || len(rows) == 0 {
		return err
	}

	holdings := make([]chain.Holding, len(rows))
	for i, b := range rows {
		holdings[i] = chain.Holding{Address: b.Address, AssetID: b.AssetID}
	}

	head, err := driver.Head(ctx)
	if err != nil {
		return err
	}

	amounts, err := balancer.Balances(ctx, head.Tip, holdings)
	if err != nil && !isDisputed(err) {
		return err
	}

	if len(amounts) != len(holdings) {
		return balancesIncomplete(network, len(amounts), len(holdings))
	}

	if err != nil {
		o.config.Log.WarnContext(
			ctx, "balances stay as they are on record", "network", network, "error", publicText(err),
		)

		rows, holdings, amounts = withoutDisputed(err, rows, holdings, amounts)
	}

	changed := false
	for i, b := range rows {
		changed = changed || differs(b, head.Tip, amounts[i])
	}

	if !changed {
		return nil // stored by another process, or of the same block
	}

	return o.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		return putBalancesTx(ctx, tx, network, head.Tip, holdings, amounts)
	})
}

// isDisputed reports whether balances are unreadable only as nodes say something else of each.
func isDisputed(err error) bool {
	unreadable, ok := errors.AsType[*chain.UnreadableError](err)

	return ok && !slices.ContainsFunc(unreadable.Holdings, func(u chain.UnreadableHolding) bool {
		return fault.Code(u.Err) != "nodes_disagree"
	})
}

// withoutDisputed returns what of a reading nodes agree about.
func withoutDisputed(
	err error,
	rows []wallet.Balance,
	holdings []chain.Holding,
	amounts []chain.Amount,
) (agreedRows []wallet.Balance, agreedHoldings []chain.Holding, agreedAmounts []chain.Amount) {
	unreadable, _ := errors.AsType[*chain.UnreadableError](err)

	disputed := map[int]bool{}
	for _, u := range unreadable.Holdings {
		disputed[u.Index] = true
	}

	for i := range rows {
		if !disputed[i] {
			agreedRows = append(agreedRows, rows[i])
			agreedHoldings = append(agreedHoldings, holdings[i])
			agreedAmounts = append(agreedAmounts, amounts[i])
		}
	}

	return agreedRows, agreedHoldings, agreedAmounts
}

// differs reports whether an amount (base units) read at a block changes a row.
func differs(row wallet.Balance, at chain.Ref, amount chain.Amount) bool {
	updated := row

	return walletstate.UpdateBalance(&updated, at, amount) && !isSameBalance(row, updated)
}

// isSameBalance reports whether a balance that was read again is what it was.
func isSameBalance(was, is wallet.Balance) bool {
	return was.At.Hash == is.At.Hash && was.OnChain == is.OnChain &&
		len(was.Reservations) == len(is.Reservations)
}

// BalanceRead returns what an address held after the newest block that was read, in base units.
//
// fault.Unsupported: the driver cannot read balances. fault.Unavailable: no block was read, or no node has its state.
func (o *Manager) BalanceRead(ctx context.Context, network string, of chain.Holding) (chain.Amount, error) {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return chain.Amount{}, err
	}

	balancer, ok := driver.(chain.Balancer)
	if !ok {
		return chain.Amount{}, balancesUnsupported(network)
	}

	cursor, _, err := o.db.Cursor(ctx, network)
	if err != nil {
		return chain.Amount{}, err
	}

	if cursor.At.IsZero() {
		return chain.Amount{}, fault.New(
			fault.Unavailable,
			"not_read",
			"no block of network %s was read yet",
			network,
		)
	}

	amounts, err := balancer.Balances(ctx, cursor.At, []chain.Holding{of})
	if unreadable := (*chain.UnreadableError)(nil); errors.As(err, &unreadable) {
		return chain.Amount{}, fault.Wrap(
			err,
			fault.Unavailable,
			"balance_unreadable",
			"the token does not answer for what %s holds",
			of.Address,
		)
	}

	if err != nil {
		return chain.Amount{}, err
	}

	if len(amounts) != 1 {
		return chain.Amount{}, balancesIncomplete(network, len(amounts), 1)
	}

	return amounts[0], nil
}

func balancesUnsupported(network string) error {
	return fault.New(
		fault.Unsupported, "balances_unsupported",
		"the driver of network %s cannot read balances",
		network,
	)
}

func balancesIncomplete(network string, got, asked int) error {
	return fault.New(
		fault.Unavailable, "balances_incomplete",
		"the driver of network %s answered %d of %d balances",
		network, got, asked,
	)
}

// HasBalances reports whether a network's balances can be read from the node or summed up from coins.
func (o *Manager) HasBalances(network string) bool {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return false
	}

	_, reads := driver.(chain.Balancer)
	_, coins := driver.(chain.CoinReader)

	return reads || coins
}

// balanceRows returns the balance rows of a network, or a new one for every asset of the parties' addresses.
// Sorted by address and asset, to avoid deadlock.
func (o *Manager) balanceRows(
	ctx context.Context,
	n chain.Network,
	parties []chain.Party,
) (rows []wallet.Balance, err error) {
	for _, p := range parties {
		for _, a := range n.Assets {
			rows = append(rows, wallet.Balance{Address: p.Address, AssetID: a.ID})
		}
	}

	if len(parties) == 0 {
		rows, err = o.db.BalancesOf(ctx, n.Slug)
	}

	slices.SortFunc(rows, func(a, b wallet.Balance) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.AssetID, b.AssetID))
	})

	return rows, err
}

// putBalancesTx stores amounts (base units) read at a block, one per holding. A row that was read at a
// higher block stays.
func putBalancesTx(
	ctx context.Context,
	tx wallet.Tx,
	network string,
	at chain.Ref,
	holdings []chain.Holding,
	amounts []chain.Amount,
) error {
	for i, h := range holdings {
		b, found, err := tx.BalanceForUpdate(ctx, network, h.Address, h.AssetID)
		if err != nil {
			return err
		}

		if !found {
			b = wallet.Balance{Network: network, Address: h.Address, AssetID: h.AssetID}
		}

		was := b
		if !walletstate.UpdateBalance(&b, at, amounts[i]) || found && isSameBalance(was, b) {
			continue
		}

		if err := tx.PutBalance(ctx, &b); err != nil {
			return err
		}
	}

	return nil
}
