package txmgr

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/internal/together"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// walletWorker works on one wallet for one turn, under the wallet's lease. It makes no RPC inside its store
// updates.
type walletWorker struct {
	*Manager
	network chain.Network
	driver  chain.Driver
	sender  chain.Sender
	party   chain.Party
	due     []wallet.Transaction // to look at in this turn, as they were read
	lease   lease.Lease
	// counted is the chain's nonce of the wallet, read once per turn; nil before, and without nonces.
	counted *uint64
	// inFlight is the number of transactions of the wallet that are signed and in no block, counted
	// once per turn; nil before.
	inFlight *int
	// noncePool is read once per turn; nil before, and without nonce accounts.
	noncePool *noncePool
	// unbatched is set when a batch could not be signed: the rest of the turn signs payouts one by one.
	unbatched bool
	// gapsFilled is set once the wallet's nonces were searched for gaps in this turn.
	gapsFilled bool
	// deferred are the ids of a batch that was not signed because one of its members was moved. They stay due
	// for the next turn.
	deferred map[string]bool
	// unrecorded are the wallet's transactions that are not on record, read once per turn.
	unrecorded     []wallet.Outgoing
	unrecordedRead bool
	// moved is set when a transaction changed, so that the balances are refreshed.
	moved bool
}

// turn works on the wallet's due transactions.
func (d *walletWorker) turn(ctx context.Context) error {
	err := d.beginEpoch(ctx)
	if err == nil {
		err = d.work(ctx, d.due)
	}

	if errors.Is(err, fault.LeaseLost) {
		d.config.Log.WarnContext(ctx, "another process took over the wallet", "wallet", d.lease.Name)
		return nil
	}

	if err == nil && d.moved {
		d.refresh(ctx)
	}

	return err
}

// work signs or follows each due transaction of the wallet.
func (d *walletWorker) work(ctx context.Context, due []wallet.Transaction) error {
	var waiting []string

	for i, stale := range due {
		if err := ctx.Err(); err != nil {
			return err
		}

		if d.deferred[stale.ID] {
			continue
		}

		waits, err := d.mustWait(ctx, stale)
		if err != nil {
			return err
		}

		if waits {
			waiting = append(waiting, stale.ID)
			continue
		}

		// The previous holder of the lease may have moved it.
		t, err := d.db.Transaction(ctx, stale.ID)
		if err != nil {
			return err
		}

		if t.DueAt.IsZero() {
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

		if err := d.update(ctx, t.ID, d.waitsFor(publicText(err))); err != nil {
			return err
		}
	}

	return d.postponeQueued(ctx, waiting)
}

// mustWait reports whether a queued transaction waits for others of its wallet.
func (d *walletWorker) mustWait(ctx context.Context, queued wallet.Transaction) (bool, error) {
	if queued.State != wallet.Queued || queued.Kind == wallet.Cancel || walletstate.Stale(&queued, d.now()) {
		return false, nil
	}

	if full, err := d.inFlightFull(ctx); err != nil || full {
		return full, err
	}

	// Ignore an error: the next transaction to be signed returns it.
	waits, err := d.awaitsNonce(ctx)

	return err == nil && waits, nil
}

// write runs a closure in a store transaction that also checks the lease. It fails as storeError.
func (d *walletWorker) write(ctx context.Context, f func(ctx context.Context, tx wallet.Tx) error) error {
	err := d.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		if err := leases.Check(ctx, tx, d.lease); err != nil {
			return err
		}

		return f(ctx, tx)
	})
	if err != nil {
		return &storeError{err}
	}

	return nil
}

// move is one transition of a record; several make one update.
type move func(t *wallet.Transaction) error

// update applies moves to a transaction as it is stored now, schedules it, and publishes an event for each
// move. If a move is no longer legal (it was canceled meanwhile), the update ends without effect.
func (d *walletWorker) update(ctx context.Context, transactionID string, moves ...move) error {
	return d.updateWith(ctx, transactionID, nil, moves...)
}

// waitsFor returns the move that records why a transaction did not advance: a code, a colon and a sentence.
func (d *walletWorker) waitsFor(why string) move {
	return func(t *wallet.Transaction) error {
		walletstate.Wait(t, why, d.now())
		return nil
	}
}

