package txmgr

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
)

// sight is what the network showed of all the attempts of one transaction.
type observation struct {
	// hash is the attempt that is in a block, with its status; else empty.
	hash   string
	status chain.TxStatus
	// pooled is an attempt that waits for a block; else empty.
	pooled string
	// terminal is set when every attempt is proven dead: conflict if any is, else expired.
	terminal chain.TerminalReason
}

// look asks the network for every attempt, the newest first: an earlier one may still win.
func (d *walletWorker) observe(ctx context.Context, t wallet.Transaction) (observation, error) {
	var s observation

	dead, conflict := 0, false

	for i := len(t.Attempts) - 1; i >= 0; i-- {
		signed := t.Attempts[i].Signed

		status, err := d.sender.Status(ctx, signed)
		if err != nil {
			return observation{}, err
		}

		switch status.State {
		case chain.TxIncluded:
			return observation{hash: signed.TxHash, status: status}, nil
		case chain.TxPooled:
			if s.pooled == "" {
				s.pooled = signed.TxHash
			}
		case chain.TxDead:
			dead++
			conflict = conflict || status.Reason != chain.ReasonExpired
		case chain.TxUnknown:
			// No proof of anything: it is looked for again.
		}
	}

	if dead == len(t.Attempts) {
		s.terminal = chain.ReasonExpired
		if conflict {
			s.terminal = chain.ReasonConflict
		}
	}

	return s, nil
}

// follow moves a signed transaction to where the network proves it to be.
func (d *walletWorker) follow(ctx context.Context, t wallet.Transaction) error {
	s, err := d.observe(ctx, t)
	if err != nil {
		return err
	}

	if s.hash != "" {
		return d.recordInclusion(ctx, t, s)
	}

	if t.State == wallet.Included || t.State == wallet.Confirmed {
		gone, err := d.blockReplaced(ctx, t.Block)
		if err != nil || !gone {
			// the node lags, or lost its index: it claims nothing
			return errors.Join(err, d.update(ctx, t.ID))
		}

		d.lost(ctx, t)

		if err := d.update(ctx, t.ID, (*wallet.Transaction).Retract); err != nil {
			return err
		}

		if s.pooled != "" {
			return nil
		}

		return d.broadcast(ctx, t.ID, t.LastAttempt().Signed)
	}

	if s.terminal != "" {
		return d.terminate(ctx, t, s.terminal)
	}

	if s.pooled != "" {
		at := d.now()
		if err := d.update(
			ctx, t.ID, func(t *wallet.Transaction) error { return t.Taken(s.pooled, at) },
		); err != nil {
			return err
		}
	} else if err := d.broadcast(ctx, t.ID, t.LastAttempt().Signed); err != nil {
		return err
	}

	return d.replace(ctx, t, s.pooled != "")
}

// lost logs that the block of a transaction left the chain.
func (o *Manager) lost(ctx context.Context, t wallet.Transaction) {
	o.config.Log.WarnContext(
		ctx, "the block of a transaction left the chain",
		"transaction", t.ID, "network", t.Network, "height", t.Block.Height, "was", string(t.State),
	)
}

// included books the block that holds an attempt. It was seen before a fork that was taken in
// meanwhile, or after: nobody knows, so the transaction is left as the fork left it, and looked at
// again.
func (d *walletWorker) recordInclusion(ctx context.Context, t wallet.Transaction, s observation) error {
	moves := []move{
		func(now *wallet.Transaction) error {
			if now.Version != t.Version {
				return refuse(*now, "be included by what was seen before it was moved")
			}

			return nil
		},
	}
	if t.State == wallet.Confirmed && (t.Block.Hash != s.status.Block.Hash || t.TxHash != s.hash) {
		moves = append(moves, (*wallet.Transaction).Retract)
	}

	moves = append(moves, func(t *wallet.Transaction) error { return t.Include(s.hash, s.status) })

	if s.status.Final {
		if s.status.Reverted {
			moves = append(moves, fail(wallet.FailReverted))
		} else {
			moves = append(moves, (*wallet.Transaction).Confirm)
		}
	}

	return d.update(ctx, t.ID, moves...)
}

