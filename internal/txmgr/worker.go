package txmgr

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// Step takes up one batch of due transactions of a network and moves each as far as it goes now:
// signs it, hands it to the network, looks it up, replaces it. did is false when nothing was due.
// What goes wrong with one transaction delays that one and is logged; the error is the store's or
// the context's.
func (o *Manager) Step(ctx context.Context, network string) (did bool, err error) {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return false, err
	}

	sender, ok := driver.(chain.Sender)
	if !ok {
		return false, nil
	}

	due, err := o.db.DueTransactions(ctx, network, o.now(), o.config.Batch)
	if err != nil {
		return false, err
	}

	for len(due) > 0 {
		from := due[0].Order.From.Address

		var mine, others []wallet.Transaction

		for _, t := range due {
			if t.Order.From.Address == from {
				mine = append(mine, t)
			} else {
				others = append(others, t)
			}
		}

		worked, err := o.workWallet(ctx, driver, sender, mine)

		did = did || worked
		if err != nil {
			return did, err
		}

		due = others
	}

	return did, nil
}

// desk is the work on one wallet under its lease. All RPC happens between its updates, never in one.
type walletWorker struct {
	*Manager
	network chain.Network
	driver  chain.Driver
	sender  chain.Sender
	party   chain.Party
	lease   lease.Lease
	// counted is the chain's nonce of the wallet, read once per turn; nil without nonces.
	counted *uint64
	// flying is how many transactions of the wallet are signed and in no block, counted once per
	// turn; nil before.
	inFlight *int
	// alone is set when payouts could not be signed together: for the rest of the turn each is
	// signed for itself.
	unbatched bool
	// again are those that were to be signed together when one of them was moved: they are due, and
	// left to the next turn.
	deferred map[string]bool
	moved    bool
}

// wallet works on due transactions of one wallet; worked is false when another process holds it.
func (o *Manager) workWallet(
	ctx context.Context,
	driver chain.Driver,
	sender chain.Sender,
	due []wallet.Transaction,
) (worked bool, err error) {
	d := &walletWorker{
		Manager: o,
		network: driver.Network(),
		driver:  driver,
		sender:  sender,
		party:   due[0].Order.From,
	}
	// The owner is this turn, not this process: two turns of one process exclude each other too.
	owner := o.config.Process + "/" + o.config.IDs.Next()
	name := "wallet/" + d.network.Slug + "/" + string(d.party.Address)
	taken := false

	err = o.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) (err error) {
		d.lease, taken, err = lease.Take(ctx, tx, name, owner, o.now(), o.config.LeaseFor)
		return err
	})
	if err != nil || !taken {
		return false, err
	}

	err = d.work(ctx, due)
	if errors.Is(err, fault.LeaseLost) {
		o.config.Log.WarnContext(ctx, "another process took over the wallet", "wallet", name)
		return true, nil
	}

	if release := o.db.Update(
		ctx, func(ctx context.Context, tx wallet.Tx) error { return lease.Release(ctx, tx, d.lease) },
	); err == nil {
		err = release
	}

	if err == nil && d.moved {
		d.refresh(ctx)
	}

	return true, err
}

func (d *walletWorker) work(ctx context.Context, due []wallet.Transaction) error {
	var waiting []string

	for i, stale := range due {
		if err := ctx.Err(); err != nil {
			return err
		}

		if d.deferred[stale.ID] {
			continue
		}

		if stale.State == wallet.Queued && stale.Kind != wallet.Cancel && !stale.Stale(d.now()) {
			if full, err := d.inFlightFull(ctx); err != nil {
				return err
			} else if full {
				waiting = append(waiting, stale.ID)
				continue
			}
		}
		// what was due may have been moved by whoever held the lease before
		t, err := d.db.Transaction(ctx, stale.ID)
		if err != nil {
			return err
		}

		if t.State == wallet.Failed || t.DueAt.IsZero() {
			continue
		}

		if t.State == wallet.Queued {
			err = d.sign(ctx, t, due[i+1:])
		} else {
			err = d.follow(ctx, t)
		}

		if err == nil {
			continue
		}

		if d.stops(ctx, err) {
			return err
		}

		d.config.Log.WarnContext(
			ctx, "a transaction could not be moved on",
			"transaction", t.ID, "network", t.Network, "kind", string(t.Kind),
			"state", string(t.State), "error", publicText(err),
		)

		if err := d.update(ctx, t.ID); err != nil {
			return err
		}
	}

	return d.postponeQueued(ctx, waiting)
}