// waitsForBlock is the move that records that a signed transaction is in no block.
func (d *walletWorker) waitsForBlock(t *wallet.Transaction) error {
	walletstate.WaitForBlock(t, d.now())
	return nil
}

// updateWith is update with a closure that runs in the same store transaction before the moves, on the
// transaction as it is stored. If the closure returns an illegalMove, the update ends without effect.
func (d *walletWorker) updateWith(
	ctx context.Context,
	transactionID string,
	before func(ctx context.Context, tx wallet.Tx, t wallet.Transaction) error,
	moves ...move,
) error {
	changed := false

	err := d.write(ctx, func(ctx context.Context, tx wallet.Tx) error {
		t, err := tx.Transaction(ctx, transactionID)
		if err != nil {
			return err
		}

		if before != nil {
			if err := before(ctx, tx, t); err != nil {
				return err
			}
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

// moveTx is update inside a store transaction. Batch members make each move together with it.
func (d *walletWorker) moveTx(
	ctx context.Context,
	tx wallet.Tx,
	t wallet.Transaction,
	moves ...move,
) (changed bool, err error) {
	var published []wallet.Transaction

	rows := []wallet.Transaction{t} // and its batch members, once it is moved

	for i, m := range append(slices.Clip(moves), d.waitsForBlock) {
		if i == len(moves) && len(published) > 0 {
			break // it was moved
		}

		before := rows[0]
		if err := m(&rows[0]); err != nil {
			return false, &illegalMove{err}
		}

		if !moved(rows[0], before) {
			continue
		}

		if len(rows) == 1 {
			members, err := rowsOf(ctx, tx, rows[0].BatchMembers)
			if err != nil {
				return false, err
			}

			rows = append(rows, members...)
		}

		for i := range rows[1:] {
			if err := walletstate.JoinBatch(&rows[1+i], rows[0]); err != nil {
				return false, err
			}
		}

		published = append(published, rows...)
	}

	if err := d.scheduleTx(ctx, tx, &rows[0]); err != nil {
		return false, err
	}

	for i := range rows {
		if err := tx.PutTransaction(ctx, &rows[i]); err != nil {
			return false, err
		}
	}

	if err := d.settleMoveTx(ctx, tx, t, rows); err != nil {
		return false, err
	}

	for i, moved := range published {
		now := rows[i%len(rows)]

		moved.Version, moved.DueAt = now.Version, now.DueAt
		if err := tx.AppendEvents(ctx, eventctx.About(moved, event.TransactionMoved)...); err != nil {
			return false, err
		}
	}

	return len(published) > 0, nil
}

// settleMoveTx updates balances, coins and reservations for a move. rows are the transaction and its
// batch members after it.
func (d *walletWorker) settleMoveTx(
	ctx context.Context,
	tx wallet.Tx,
	before wallet.Transaction,
	rows []wallet.Transaction,
) error {
	after := rows[0]
	if before.Block.Hash != after.Block.Hash && before.State != wallet.Failed {
		if err := d.spendTx(ctx, tx, d.network, rows, after.Block.Height); err != nil {
			return err
		}
	}

	if before.Fee != after.Fee && after.Kind == wallet.Cancel {
		if err := d.chargeCancelTx(ctx, tx, after); err != nil {
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

	return d.endReservationTx(ctx, tx, after)
}

// refresh refreshes a master wallet's balances after a move. An error is only logged: nothing depends on it.
func (d *walletWorker) refresh(ctx context.Context) {
	if d.party.Key.Role == chain.RoleDeposit {
		return
	}

	native, _ := d.network.Native()

	_, tracked, err := d.db.Balance(ctx, d.network.Slug, d.party.Address, native.ID)
	if err != nil || !tracked {
		return
	}

	if err := d.RefreshBalances(ctx, d.network.Slug, d.party); err != nil {
		d.config.Log.InfoContext(
			ctx, "balances could not be read again",
			"network", d.network.Slug, "wallet", string(d.party.Address), "error", publicText(err),
		)
	}
}

// moved reports whether anything changed that the owner is notified of: everything except the schedule and
// the record of broadcasts.
func moved(t, since wallet.Transaction) bool {
	return t.State != since.State || t.TxHash != since.TxHash || t.Block.Hash != since.Block.Hash ||
		t.Failure != since.Failure || t.Fee != since.Fee || t.Waits != since.Waits
}

// ahead is the number of batches in which StepTogether looks for one batch of work, so that several processes
// seldom pick the same wallets.
const ahead = 4

// Step works on one batch of due transactions of a network, one wallet after the other: it signs, broadcasts,
// looks up or replaces each. did is false if there was nothing to do. An error of one transaction is logged
// and delays that transaction; the returned error is the store's or the context's.
func (o *Manager) Step(ctx context.Context, network string) (did bool, err error) {
	return o.StepTogether(ctx, network, 1)
}

// StepTogether does the same as Step for up to limit wallets at a time. If limit is above one, the order of
// wallets is random.
func (o *Manager) StepTogether(ctx context.Context, network string, limit int) (did bool, err error) {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return false, err
	}

	sender, ok := driver.(chain.Sender)
	if !ok {
		return false, nil
	}

	// Make the first look when the process begins, not when somebody first asks.
	if _, err := o.IsRead(ctx, network, ""); err != nil && ctx.Err() != nil {
		return false, ctx.Err()
	}

	read := o.config.Batch
	if limit > 1 {
		read *= ahead
	}

	due, err := o.db.DueTransactions(ctx, network, o.now(), read)
	if err != nil {
		return false, err
	}

	due, err = o.postponeUnread(ctx, driver.Network(), due)
	if err != nil {
		return false, err
	}

	groups := byWallet(due)
	if limit > 1 {
		together.Shuffle(groups)
	}

	workers, err := o.takeWallets(ctx, driver, sender, groups[:min(len(groups), o.config.Batch)])
	if err != nil {
		return false, err
	}

	defer func() { // also while a panic passes through
		if releaseErr := o.releaseWallets(ctx, workers); err == nil {
			err = releaseErr
		}
	}()

	return len(workers) > 0, together.Each(
		ctx, limit, workers, func(ctx context.Context, d *walletWorker) error { return d.turn(ctx) },
	)
}

// takeWallets takes the leases of the wallets with due transactions, in one update. It returns a worker for
// each wallet that no other turn has.
func (o *Manager) takeWallets(
	ctx context.Context,
	driver chain.Driver,
	sender chain.Sender,
	groups [][]wallet.Transaction,
) (workers []*walletWorker, err error) {
	if len(groups) == 0 {
		return nil, nil
	}

	var names []string

	n := driver.Network()

	for _, mine := range groups {
		names = append(names, walletLease(n, mine[0].Order.From))
	}

	taken, err := o.config.Heartbeat.Take(ctx, names...)
	if err != nil {
		return nil, err
	}

	for i, mine := range groups {
		for _, held := range taken {
			if held.Name == names[i] {
				workers = append(workers, &walletWorker{
					Manager: o,
					network: n,
					driver:  driver,
					sender:  sender,
					party:   mine[0].Order.From,
					due:     mine,
					lease:   held,
				})
			}
		}
	}

	return workers, nil
}

// walletLease returns the name of a wallet's lease.
func walletLease(n chain.Network, at chain.Party) string {
	return "wallet/" + n.Slug + "/" + string(at.Address)
}

func (o *Manager) releaseWallets(ctx context.Context, workers []*walletWorker) error {
	held := make([]lease.Lease, len(workers))
	for i, d := range workers {
		held[i] = d.lease
	}

	return o.config.Heartbeat.Release(ctx, held...)
}

// byWallet groups transactions by the wallet that sends them, in the order of each wallet's first one.
func byWallet(due []wallet.Transaction) (groups [][]wallet.Transaction) {
	at := map[chain.Address]int{}

	for _, t := range due {
		from := t.Order.From.Address

		i, found := at[from]
		if !found {
			i = len(groups)
			at[from] = i

			groups = append(groups, nil)
		}

		groups[i] = append(groups[i], t)
	}

	return groups
}
