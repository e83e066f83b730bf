package txmgr

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// holdBack postpones a transaction that must not be signed now. It does not go stale while it waits for a
// person, or until this process has compared its wallet with the network: lost records may have sent it.
// While a wallet is frozen or its network lags, its later transactions go stale as usual.
func (d *walletWorker) holdBack(ctx context.Context, t wallet.Transaction) (held bool, err error) {
	held, err = d.awaitsPerson(ctx, t)
	if err != nil {
		return false, err
	}

	why := "awaits_person: what its wallet sent before is not on record; see Engine.Acknowledge and Engine.Unfreeze"

	if !held {
		if held, err = d.signingWaits(ctx, t); err != nil || !held {
			return false, err
		}

		if why, err = d.stopReason(ctx, t); err != nil {
			return false, err
		}
	}

	return true, d.update(ctx, t.ID, d.waitsFor(why))
}

// WaitsFrozen is the reason why nothing is signed for a frozen wallet; see walletstate.Wait.
const WaitsFrozen = "wallet_frozen: nothing is signed for the wallet until Engine.Acknowledge or Engine.Unfreeze"

// WaitsUnread is the reason why nothing is signed while this process does not know what lost records sent
// from a wallet.
const WaitsUnread = "wallet_unread: nothing is signed until the wallet was compared with its network"

// The other reasons why nothing is signed.
const (
	waitsBehind   = "network_behind: nothing is signed until the network is read up to its tip"
	waitsInFlight = "queued: earlier transactions of the wallet wait for a block"
	waitsMaySign  = "process_wrong: the process signs nothing, as its clock or its signer is wrong; see Engine.Health"
)

// stopReason returns the reason for which signingWaits held a transaction back.
func (d *walletWorker) stopReason(ctx context.Context, t wallet.Transaction) (string, error) {
	frozen, err := d.frozenAmong(ctx, d.db, t)
	if err != nil {
		return "", &storeError{err}
	}

	lags, err := d.Lags(ctx, d.network)

	switch {
	case err != nil:
		return "", err
	case frozen:
		return WaitsFrozen, nil
	case lags:
		return waitsBehind, nil
	case !d.config.MaySign():
		return waitsMaySign, nil
	}

	return WaitsUnread, nil
}

// signingWaits reports whether a transaction that waits for no person must not be signed now. A stale payout
// only waits for the proof that lost records did not send it.
func (d *walletWorker) signingWaits(ctx context.Context, t wallet.Transaction) (bool, error) {
	if !walletstate.Stale(&t, d.now()) {
		return d.signingStopped(ctx, t)
	}

	if t.Kind != wallet.Payout {
		return false, nil
	}

	if !d.config.MaySign() {
		return true, nil // it is stale only by this process's clock
	}

	read, err := d.isRead(ctx)

	return !read, err
}

// awaitsPerson reports whether a payout waits for a person's acknowledgement; see awaitsReview.
func (d *walletWorker) awaitsPerson(ctx context.Context, t wallet.Transaction) (bool, error) {
	if t.Kind != wallet.Payout {
		return false, nil
	}

	if !d.unrecordedRead {
		since := d.now().Add(-walletstate.ForeignFor)

		var err error
		if d.unrecorded, err = d.db.UnrecordedOutgoing(ctx, t.Network, d.party.Address, since); err != nil {
			return false, &storeError{err}
		}

		d.unrecordedRead = true
	}

	waits, err := awaitsReview(ctx, d.db, t, d.unrecorded, d.now())

	return waits, asStoreError(err)
}

// awaitsReview reports whether a payout waits for a person's acknowledgement. It does if it is older than the
// epoch that froze its wallet, or if it equals a transaction of the wallet that is not on record. It also
// does if the transaction that froze the wallet has left the chain: its payments are not known any more, and
// it may come back.
func awaitsReview(
	ctx context.Context,
	r wallet.Reader,
	t wallet.Transaction,
	unrecorded []wallet.Outgoing,
	now time.Time,
) (bool, error) {
	w, _, err := r.Wallet(ctx, t.Network, t.Order.From.Address)
	if err != nil || walletstate.Holds(&w, t.CreatedAt) {
		return err == nil, err
	}

	for _, row := range unrecorded {
		if walletstate.Awaits(row, t.ObjectID, t.Order.Outputs, now) {
			return true, nil
		}
	}

	if w.Frozen == "" || w.FrozenBy == "" || t.CreatedAt.After(w.FrozenAt) {
		return false, nil
	}

	rows, err := r.OutgoingByHash(ctx, t.Network, []string{w.FrozenBy})

	return len(rows) == 0, err
}