// ForkTx takes a fork in, in the transaction that moves the network's cursor over it. Transactions
// in blocks above the common one are looked at again at once. Those whose blocks the batch proves
// to be gone are out of them from here on, so that nothing that comes back with the new blocks
// rests on them. One that was in its block for less than finality and is in another now is left
// where it was: it is about to be found there.
func (o *Manager) ForkTx(ctx context.Context, tx wallet.Tx, b follow.Batch) error {
	if !b.Rewound {
		return nil
	}

	driver, err := o.registry.Driver(b.Network.Slug)
	if err != nil {
		return err
	}

	now := o.now()

	watched, err := tx.DueTransactions(ctx, b.Network.Slug, now.Add(confirmedIntervals[len(confirmedIntervals)-1].until), 0)
	if err != nil {
		return err
	}

	for _, t := range watched {
		if t.Block.Height <= b.ForkedFrom.Height {
			continue
		}

		if blockGone(t, b.Blocks) {
			o.lost(ctx, t)

			d := &walletWorker{Manager: o, network: driver.Network(), party: t.Order.From}
			if _, err := d.moveTx(ctx, tx, t, (*wallet.Transaction).Retract); err != nil {
				return err
			}

			if t, err = tx.Transaction(ctx, t.ID); err != nil {
				return err
			}
		}

		t.DueAt = now // even if it is so: what was seen of it until now is no longer believed, see included
		if err := tx.PutTransaction(ctx, &t); err != nil {
			return err
		}
	}

	return nil
}

// blockGone reports whether canonical blocks prove that the block of a transaction left the chain, and
// took it along.
func blockGone(t wallet.Transaction, canonical []chain.Block) bool {
	displaced := false

	for _, b := range canonical {
		if b.Hash == t.Block.Hash {
			return false
		}

		displaced = displaced || b.Height == t.Block.Height
		if t.State == wallet.Included &&
			slices.ContainsFunc(
				b.Transfers, func(m chain.Transfer) bool { return t.AttemptIndex(m.TxHash) >= 0 },
			) {
			return false
		}
	}

	return displaced
}

// left reports whether a block is proven to be no longer in the chain: another one has its height.
// A node that is not as far yet, or no longer has the block, proves nothing.
func (d *walletWorker) blockReplaced(ctx context.Context, block chain.Ref) (bool, error) {
	at, err := d.driver.RefAt(ctx, block.Height)
	if errors.Is(err, fault.NotFound) || errors.Is(err, fault.Stopped) {
		return false, nil
	}

	if err != nil {
		return false, err
	}

	return at.Hash != block.Hash, nil
}

// died ends a transaction of which no bytes can be included any more. Bytes that merely ran out are
// made again while there is time: nothing of them can happen twice.
func (d *walletWorker) terminate(
	ctx context.Context,
	t wallet.Transaction,
	reason chain.TerminalReason,
) error {
	if reason == chain.ReasonConflict {
		return d.update(ctx, t.ID, fail(wallet.FailConflict))
	}

	if len(t.Attempts) >= maxAttempts || t.Stale(d.now()) {
		return d.update(ctx, t.ID, fail(wallet.FailExpired))
	}

	order := t.Order
	order.Nonce = t.Nonce

	a, err := d.makeAttempt(ctx, t, order)
	if err == nil {
		err = d.storeAttempt(ctx, t, a)
	}

	switch {
	case err == nil:
		return d.broadcast(ctx, t.ID, a.Signed)
	case errors.Is(err, fault.Invalid), errors.Is(err, fault.Unsupported), errors.Is(err, fault.Forbidden):
		return d.update(ctx, t.ID, fail(wallet.FailExpired))
	}

	return err
}