// write runs a closure under the lease, and prolongs it.
func (d *walletWorker) write(ctx context.Context, f func(ctx context.Context, tx wallet.Tx) error) error {
	err := d.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		if err := lease.Prolong(ctx, tx, d.lease, d.now().Add(d.config.LeaseFor)); err != nil {
			return err
		}

		return f(ctx, tx)
	})
	if err != nil {
		return &storeError{err}
	}

	return nil
}

// move is one step of a record; several make one update.
type move func(t *wallet.Transaction) error

// update applies moves to a transaction as it is stored now, schedules it, and tells its owner of
// each move. A move that is no longer legal (it was canceled meanwhile) ends the update without
// effect.
func (d *walletWorker) update(ctx context.Context, transactionID string, moves ...move) error {
	changed := false

	err := d.write(ctx, func(ctx context.Context, tx wallet.Tx) error {
		t, err := tx.Transaction(ctx, transactionID)
		if err != nil {
			return err
		}

		changed, err = d.moveTx(ctx, tx, t, moves...)

		return err
	})
	if _, illegal := errors.AsType[*illegalMove](err); illegal {
		return nil
	}

	d.moved = d.moved || (err == nil && changed)

	return err
}

// moveTx is update inside a transaction. What the transaction carries makes each move with it.
func (d *walletWorker) moveTx(
	ctx context.Context,
	tx wallet.Tx,
	t wallet.Transaction,
	moves ...move,
) (changed bool, err error) {
	var facts []wallet.Transaction

	rows := []wallet.Transaction{t} // and what it carries, once it moves
	for _, m := range moves {
		before := rows[0]
		if err := m(&rows[0]); err != nil {
			return false, &illegalMove{err}
		}

		if !moved(rows[0], before) {
			continue
		}

		if len(rows) == 1 {
			carried, err := rowsOf(ctx, tx, rows[0].BatchMembers)
			if err != nil {
				return false, err
			}

			rows = append(rows, carried...)
		}

		for i := range rows[1:] {
			if err := rows[1+i].JoinBatch(rows[0]); err != nil {
				return false, err
			}
		}

		facts = append(facts, rows...)
	}

	schedule(&rows[0], d.now())

	for i := range rows {
		if err := tx.PutTransaction(ctx, &rows[i]); err != nil {
			return false, err
		}
	}

	if err := d.settleMoveTx(ctx, tx, t, rows); err != nil {
		return false, err
	}

	for i, f := range facts {
		now := rows[i%len(rows)]

		f.Version, f.DueAt = now.Version, now.DueAt
		if err := tx.AppendEvents(ctx, movedEvent(f)); err != nil {
			return false, err
		}
	}

	return len(facts) > 0, nil
}

// settleMoveTx keeps balances and coins in step with a move of a transaction, the first of the rows, and
// of those that it carries.
func (d *walletWorker) settleMoveTx(
	ctx context.Context,
	tx wallet.Tx,
	before wallet.Transaction,
	rows []wallet.Transaction,
) error {
	after := rows[0]
	if before.Block.Hash != after.Block.Hash {
		if err := d.spendTx(ctx, tx, d.network, rows, after.Block.Height); err != nil {
			return err
		}
	}

	if before.State == after.State {
		return nil
	}

	if after.State == wallet.Failed || after.State == wallet.Confirmed {
		if err := d.releaseCoinsTx(ctx, tx, after); err != nil {
			return err
		}
	}

	return d.endBumpTx(ctx, tx, after)
}

// refresh reads the wallet's balances again after something moved. It is a courtesy: reservations
// end with it, nothing depends on it.
func (d *walletWorker) refresh(ctx context.Context) {
	native, _ := d.network.Native()
	if _, tracked, err := d.db.Balance(
		ctx, d.network.Slug, d.party.Address, native.ID,
	); err != nil ||
		!tracked {
		return // a deposit address
	}

	if err := d.RefreshBalances(ctx, d.network.Slug, d.party); err != nil {
		d.config.Log.InfoContext(
			ctx, "balances could not be read again",
			"network", d.network.Slug, "wallet", string(d.party.Address), "error", publicText(err),
		)
	}
}

// moved reports whether anything differs that the owner of the transaction may care about: all but
// the schedule and the record of sendings.
func moved(t, since wallet.Transaction) bool {
	return t.State != since.State || t.TxHash != since.TxHash || t.Block.Hash != since.Block.Hash ||
		t.Failure != since.Failure
}
