package txmgr

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// sign signs a queued transaction, stores the bytes with their nonce or coins, and then broadcasts them. A
// payout is batched with those among rest that one transaction can pay together with it.
//
// Failures before the first signature:
//   - a signer's refusal: at once;
//   - a destination that cannot be paid: once two nodes say so, where there are two, and a release after
//     refusalGrace;
//   - missing money: a payout after Config.FundsGrace, as chain:insufficient_funds, unless change is on its way;
//   - everything else (no answer, fees above the maximum, money missing for other kinds): stale at GiveUpAt.
func (d *walletWorker) sign(ctx context.Context, t wallet.Transaction, rest []wallet.Transaction) error {
	if held, err := d.holdBack(ctx, t); held || err != nil {
		return err
	}

	if stale, err := d.failStale(ctx, t); err != nil || stale {
		return err
	}

	if t.Kind == wallet.Cancel {
		over, waits, err := d.displacementOver(ctx, t)
		if err != nil {
			return err
		}

		if over {
			return d.update(ctx, t.ID, fail(wallet.FailCanceled))
		}

		if waits {
			return d.update(ctx, t.ID)
		}
	}

	if done, err := d.trySignBatch(ctx, t, rest); done || err != nil {
		return err
	}

	order := t.Order
	if err := d.prepare(ctx, t, &order); err != nil {
		return err
	}

	a, err := d.makeAttempt(ctx, t, order)
	if t.Kind == wallet.Cancel && order.Replaces != nil && fault.Code(err) == "insufficient_funds" {
		a, err = d.cancelUnknown(ctx, t, order, err)
	}

	d.noteDispute(t, err)

	if err != nil {
		return d.handleSignError(ctx, t, order, err)
	}

	if err := d.storeAttempt(ctx, t, a); err != nil {
		if errors.Is(err, fault.Duplicate) {
			// An equal transaction has the same bytes. The next turn makes other bytes, with another time or
			// block hash.
			return d.update(ctx, t.ID)
		}

		return err
	}

	return d.broadcastFirst(ctx, t.ID, a)
}

// displacementOver reports whether nothing is left for a cancel to displace: the displaced transaction is in
// a block, or others displaced it. waits is set while another own transaction depends on that one; see
// waitsForDependents.
func (d *walletWorker) displacementOver(
	ctx context.Context,
	cancel wallet.Transaction,
) (over, waits bool, err error) {
	if d.hasNonces() {
		counted, err := d.nonce(ctx)

		return err == nil && counted > cancel.Order.Nonce, false, err
	}

	// The cancel's object no longer has the bytes at this nonce, as another transaction fulfilled it.
	if reader, ok := d.driver.(chain.DurableNonces); ok && cancel.Order.DurableNonce != nil {
		used, _, err := reader.NonceUsed(ctx, *cancel.Order.DurableNonce)

		return used, false, err
	}

	displaced, err := d.db.Transaction(ctx, cancel.ObjectID)
	if err != nil {
		return false, false, asStoreError(err)
	}

	if !walletstate.Live(displaced) || displaced.State == wallet.Included {
		return true, false, nil
	}

	waits, err = d.waitsForDependents(ctx, displaced)

	return false, waits, err
}

// broadcastFirst broadcasts the first bytes of a transaction and counts it as in flight.
func (d *walletWorker) broadcastFirst(ctx context.Context, transactionID string, a wallet.Attempt) error {
	if d.inFlight != nil {
		*d.inFlight++
	}

	d.dropNonce(a.Signed)

	return d.broadcast(ctx, transactionID, a.Signed)
}

// inFlightFull reports whether the wallet has maxInFlight transactions in flight. They are counted once per
// turn: the next turn notices those that are included meanwhile.
func (d *walletWorker) inFlightFull(ctx context.Context) (bool, error) {
	if d.inFlight == nil {
		live, err := d.db.LiveTransactions(ctx, d.network.Slug, d.party.Address)
		if err != nil {
			return false, &storeError{err}
		}

		n := 0

		for _, t := range live {
			if t.BatchedBy == "" && (t.State == wallet.Signed || t.State == wallet.Broadcast) {
				n++
			}
		}

		d.inFlight = &n
	}

	return *d.inFlight >= maxInFlight, nil
}

// postponeQueued makes transactions of a full wallet due after queuedRetryEvery, all in one write.
func (d *walletWorker) postponeQueued(ctx context.Context, queued []string) error {
	if len(queued) == 0 {
		return nil
	}

	return d.write(ctx, func(ctx context.Context, tx wallet.Tx) error {
		return postponeTx(ctx, tx, queued, d.now(), waitsInFlight)
	})
}