// replace offers the network bytes that pay more for a transaction that has waited too long, within
// its maximum fee; when that cannot be done for long, it queues a transaction to oneself that
// displaces it, so that the wallet goes on. Only the foremost transaction of a wallet is stuck by
// its own fault. A lift that waits in the pool holds up nothing.
func (d *walletWorker) replace(ctx context.Context, t wallet.Transaction, pooled bool) error {
	if !d.hasNonces() && len(t.LastAttempt().Signed.Inputs) == 0 {
		return nil // this network does not replace
	}

	now := d.now()
	if now.Sub(t.LastAttempt().SignedAt) < d.config.ReplaceAfter {
		return nil
	}

	live, err := d.db.LiveTransactions(ctx, t.Network, d.party.Address)
	if err != nil {
		return &storeError{err}
	}

	for _, other := range live {
		if other.Kind == wallet.Cancel && other.ObjectID == t.ID {
			return nil // it is being displaced
		}
	}

	if d.hasNonces() {
		counted, err := d.nonce(ctx)
		if err != nil {
			return err
		}

		if counted < t.Nonce && lowestNonce(t, live) {
			return d.fillGap(ctx, t, counted, live)
		}

		if counted != t.Nonce || !lowestNonce(t, live) {
			return nil // it is its turn no more, or not yet
		}
	}

	if len(t.Attempts) < maxAttempts {
		last := t.LastAttempt().Signed
		order := t.Order

		order.Nonce, order.Replaces = t.Nonce, &last
		if len(last.Inputs) > 0 {
			if order.Coins, err = d.spendableCoins(ctx, t); err != nil {
				return err
			}
		}

		a, err := d.makeAttempt(ctx, t, order)
		if err == nil && len(last.Inputs) > 0 && !sharesCoin(t.Attempts, a.Signed.Inputs) {
			err = fault.New(
				fault.Unavailable,
				"replacement_unsafe",
				"the driver built a replacement of %s that shares no coin with all earlier attempts; it "+
					"was thrown away",
				t.ID,
			)
		}

		if err == nil {
			err = d.storeAttempt(ctx, t, a)
		}

		if err == nil {
			return d.broadcast(ctx, t.ID, a.Signed)
		}

		if d.stops(ctx, err) {
			return err
		}

		d.config.Log.InfoContext(
			ctx, "a waiting transaction could not be replaced",
			"transaction", t.ID, "network", t.Network, "error", publicText(err),
		)
	}

	if now.Sub(t.Attempts[0].SignedAt) < d.config.CancelAfter || t.Kind == wallet.Cancel ||
		t.Kind == wallet.Bump && pooled {
		return nil
	}

	return d.queueCancel(
		ctx,
		wallet.Transaction{Owner: t.Owner, Network: t.Network, Kind: wallet.Cancel, ObjectID: t.ID},
		t.Nonce, &t,
	)
}

// fillGap queues a transaction to oneself for the nonce that nobody holds any more and that keeps t
// waiting. Should the node have lagged and the nonce be taken after all, nothing comes of it.
func (d *walletWorker) fillGap(
	ctx context.Context,
	t wallet.Transaction,
	counted uint64,
	live []wallet.Transaction,
) error {
	nonce, ok := gap(counted, live)
	if !ok {
		return nil
	}

	return d.queueCancel(
		ctx,
		wallet.Transaction{Owner: t.Owner, Network: t.Network, Kind: wallet.Cancel, ObjectID: t.ID},
		nonce, nil,
	)
}

func (d *walletWorker) queueCancel(
	ctx context.Context,
	t wallet.Transaction,
	nonce uint64,
	displaced *wallet.Transaction,
) error {
	native, _ := d.network.Native()
	order := chain.Order{
		From:    d.party,
		Nonce:   nonce,
		Outputs: []chain.Output{{To: d.party.Address, AssetID: native.ID, Amount: chain.Units(1)}},
	}

	if displaced != nil {
		last := displacedBytes(*displaced)

		order.Replaces, order.MaxFee = &last, last.MaxFee.Mul(2)
		if len(last.Inputs) > 0 {
			coins, err := d.spendableCoins(ctx, *displaced)
			if err != nil {
				return err
			}

			order.Outputs[0].Amount, order.SubtractFee = chain.Amount{}, true
			order.Coins = displaced.Order.Coins

			for _, c := range coins {
				for _, in := range last.Inputs {
					if c.Outpoint == in {
						order.Outputs[0].Amount = order.Outputs[0].Amount.Add(c.Amount)
					}
				}
			}
		}
	}

	if estimator, ok := d.driver.(chain.FeeEstimator); ok {
		most, err := estimator.EstimateFee(ctx, order)
		if err != nil {
			return err
		}

		order.MaxFee = chain.Max(order.MaxFee, most)
	}

	order.Replaces = nil // filled in when it is signed
	t.Order = order

	return d.write(ctx, func(ctx context.Context, tx wallet.Tx) error {
		_, err := d.EnqueueTx(ctx, tx, t)
		return err
	})
}
