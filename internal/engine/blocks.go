package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/ingest"
	"github.com/seed-8ee7f392/payments/invoice"
)

// sink stores what the followers find: one transaction per batch, the cursor's move first.
type blockHandler struct{ engine *Engine }

// prepareAgain is how often a batch is prepared anew because something it did not know of appeared
// between its preparation and its transaction.
const prepareAgain = 5

// Apply implements watch.Sink. When storing fails for the sake of single transfers (a damaged
// record, a host's hook that refuses), those become retry rows in the transaction that moves the
// cursor, and the rest is stored: one bad record never stalls a network.
func (s blockHandler) Apply(ctx context.Context, b follow.Batch) (err error) {
	if err := s.engine.watchWallets(ctx, b.Network); err != nil {
		return err
	}

	for range prepareAgain {
		p, prepErr := s.engine.Ingester.PrepareBatch(ctx, b)
		if prepErr != nil {
			return prepErr
		}

		err = s.store(ctx, b, p, nil)
		if err != nil && ofItsOwn(ctx, err) && len(p.Keys()) > 0 {
			err = s.storeRest(ctx, b, p, err)
		}

		if !changed(err) {
			return err
		}
	}

	return err
}

// changed reports whether something that was prepared is no longer so: an address was shown to a
// payer, or a hint stored a payment, between the preparation and the transaction.
func changed(err error) bool {
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
	rest := p

	if len(refused) > 0 {
		keys := make([]invoice.TransferKey, 0, len(refused))
		for key := range refused {
			keys = append(keys, key)
		}

		rest = p.Without(keys...)
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
		// Before the payments: one that is back by now is told from the sweep that is not.
		if err := s.engine.Transactions.ForkTx(ctx, tx, b); err != nil {
			return err
		}

		if err := s.engine.Ingester.ApplyTx(ctx, tx, rest, cursor); err != nil {
			return err
		}
		// After the payments, whose invoices are locked before balances everywhere.
		return s.engine.Transactions.IndexCoinsTx(ctx, tx, b, parties(tx, b.Network.Space()))
	})
}

// errTried rolls a trial back that would have gone through.
var errTried = errors.New("the trial went through")

// storeRest finds out which transfers are refused, each in a trial of its own, and stores the others.
func (s blockHandler) storeRest(
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
			if err := tx.(*transaction).finish(ctx); err != nil {
				return err
			}

			return errTried
		})
		switch {
		case errors.Is(err, errTried):
		case ofItsOwn(ctx, err):
			refused[key] = err
		default:
			return err
		}
	}

	if len(refused) == 0 {
		return cause // no single transfer is to blame
	}

	s.engine.config.Log.ErrorContext(
		ctx, "payments could not be stored and are tried again by themselves",
		"network", b.Network.Slug, "payments", len(refused), "error", cause,
	)

	return s.store(ctx, b, p, refused)
}

// ofItsOwn reports whether an error is a record's own fault, and not the store's, a rival's or the context's.
func ofItsOwn(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !changed(err) && !errors.Is(err, fault.LeaseLost) &&
		!errors.Is(err, fault.Unavailable) &&
		!errors.Is(err, fault.Stopped)
}

// retry tries refused payments of a network again.
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

		if !ofItsOwn(ctx, err) {
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