// fail returns the move that fails a transaction with a failure code.
func fail(code string) move {
	return func(t *wallet.Transaction) error { return walletstate.Fail(t, code) }
}

// prepare sets an order's nonce or coins and, for a cancel, the bytes that it displaces.
func (d *walletWorker) prepare(ctx context.Context, t wallet.Transaction, order *chain.Order) error {
	if t.Kind == wallet.Cancel {
		if err := d.prepareCancel(ctx, t, order); err != nil {
			return err
		}
	}

	if d.hasNonces() {
		if t.Kind == wallet.Cancel {
			return nil
		}

		if err := d.fillGaps(ctx, t); err != nil {
			return err
		}

		counted, err := d.nonce(ctx)
		if err != nil {
			return err
		}

		w, _, err := d.db.Wallet(ctx, t.Network, d.party.Address)
		if err != nil {
			return &storeError{err}
		}

		order.Nonce = nextNonce(w, counted)

		return d.nonceRead(ctx, w, counted)
	}

	if t.Kind != wallet.Cancel {
		var err error
		if order.DurableNonce, err = d.nextDurableNonce(ctx); err != nil {
			return err
		}
	}

	coins, err := d.spendableCoins(ctx, t)
	order.Coins = coins

	return err
}

// prepareCancel sets the bytes that a cancel displaces.
func (d *walletWorker) prepareCancel(ctx context.Context, t wallet.Transaction, order *chain.Order) error {
	live, err := d.db.LiveTransactions(ctx, t.Network, d.party.Address)
	if err != nil {
		return &storeError{err}
	}

	if d.hasNonces() { // bytes of a failed transaction may be back in the pool
		left, err := d.leftNonces(ctx)
		if err != nil {
			return err
		}

		if last, ok := left[order.Nonce]; ok {
			live = append(live, last)
		}
	}

	for _, other := range live {
		displaced := other.ID == t.ObjectID
		if d.hasNonces() {
			displaced = other.Nonce == order.Nonce
		}

		if displaced && len(other.Attempts) > 0 {
			last, err := d.displacedBytes(ctx, other)
			if err != nil {
				return err
			}

			order.Replaces, order.DurableNonce = &last, last.DurableNonce
			if err := d.returnCoins(ctx, order, other); err != nil {
				return err
			}
		}
	}

	return nil
}

// hasNonces reports whether the network counts an account's transactions.
func (d *walletWorker) hasNonces() bool { _, ok := d.driver.(chain.Nonces); return ok }

// nonce returns the chain's count of the wallet's transactions, read once per turn.
func (d *walletWorker) nonce(ctx context.Context) (uint64, error) {
	if d.counted == nil {
		n, err := d.driver.(chain.Nonces).Nonce(ctx, d.party.Address)
		if err != nil {
			return 0, err
		}

		d.counted = &n
	}

	return *d.counted, nil
}

// handleSignError handles an error of an order before the first signature. It fails the transaction, or
// leaves it queued and returns the error.
func (d *walletWorker) handleSignError(
	ctx context.Context,
	t wallet.Transaction,
	order chain.Order,
	err error,
) error {
	if refusal, ok := errors.AsType[*chain.Refusal](err); ok {
		code := wallet.FailSignerRefused + reasonCode(refusal.Reason)
		d.config.Log.ErrorContext(
			ctx,
			"the signer refused a transaction; it has failed",
			"transaction",
			t.ID,
			"network",
			t.Network,
			"kind",
			string(t.Kind),
			"object",
			t.ObjectID,
			"failure",
			code,
		)

		return d.update(ctx, t.ID, fail(code))
	}

	switch {
	case t.Kind == wallet.Bump && errors.Is(err, fault.NotFound):
		// The payment is in a block, replaced, or pays enough by now.
		return d.update(ctx, t.ID, fail(wallet.FailCanceled))
	case t.Kind == wallet.Cancel:
		// It stays queued: the wallet cannot go on without it.
		if fault.Code(err) == "fee_above_maximum" {
			return d.raiseFee(ctx, t, order.Replaces)
		}
	case errors.Is(err, fault.Unsupported):
		return d.update(ctx, t.ID, fail(wallet.FailNotPayable))
	case errors.Is(err, fault.Invalid):
		stands, failed := d.refusalStands(ctx, t)
		if failed != nil {
			return failed
		}

		if stands {
			return d.update(ctx, t.ID, fail(wallet.FailNotPayable))
		}
	case unsafeToken(t, err):
		return d.update(ctx, t.ID, fail(wallet.FailTokenUnsafe))
	case errors.Is(err, fault.State) && t.Kind == wallet.Payout && d.now().Sub(t.ReadyAt) >= d.config.FundsGrace:
		waits, failed := d.awaitsChange(ctx, t)
		if failed != nil {
			return failed
		}

		if !waits {
			return d.update(ctx, t.ID, fail(wallet.FailInsufficientFunds))
		}
	}

	return err
}

