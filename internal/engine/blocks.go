package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/ingest"
	"github.com/seed-8ee7f392/payments/invoice"
)

// blockHandler stores the followers' batches: one transaction per batch, beginning with the cursor's move.
type blockHandler struct{ engine *Engine }

// maxPrepares is how often a batch is prepared, if records appear between its preparation and its
// transaction.
const maxPrepares = 5

// Apply stores a batch; it is the handler of a follow.Follower.
//
// If single transfers make storing fail (a damaged record, a host's hook that refuses), they become retry
// rows in the transaction that moves the cursor. The others are stored: one bad record never stalls a
// network.
func (s blockHandler) Apply(ctx context.Context, b follow.Batch) (err error) {
	if err := s.engine.watchWallets(ctx, b.Network); err != nil {
		return err
	}

	for range maxPrepares {
		p, prepErr := s.engine.Ingester.PrepareBatch(ctx, b)
		if prepErr != nil {
			return prepErr
		}

		err = s.store(ctx, b, p, nil)
		if err != nil && isRecordError(ctx, err) && len(p.Keys()) > 0 {
			err = s.storeAccepted(ctx, b, p, err)
		}

		if !isStale(err) {
			return err
		}
	}

	return err
}

// isStale reports whether a batch has to be prepared anew. Between the preparation and the transaction, an
// address was shown to a payer, or a hint stored a payment.
func isStale(err error) bool {
	return errors.Is(err, fault.Conflict) || errors.Is(err, fault.Duplicate) ||
		errors.Is(err, invoice.ErrUnprepared)
}

// store moves the cursor and stores a batch, with retry rows for the transfers in refused.
func (s blockHandler) store(
	ctx context.Context,
	b follow.Batch,
	p ingest.PreparedBatch,
	refused map[invoice.TransferKey]error,
) error {
	accepted := p

	if len(refused) > 0 {
		keys := make([]invoice.TransferKey, 0, len(refused))
		for key := range refused {
			keys = append(keys, key)
		}

		accepted = p.Without(keys...)
	}

	return s.engine.Update(ctx, func(ctx context.Context, tx Tx) error {
		cursor, err := b.Advance(ctx, tx)
		if err != nil {
			return err
		}

		for key, cause := range refused {
			if err := s.engine.Ingester.QueueRetryTx(ctx, tx, p, key, cause); err != nil {
				return err
			}
		}

		// This comes before its consequences: these rows prove the effects of our transactions.
		ours := parties(tx, b.Network.Space())
		if err := s.engine.Transactions.RecordOutgoingTx(ctx, tx, b, ours); err != nil {
			return err
		}

		if err := rereadTx(ctx, tx, b); err != nil {
			return err
		}

		// This comes before the payments: it distinguishes a payment that is back from a sweep that is not.
		if err := s.engine.Transactions.ApplyForkTx(ctx, tx, b); err != nil {
			return err
		}

		// The fork's effect on our transactions is applied before its effect on payments: an invoice whose
		// refund is under way again is not refunded.
		if err := s.engine.React(ctx, tx); err != nil {
			return err
		}

		if err := s.engine.Ingester.ApplyTx(ctx, tx, accepted, cursor); err != nil {
			return err
		}

		// This comes after the payments: their invoices are locked before balances everywhere.
		if err := s.engine.Transactions.RewindBalancesTx(ctx, tx, b); err != nil {
			return err
		}

		return s.engine.Transactions.IndexCoinsTx(ctx, tx, b, ours)
	})
}

// rereadTx has blocks with own transactions read again if only one node vouches for them.
func rereadTx(ctx context.Context, tx Tx, b follow.Batch) error {
	unproven := b.Unproven()
	if len(unproven) == 0 {
		return nil
	}

	rows, err := tx.OutgoingAbove(ctx, b.Network.Slug, unproven[0]-min(unproven[0], 1))
	if err != nil {
		return err
	}

	ours := slices.DeleteFunc(unproven, func(height uint64) bool {
		return !slices.ContainsFunc(
			rows,
			func(row wallet.Outgoing) bool { return row.Block.Height == height },
		)
	})

	return b.RereadTx(ctx, tx, ours)
}

