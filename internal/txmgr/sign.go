package txmgr

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// sign makes the first bytes of a queued transaction, stores them with their nonce or coins, and
// only then hands them to the network.
//
// What fails before anything is signed: a destination that cannot be paid and a signer's refusal
// fail at once. Missing money fails a payout after Config.FundsGrace as chain:insufficient_funds;
// top-ups, fees, sweeps and cancels wait for it until GiveUpAt. Everything else (no answer, fees
// above the maximum) waits until GiveUpAt, and is stale then.
//
// A payout is signed together with those of the rest of what is due that one transaction can pay with it.
func (d *walletWorker) sign(ctx context.Context, t wallet.Transaction, rest []wallet.Transaction) error {
	if t.Stale(d.now()) {
		return d.update(ctx, t.ID, fail(wallet.FailStale))
	}

	if t.Kind == wallet.Cancel && d.hasNonces() {
		if counted, err := d.nonce(ctx); err != nil {
			return err
		} else if counted > t.Order.Nonce {
			// what it was to displace is in a block, or was displaced by others
			return d.update(ctx, t.ID, fail(wallet.FailCanceled))
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
	if err != nil {
		return d.handleSignError(ctx, t, err)
	}

	if err := d.storeAttempt(ctx, t, a); err != nil {
		if errors.Is(err, fault.Duplicate) {
			// The same bytes are on record for an equal transaction: others are made at the next
			// turn, with another time or block hash.
			return d.update(ctx, t.ID)
		}

		return err
	}

	return d.broadcastFirst(ctx, t.ID, a)
}

// first hands the first bytes of a transaction to the network.
func (d *walletWorker) broadcastFirst(ctx context.Context, transactionID string, a wallet.Attempt) error {
	if d.inFlight != nil {
		*d.inFlight++
	}

	return d.broadcast(ctx, transactionID, a.Signed)
}

// full reports whether the wallet has as many transactions in flight as nodes keep of one sender.
// They are counted once per turn: what was included meanwhile makes room in the next.
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

// postponeQueued has transactions that cannot be signed before others are included looked at again
// soon: all in one write, so that a long queue costs no more than a short one.
func (d *walletWorker) postponeQueued(ctx context.Context, queued []string) error {
	if len(queued) == 0 {
		return nil
	}

	return d.write(ctx, func(ctx context.Context, tx wallet.Tx) error {
		for _, id := range queued {
			t, err := tx.Transaction(ctx, id)
			if err != nil {
				return err
			}

			if t.State != wallet.Queued {
				continue
			}

			t.DueAt = d.now().Add(inFlightRetryEvery)
			if err := tx.PutTransaction(ctx, &t); err != nil {
				return err
			}
		}

		return nil
	})
}

func fail(code string) move { return func(t *wallet.Transaction) error { return t.Fail(code) } }

// prepare fills in what the outbox owns: nonce or coins.
func (d *walletWorker) prepare(ctx context.Context, t wallet.Transaction, order *chain.Order) error {
	if t.Kind == wallet.Cancel {
		live, err := d.db.LiveTransactions(ctx, t.Network, d.party.Address)
		if err != nil {
			return &storeError{err}
		}
		// It displaces whatever of ours holds its nonce or coins.
		for _, other := range live {
			held := other.ID == t.ObjectID
			if d.hasNonces() {
				held = other.Nonce == order.Nonce
			}

			if held && len(other.Attempts) > 0 {
				last := displacedBytes(other)
				order.Replaces = &last
			}
		}
	}

	if d.hasNonces() {
		if t.Kind == wallet.Cancel {
			return nil
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

		return nil
	}

	coins, err := d.spendableCoins(ctx, t)
	order.Coins = coins

	return err
}

func (d *walletWorker) hasNonces() bool { _, ok := d.driver.(chain.Nonces); return ok }

// nonce returns the chain's count of the wallet's transactions, asking once per turn.
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

// make builds, signs and assembles an order, and checks that the driver made what was ordered.
func (d *walletWorker) makeAttempt(
	ctx context.Context,
	t wallet.Transaction,
	order chain.Order,
) (wallet.Attempt, error) {
	if err := d.ownsKeys(ctx, order); err != nil {
		return wallet.Attempt{}, err
	}

	unsigned, err := d.sender.Build(ctx, order)
	if err != nil {
		return wallet.Attempt{}, err
	}

	if err := matches(order, unsigned); err != nil {
		return wallet.Attempt{}, err
	}

	objects, err := d.outputObjects(ctx, t, len(unsigned.Outputs))
	if err != nil {
		return wallet.Attempt{}, err
	}

	signatures, err := d.config.Signer.Sign(ctx, chain.SignRequest{
		Network:  t.Network,
		Unsigned: unsigned.Raw,
		Payloads: unsigned.Payloads,
		Intent: chain.Intent{
			Kind:      string(t.Kind),
			ObjectID:  t.ObjectID,
			AccountID: t.Owner.AccountID,
			Outputs:   unsigned.Outputs,
			ObjectIDs: objects,
			MaxFee:    unsigned.MaxFee,
		},
	})
	if err != nil {
		return wallet.Attempt{}, err
	}

	keys := make([]chain.PublicKey, len(unsigned.Payloads))
	for i, p := range unsigned.Payloads {
		if keys[i], err = d.config.Signer.PublicKey(ctx, p.Key); err != nil {
			return wallet.Attempt{}, err
		}
	}

	signed, err := d.sender.Assemble(order, unsigned, keys, signatures)
	if err != nil {
		// Not fault.Invalid: a signer that answered wrongly once says nothing against the order.
		return wallet.Attempt{}, fault.Wrap(
			err, fault.Unavailable, "assemble_failed", "the signatures for %s %s do not fit it",
			t.Kind, t.ID,
		)
	}

	if signed.TxHash == "" || (d.hasNonces() && signed.Nonce != order.Nonce) {
		return wallet.Attempt{}, fault.New(
			fault.Unavailable, "assemble_failed",
			"the driver assembled %s %s with another nonce than ordered, or without a hash",
			t.Kind, t.ID,
		)
	}

	return wallet.Attempt{Signed: signed, SignedAt: d.now()}, nil
}

// ownsKeys refuses an order that spends from a wallet whose key is somebody else's.
func (d *walletWorker) ownsKeys(ctx context.Context, order chain.Order) error {
	parties := []chain.Party{order.From}
	if order.FeePayer != nil {
		parties = append(parties, *order.FeePayer)
	}

	if order.Bumps != nil {
		parties = append(parties, order.Bumps.Owner)
	}

	for _, c := range order.Coins {
		if !slices.Contains(parties, c.Owner) {
			parties = append(parties, c.Owner)
		}
	}

	for _, p := range parties {
		own, err := d.Party(ctx, d.network.Slug, p.Key)
		if errors.Is(err, fault.Unsupported) {
			continue // Assemble checks the signature
		}

		if err != nil {
			return err
		}

		if own.Address != p.Address {
			return chain.Refuse("watch_only")
		}
	}

	return nil
}

// matches checks that a built transaction pays what its order says and costs no more than it may: a
// driver with a fault must not get a signature.
func matches(order chain.Order, unsigned chain.Unsigned) error {
	wrong := func(what string) error {
		return fault.New(
			fault.Unavailable, "build_mismatch",
			"the driver built a transaction from %s that %s; it was not signed",
			order.From.Address, what,
		)
	}
	if order.MaxFee.Less(unsigned.MaxFee) {
		return wrong("may cost more than its maximum fee")
	}

	if len(unsigned.Outputs) < len(order.Outputs) || len(unsigned.Payloads) == 0 {
		return wrong("leaves out payments or signatures")
	}

	if order.Bumps != nil && !slices.Contains(unsigned.Inputs, order.Bumps.Outpoint) {
		return wrong("does not spend the payment that it is to lift")
	}

	for i, want := range order.Outputs {
		got := unsigned.Outputs[i]

		same := got == want
		if order.SubtractFee && i == len(order.Outputs)-1 {
			same = got.To == want.To && got.AssetID == want.AssetID && got.Amount.Less(want.Amount)
		}

		if !same {
			return wrong("pays something else than ordered")
		}
	}

	return nil
}

// unsigned decides what an error before the first signature means.
func (d *walletWorker) handleSignError(ctx context.Context, t wallet.Transaction, err error) error {
	if refusal, ok := errors.AsType[*chain.Refusal](err); ok {
		return d.update(ctx, t.ID, fail(wallet.FailSignerRefused+reasonCode(refusal.Reason)))
	}

	switch {
	case t.Kind == wallet.Bump && errors.Is(err, fault.NotFound):
		return d.update(
			ctx, t.ID, fail(wallet.FailCanceled),
		) // it is in a block, replaced, or pays enough by now
	case t.Kind == wallet.Cancel:
		// Nobody waits for it to fail; the wallet waits for it to happen.
	case errors.Is(err, fault.Invalid), errors.Is(err, fault.Unsupported):
		return d.update(ctx, t.ID, fail(wallet.FailNotPayable))
	case errors.Is(err, fault.State) && t.Kind == wallet.Payout && d.now().Sub(t.CreatedAt) >= d.config.FundsGrace:
		return d.update(ctx, t.ID, fail(wallet.FailInsufficientFunds))
	}

	return err
}

// reasonCode keeps what a failure code may hold of a signer's reason.
func reasonCode(s string) string {
	clean := []byte{}

	for _, c := range []byte(s) {
		if c == '_' || c == '-' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			(c >= 'A' && c <= 'Z') {
			clean = append(clean, c)
		}

		if len(clean) == 64 {
			break
		}
	}

	if len(clean) == 0 {
		return "unspecified"
	}

	return string(clean)
}

// store keeps signed bytes, their hash, and the nonce or coins that they use, in one transaction.
// With the first bytes come the rows that they pay besides: one that was moved meanwhile, or whose
// time is over, has the signatures thrown away.
func (d *walletWorker) storeAttempt(ctx context.Context, t wallet.Transaction, a wallet.Attempt) error {
	return d.write(ctx, func(ctx context.Context, tx wallet.Tx) error {
		stored, err := tx.Transaction(ctx, t.ID)
		if err != nil {
			return err
		}

		if stored.State != t.State || len(stored.Attempts) != len(t.Attempts) {
			return &illegalMove{
				fault.New(
					fault.State, "transaction_state",
					"transaction %s was moved while it was signed; the signatures were thrown away",
					t.ID,
				),
			}
		}

		if len(stored.Attempts) == 0 {
			if err := d.joinTx(ctx, tx, &stored, t); err != nil {
				return err
			}
		}

		if err := tx.PutAttemptHash(ctx, t.Network, a.Signed.TxHash, t.ID, t.Kind); err != nil {
			return err
		}

		if d.hasNonces() && len(t.Attempts) == 0 {
			if err := d.advanceNonceTx(ctx, tx, t, a.Signed.Nonce); err != nil {
				return err
			}
		}

		if err := d.reserveBumpTx(ctx, tx, stored, a.Signed.Inputs); err != nil {
			return err
		}

		if err := d.reserveCoinsTx(ctx, tx, stored, a.Signed.Inputs); err != nil {
			return err
		}

		_, err = d.moveTx(ctx, tx, stored, func(t *wallet.Transaction) error { return t.Sign(a) })

		return err
	})
}

// advanceNonceTx advances the wallet's counter. A nonce that was given out meanwhile is not given out twice.
func (d *walletWorker) advanceNonceTx(
	ctx context.Context,
	tx wallet.Tx,
	t wallet.Transaction,
	nonce uint64,
) error {
	w, found, err := tx.Wallet(ctx, t.Network, d.party.Address)
	if err != nil {
		return err
	}

	if !found {
		w = wallet.Wallet{Network: t.Network, Party: d.party}
	}

	if t.Kind != wallet.Cancel && nonce < w.NextNonce {
		return &illegalMove{
			fault.New(
				fault.State, "nonce_taken",
				"nonce %d of %s was signed already; transaction %s is built again",
				nonce, d.party.Address, t.ID,
			),
		}
	}

	advanceNonce(&w, nonce)

	return tx.PutWallet(ctx, &w)
}

// broadcast hands stored bytes to the network and records what it said. No answer decides anything:
// the bytes are looked up, and sent again.
func (d *walletWorker) broadcast(ctx context.Context, transactionID string, signed chain.Signed) error {
	at := d.now()

	err := d.sender.Broadcast(ctx, signed)
	if ctx.Err() != nil {
		return ctx.Err()
	}

	problem := ""
	moves := []move{}

	if err != nil {
		problem = publicText(err)
	} else {
		moves = append(moves, func(t *wallet.Transaction) error { return t.Taken(signed.TxHash, at) })
	}

	moves = append(
		[]move{func(t *wallet.Transaction) error { return t.Sent(signed.TxHash, at, problem) }},
		moves...)

	return d.update(ctx, transactionID, moves...)
}