// unsafeToken reports whether an error fails a payout because the token's issuer changed the token; a person
// has to look at it. A release waits instead: its deposit stays where it is.
func unsafeToken(t wallet.Transaction, err error) bool {
	return t.Kind == wallet.Payout && fault.Code(err) == wallet.FailTokenUnsafe
}

// awaitsChange reports whether another transaction of the wallet waits for a block. The money in its change
// is not missing: it can be spent from its block on, and earlier only if the node shows it in the pool.
func (d *walletWorker) awaitsChange(ctx context.Context, t wallet.Transaction) (bool, error) {
	if d.hasNonces() {
		return false, nil
	}

	live, err := d.db.LiveTransactions(ctx, t.Network, d.party.Address)
	if err != nil {
		return false, &storeError{err}
	}

	return slices.ContainsFunc(live, func(other wallet.Transaction) bool {
		waits := other.State == wallet.Signed || other.State == wallet.Broadcast
		return waits && other.ID != t.ID && len(walletstate.LastAttempt(&other).Signed.Inputs) > 0
	}), nil
}

// broadcast sends stored bytes to the network and records the answer. An error changes no state: the bytes
// are looked up and sent again.
func (d *walletWorker) broadcast(ctx context.Context, transactionID string, signed chain.Signed) error {
	// spec D5.8
	at := d.now()

	err := d.sender.Broadcast(ctx, signed)
	if ctx.Err() != nil {
		return ctx.Err()
	}

	if err != nil {
		problem := publicText(err)
		sent := func(t *wallet.Transaction) error { return walletstate.RecordBroadcast(t, signed.TxHash, at, problem) }

		return d.update(ctx, transactionID, sent)
	}

	sent := func(t *wallet.Transaction) error { return walletstate.RecordBroadcast(t, signed.TxHash, at, "") }
	taken := func(t *wallet.Transaction) error { return walletstate.RecordAccepted(t, signed.TxHash, at) }

	return d.update(ctx, transactionID, sent, taken)
}

// nonceRead returns fault.Unavailable with code wallet_unread while the network counts more transactions of
// the wallet than the blocks explain, as far as they are read. The records may be older than the network.
// Transactions from before the network was read are possible only for a wallet that never signed here. A
// nonce above the true count would block every transaction that is signed later.
//
// For a wallet that never signed here, there is nothing to compare the count with. So nodes have to agree
// about it at the block that was read.
func (d *walletWorker) nonceRead(ctx context.Context, w wallet.Wallet, counted uint64) error {
	c, followed, err := d.db.Cursor(ctx, d.network.Slug)
	if err != nil {
		return &storeError{err}
	}

	if !followed {
		return nil
	}

	if err := d.nonceExplained(ctx, w, counted, c); err != nil || w.NextNonce > 0 {
		return err
	}

	return d.confirmFirstNonce(ctx, c, counted)
}

// confirmFirstNonce returns fault.Unavailable with code wallet_unread unless nodes agree about the count of
// the wallet's transactions. They must agree at the block that was read or, if a node has not reached it, at
// the newest block that two nodes have.
func (d *walletWorker) confirmFirstNonce(ctx context.Context, c scan.Cursor, counted uint64) error {
	nonces, ok := d.driver.(chain.Nonces)
	if !ok {
		return nil
	}

	agreed, err := nonces.AgreedNonce(ctx, d.party.Address, c.At)
	if errors.Is(err, chain.ErrNotAgreed) {
		if shared, ok := d.sharedBelow(ctx, c.At); ok {
			agreed, err = nonces.AgreedNonce(ctx, d.party.Address, shared)
		}
	}

	if err == nil && agreed == counted {
		return nil
	}

	return fault.Wrap(
		err,
		fault.Unavailable,
		"wallet_unread",
		"a node of %s counts %d transactions of %s, which never signed here, and that is not agreed on: "+
			"nothing is signed until it is",
		d.network.Slug,
		counted,
		d.party.Address,
	)
}

// sharedBelow returns the newest block that two nodes have; ok is false unless it is below the given one.
func (d *walletWorker) sharedBelow(ctx context.Context, at chain.Ref) (chain.Ref, bool) {
	nodes, ok := d.driver.(chain.Agreed)
	if !ok {
		return chain.Ref{}, false
	}

	head, err := nodes.AgreedHead(ctx)

	return head.Tip, err == nil && head.Tip.Height < at.Height
}