// ownIn returns a function that lists the own transactions of a network that are stored in a block.
func (e *Engine) ownIn(network string) func(ctx context.Context, at chain.Ref) ([]string, error) {
	return func(ctx context.Context, at chain.Ref) (hashes []string, err error) {
		rows, err := e.config.Store.OutgoingAbove(ctx, network, at.Height-min(at.Height, 1))

		for _, row := range rows {
			if row.Block.Hash == at.Hash && !slices.Contains(hashes, row.TxHash) {
				hashes = append(hashes, row.TxHash)
			}
		}

		return hashes, err
	}
}

// errTrialPassed rolls back a trial that passed.
var errTrialPassed = errors.New("the trial went through")

// storeAccepted finds the refused transfers, each in a trial transaction of its own, and stores the others.
func (s blockHandler) storeAccepted(
	ctx context.Context,
	b follow.Batch,
	p ingest.PreparedBatch,
	cause error,
) error {
	refused := map[invoice.TransferKey]error{}

	for _, key := range p.Keys() {
		err := s.engine.Update(ctx, func(ctx context.Context, tx Tx) error {
			cursor, err := b.Advance(ctx, tx)
			if err != nil {
				return err
			}

			if err := s.engine.Ingester.ApplyTx(ctx, tx, p.Only(key), cursor); err != nil {
				return err
			}

			// Reactions and the host's hook belong to the trial.
			trial := tx.(*transaction)
			if err := trial.finish(ctx); err != nil {
				return err
			}

			// So do refusals of the store: a read of the written rows makes the store send them.
			if _, err := trial.PaymentsByHash(ctx, b.Network.Slug, []string{key.TxHash}); err != nil {
				return err
			}

			return errTrialPassed
		})
		switch {
		case errors.Is(err, errTrialPassed):
		case isRecordError(ctx, err):
			refused[key] = err
		default:
			return err
		}
	}

	if len(refused) == 0 {
		return cause // no single transfer is the cause
	}

	s.engine.config.Log.ErrorContext(
		ctx, "payments could not be stored and are tried again by themselves",
		"network", b.Network.Slug, "payments", len(refused), "error", cause,
	)

	return s.store(ctx, b, p, refused)
}

// isRecordError reports whether an error is due to one record, not to the store, a lost lease, a conflict or
// the context.
func isRecordError(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !isStale(err) && !errors.Is(err, fault.LeaseLost) &&
		(!errors.Is(err, fault.Unavailable) || isDamaged(err)) &&
		!errors.Is(err, fault.Stopped)
}

// isDamaged reports whether the cause is a row that this service did not write. Its tag may name any key, so
// an unknown key is no reason to stop either.
func isDamaged(err error) bool {
	switch fault.Code(err) {
	case "account_damaged", "address_damaged", "invoice_damaged", "deposit_address_damaged", "payout_damaged",
		"secret_key_unknown":
		return true
	}

	return false
}

// retry stores up to 20 refused payments of a network whose retry is due, and reports whether any succeeded.
func (e *Engine) retry(ctx context.Context, network string) (did bool, err error) {
	rows, err := e.config.Store.Retries(ctx, network, e.config.Now(), 20)
	if err != nil {
		return false, err
	}

	for _, r := range rows {
		p, err := e.Ingester.PrepareRetry(ctx, r)
		if err == nil {
			err = e.Update(
				ctx,
				func(ctx context.Context, tx Tx) error { return e.Ingester.RetryTx(ctx, tx, p) },
			)
		}

		if err == nil {
			did = true
			continue
		}

		if errors.Is(err, fault.Conflict) {
			continue // another process stored it, or a fork moved its payment: it is read again
		}

		if !isRecordError(ctx, err) {
			return did, fmt.Errorf("trying payment %s:%d again: %w", r.Transfer.TxHash, r.Transfer.Index, err)
		}

		cause := err
		if err := e.Update(
			ctx,
			func(ctx context.Context, tx Tx) error { return e.Ingester.PostponeRetryTx(ctx, tx, r, cause) },
		); err != nil {
			return did, err
		}
	}

	return did, nil
}

// unread returns since when payments to addresses of a network have waited for their block or balances to be
// read.
func (e *Engine) unread(ctx context.Context, network string) (map[chain.Address]time.Time, error) {
	rows, err := ingest.AllRetries(ctx, e.config.Store, network, e.config.Now())

	return ingest.UnreadSince(rows), err
}