// signingStopped reports whether nothing new is signed for the wallets of a transaction: one is frozen, or
// their network is not read up to its tip. A cancel is never stopped: it excludes bytes that are signed, or
// uses up a free nonce.
func (d *walletWorker) signingStopped(ctx context.Context, t wallet.Transaction) (bool, error) {
	if t.Kind == wallet.Cancel {
		return false, nil
	}

	frozen, err := d.frozenAmong(ctx, d.db, t)
	if err != nil {
		return false, &storeError{err}
	}

	if frozen {
		return true, nil
	}

	return d.unread(ctx)
}

// outcomeWaits reports whether a proof that signed bytes are dead must wait. It waits for a person to decide
// whether the transaction that displaced them made their payments, or for the blocks that show it.
func (d *walletWorker) outcomeWaits(ctx context.Context, t wallet.Transaction) (bool, error) {
	if waits, err := d.awaitsPerson(ctx, t); waits || err != nil {
		return waits, err
	}

	return d.unread(ctx)
}

// unread reports whether the network is stopped, or not read up to its tip, or this process's clock is wrong.
func (d *walletWorker) unread(ctx context.Context) (bool, error) {
	if lags, err := d.Lags(ctx, d.network); err != nil || lags {
		return lags, err
	}

	if !d.config.MaySign() {
		return true, nil
	}

	read, err := d.isRead(ctx)

	return !read, err
}

// frozenAmong reports whether a wallet that a transaction takes from is frozen, or missed the freeze of an
// epoch. For a sweep it also checks the wallets that it pays.
func (o *Manager) frozenAmong(ctx context.Context, r wallet.Reader, t wallet.Transaction) (bool, error) {
	addresses := map[chain.Address]bool{t.Order.From.Address: true}
	if t.Order.FeePayer != nil {
		addresses[t.Order.FeePayer.Address] = true
	}

	for _, coin := range t.Order.Coins {
		addresses[coin.Owner.Address] = true
	}

	if t.Kind == wallet.Sweep {
		for _, out := range t.Order.Outputs {
			addresses[out.To] = true
		}
	}

	for address := range addresses {
		w, _, err := r.Wallet(ctx, t.Network, address)
		if err != nil || w.Frozen != "" || o.hasMissedEpoch(w) {
			return err == nil, err
		}
	}

	return false, nil
}

// refuseFrozenTx returns an illegalMove for the first bytes of a transaction if one of its wallets was frozen
// while it was signed.
func (d *walletWorker) refuseFrozenTx(ctx context.Context, tx wallet.Tx, t wallet.Transaction) error {
	if t.Kind == wallet.Cancel {
		return nil
	}

	frozen, err := d.frozenAmong(ctx, tx, t)
	if err != nil || !frozen {
		return err
	}

	return &illegalMove{fault.New(
		fault.State, "wallet_frozen",
		"a wallet of transaction %s was frozen while it was signed; the signatures were thrown away", t.ID,
	)}
}

// nonceExplained returns the error of nonceRead for a count that the blocks do not explain.
func (d *walletWorker) nonceExplained(
	ctx context.Context,
	w wallet.Wallet,
	counted uint64,
	c scan.Cursor,
) error {
	if counted <= w.NextNonce {
		return nil
	}

	last := chain.Spend{Sender: d.party.Address, Nonce: counted - 1}

	rows, err := d.db.OutgoingByKey(ctx, d.network.Slug, []string{chaindata.SpendKey(last)})
	if err != nil {
		return &storeError{err}
	}

	if len(rows) > 0 {
		return nil
	}

	until, err := d.readUntil(ctx, counted)
	if err != nil {
		return err
	}

	if w.NextNonce == 0 && until <= c.At.Height {
		return nil // they were made before the network was read
	}

	return fault.New(
		fault.Unavailable,
		"wallet_unread",
		"a node of %s counts %d transactions of %s, and no block that was read has the last of them: nothing is "+
			"signed until one has, or the node counts otherwise; its tip was block %d",
		d.network.Slug,
		counted,
		d.party.Address,
		until,
	)
}

// unreadNonce is a count of a wallet's transactions that the records do not explain. tip is the height of the
// node's tip when this process first saw the count.
type unreadNonce struct{ counted, tip uint64 }

// readUntil returns the height up to which the network must be read. After that, a count of the wallet's
// transactions that is still not explained is older than the records.
func (d *walletWorker) readUntil(ctx context.Context, counted uint64) (uint64, error) {
	key := d.network.Slug + "/" + string(d.party.Address)
	if seen, ok := d.unreadNonces.Load(key); ok && seen.(unreadNonce).counted == counted {
		return seen.(unreadNonce).tip, nil
	}

	head, err := d.driver.Head(ctx)
	if err != nil {
		return 0, err
	}

	d.unreadNonces.Store(key, unreadNonce{counted, head.Tip.Height})

	return head.Tip.Height, nil
}
