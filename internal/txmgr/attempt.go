package txmgr

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// makeAttempt builds, signs and assembles an order, and checks the driver's result against the order.
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

	keys, signatures, err := d.requestSignatures(ctx, t, unsigned)
	if err != nil {
		return wallet.Attempt{}, err
	}

	signed, err := d.sender.Assemble(order, unsigned, keys, signatures)
	if err != nil {
		// Not fault.Invalid: one wrong answer of the signer proves nothing against the order.
		return wallet.Attempt{}, fault.Wrap(
			err, fault.Unavailable, "assemble_failed", "the signatures for %s %s do not fit it",
			t.Kind, t.ID,
		)
	}

	if err := d.isOrdered(t, order, signed); err != nil {
		return wallet.Attempt{}, err
	}

	coins := order.Coins
	if order.Bumps != nil {
		coins = append(slices.Clone(coins), *order.Bumps)
	}

	cursor, _, err := d.db.Cursor(ctx, t.Network)
	if err != nil {
		return wallet.Attempt{}, &storeError{err}
	}

	if err := d.addOwnParents(ctx, &signed, coins, cursor.At.Height); err != nil {
		return wallet.Attempt{}, err
	}

	return wallet.Attempt{Signed: signed, SignedAt: d.now(), SignedHeight: cursor.At.Height}, nil
}

// isOrdered returns fault.Unavailable unless the assembled transaction has the ordered nonce and a hash.
func (d *walletWorker) isOrdered(t wallet.Transaction, order chain.Order, signed chain.Signed) error {
	if signed.TxHash == "" || (d.hasNonces() && signed.Nonce != order.Nonce) {
		return fault.New(
			fault.Unavailable, "assemble_failed",
			"the driver assembled %s %s with another nonce than ordered, or without a hash",
			t.Kind, t.ID,
		)
	}

	if !sameNonce(order, signed) {
		return fault.New(
			fault.Unavailable, "assemble_failed",
			"the driver assembled %s %s with another durable nonce than ordered", t.Kind, t.ID,
		)
	}

	return nil
}

// requestSignatures returns the signer's signatures of a built transaction and the public key of each.
func (d *walletWorker) requestSignatures(
	ctx context.Context,
	t wallet.Transaction,
	unsigned chain.Unsigned,
) ([]chain.PublicKey, [][]byte, error) {
	objects, err := d.outputObjects(ctx, t, len(unsigned.Outputs))
	if err != nil {
		return nil, nil, err
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
		return nil, nil, err
	}

	keys := make([]chain.PublicKey, len(unsigned.Payloads))
	for i, p := range unsigned.Payloads {
		if keys[i], err = d.config.Signer.PublicKey(ctx, p.Key); err != nil {
			return nil, nil, err
		}
	}

	return keys, signatures, nil
}

// ownsKeys returns a watch_only Refusal for an order that spends from an address whose key is not ours.
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

// matches checks a built transaction against its order before it is signed: outputs, maximum fee (base
// units of the native coin), and the payment that a CPFP bump spends. A mismatch is fault.Unavailable
// with code build_mismatch.
func matches(order chain.Order, unsigned chain.Unsigned) error { // spec D5.9
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
		return wrong("does not spend the payment that it is to bump")
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

// storeAttempt stores signed bytes, their hash, and the nonce or coins that they use, in one transaction.
// With the first bytes, the batch members join. If the row was moved meanwhile or is stale, storeAttempt
// returns an illegalMove, and the signatures are discarded.
func (d *walletWorker) storeAttempt(ctx context.Context, t wallet.Transaction, a wallet.Attempt) error {
	// spec D5.2
	return d.storeAttemptAfter(ctx, t, a, dropOutputsTx)
}

// storeAttemptAfter is storeAttempt with a closure that runs first in its store transaction, on the
// transaction as it is stored.
func (d *walletWorker) storeAttemptAfter(
	ctx context.Context,
	t wallet.Transaction,
	a wallet.Attempt,
	before func(ctx context.Context, tx wallet.Tx, stored wallet.Transaction) error,
) error {
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

		if err := before(ctx, tx, stored); err != nil {
			return err
		}

		if len(stored.Attempts) == 0 {
			if err := d.refuseFrozenTx(ctx, tx, t); err != nil {
				return err
			}

			if err := d.joinTx(ctx, tx, &stored, t); err != nil {
				return err
			}
		}

		if err := d.takeNonceTx(ctx, tx, t, a); err != nil {
			return err
		}

		if err := d.reserveBumpTx(ctx, tx, stored, a.Signed.Inputs); err != nil {
			return err
		}

		if err := d.reserveCoinsTx(ctx, tx, stored, a.Signed.Inputs); err != nil {
			return err
		}

		_, err = d.moveTx(
			ctx,
			tx,
			stored,
			func(t *wallet.Transaction) error { return walletstate.Sign(t, a) },
		)

		return err
	})
}

// takeNonceTx stores the hash of an attempt and the nonce that it uses up: its durable nonce, or the wallet's
// next one.
func (d *walletWorker) takeNonceTx(
	ctx context.Context,
	tx wallet.Tx,
	t wallet.Transaction,
	a wallet.Attempt,
) error {
	if walletstate.AttemptIndex(&t, a.Signed.TxHash) < 0 {
		if err := tx.PutAttemptHash(ctx, t.Network, a.Signed.TxHash, t.ID, t.Kind); err != nil {
			return err
		}
	}

	if err := d.putNonceTx(ctx, tx, t, a.Signed); err != nil {
		return err
	}

	if d.hasNonces() && len(t.Attempts) == 0 {
		if err := d.advanceNonceTx(ctx, tx, t, a.Signed.Nonce); err != nil {
			return err
		}
	}

	return nil
}

// advanceNonceTx raises the wallet's NextNonce above a signed nonce. If that nonce was signed meanwhile, it
// returns an illegalMove.
func (d *walletWorker) advanceNonceTx(
	ctx context.Context,
	tx wallet.Tx,
	t wallet.Transaction,
	nonce uint64,
) error {
	w, _, err := d.walletOf(ctx, tx, t.Network, d.party)
	if err != nil {
		return err
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
