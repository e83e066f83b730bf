package ingest

import (
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// The waits between attempts of a retry row that a record or a hook refused: they double from the first to the last.
const (
	retryFirst = time.Minute
	retryLast  = time.Hour
)

// The waits of a row that nothing refused, but whose block or balances could not be read yet: a part of the time
// that it waits already, from the first to the last.
const (
	unreadFirst = 2 * time.Second
	unreadLast  = time.Minute
	unreadPart  = 60
)

// QueueRetryTx stores a retry row for a transfer that was excluded from a batch
// (PreparedBatch.Without) because storing it failed with cause. It belongs in the transaction that
// applies the rest of the batch.
func (s *Ingester) QueueRetryTx(
	ctx context.Context,
	tx invoice.Tx,
	p PreparedBatch,
	key invoice.TransferKey,
	cause error,
) error {
	now := s.now()
	network := p.batch.Network.Slug
	r := scan.Retry{
		ID:        s.ids.Next(),
		Network:   network,
		Error:     short(cause),
		Attempts:  1,
		DueAt:     now.Add(retryFirst),
		CreatedAt: now,
		Transfer: chain.Transfer{
			TxHash:  key.TxHash,
			Index:   key.Index,
			To:      key.To,
			AssetID: key.AssetID,
		},
	}

	shown := false
	for _, m := range p.Only(key).transfers() {
		r.Transfer, r.Block, shown = m.Transfer, m.at, true
	}

	if !shown {
		stored, err := paymentsByKey(ctx, tx, network, key)
		if err != nil || len(stored) == 0 {
			return err
		}

		q := stored[0]
		r.Block = q.Block
		r.Transfer.From, r.Transfer.To = q.FromAddress, q.Address
		r.Transfer.AssetID, r.Transfer.Amount = q.AssetID, q.Amount
	}

	return tx.PutRetry(ctx, &r)
}

// short returns the text of an error, at most 500 bytes and an ellipsis.
func short(err error) string {
	const most = 500

	text := err.Error()
	if len(text) <= most {
		return text
	}

	text = text[:most]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}

	return text + "…"
}

// errBlockUnread is in the error of a retry row whose block could not be read.
var errBlockUnread = errors.New("no node answered for it")

// PreparedRetry is a retry row with the batch that stores its transfer.
type PreparedRetry struct {
	row   scan.Retry
	batch PreparedBatch
	// late is what was read of a transfer that was not measured with its block; nil for others.
	late *lateReading
}

// PrepareRetry prepares the transfer of a row. It fails while the node does not show the row's block: a node on another
// branch proves nothing. The follower rewinds where the chain does, and forgets the row (forgetRetries).
func (s *Ingester) PrepareRetry(ctx context.Context, r scan.Retry) (PreparedRetry, error) {
	driver, err := s.registry.Driver(r.Network)
	if err != nil {
		return PreparedRetry{}, err
	}

	b := follow.Batch{Network: driver.Network()}

	out := PreparedRetry{row: r}
	if r.Block.IsZero() {
		b.Pool = []chain.PoolTx{{TxHash: r.Transfer.TxHash, Transfers: []chain.Transfer{r.Transfer}}}
	} else {
		ref, err := driver.RefAt(ctx, r.Block.Height)
		if err == nil && ref.Hash != r.Block.Hash {
			err = errors.New("the node has another block there")
		}

		if err != nil {
			return PreparedRetry{}, fault.Wrap(
				errors.Join(errBlockUnread, err), fault.State, "block_unknown",
				"block %d of %s could not be read; its payment waits", r.Block.Height, r.Network,
			)
		}

		b.Blocks = []chain.Block{{Ref: r.Block, Transfers: []chain.Transfer{r.Transfer}}}
	}

	p, err := s.PrepareBatch(ctx, b)
	if err != nil {
		return PreparedRetry{}, err
	}

	out.batch = p.Only(invoicestate.KeyOf(r.Transfer))
	out.batch.retry, out.batch.partial = r.ID, true

	if p.unmeasured[arrivalKey{r.Block.Hash, invoicestate.KeyOf(r.Transfer)}] {
		out.late, err = s.readLate(ctx, driver, r)
	}

	return out, err
}

// maxRetries is the most retry rows that AllRetries returns.
const maxRetries = 10000

// AllRetries returns the retry rows of a network, due or not, up to 10,000.
func AllRetries(ctx context.Context, r scan.Reader, network string, now time.Time) ([]scan.Retry, error) {
	return r.Retries(ctx, network, now.AddDate(100, 0, 0), maxRetries)
}

// RetryTx stores the transfer of a retry row and deletes the row. It fails with fault.State and code
// balance_unmeasured while nothing says how much of a token arrived, and with fault.Conflict where another process
// changed the row since it was read, or a fork that took its block.
func (s *Ingester) RetryTx(ctx context.Context, tx Tx, p PreparedRetry) error {
	if err := tx.PutRetry(ctx, &p.row); err != nil {
		return err
	}

	cursor, _, err := tx.Cursor(ctx, p.row.Network)
	if err != nil {
		return err
	}

	if p.late != nil {
		if p.batch, err = s.measureLate(ctx, tx, p, cursor); err != nil {
			return err
		}
	}

	if err := s.ApplyTx(ctx, tx, p.batch, cursor); err != nil {
		return err
	}

	return tx.DeleteRetry(ctx, p.row.ID)
}

// forgetRetries deletes the rows whose blocks a fork took: the blocks of the new branch show what is in them, and the
// batches that have them record it.
func (in *intake) forgetRetries(ctx context.Context) error {
	if !in.p.batch.Rewound {
		return nil
	}

	rows, err := AllRetries(ctx, in.tx, in.n.Slug, in.now)
	if err != nil {
		return err
	}

	for _, r := range rows {
		stays := slices.ContainsFunc(
			in.p.batch.Blocks,
			func(b chain.Block) bool { return b.Hash == r.Block.Hash },
		)
		if stays || r.Block.Height <= in.p.batch.ForkedFrom.Height {
			continue
		}

		if err := in.tx.DeleteRetry(ctx, r.ID); err != nil {
			return err
		}
	}

	return nil
}

// PostponeRetryTx records another failure of a retry row. The wait doubles, up to an hour, where something refused
// it; what could not be read is asked for again soon.
func (s *Ingester) PostponeRetryTx(ctx context.Context, tx invoice.Tx, r scan.Retry, cause error) error {
	now := s.now()
	r.Error = short(cause)

	if isUnread(cause) {
		r.DueAt = now.Add(unreadWait(now.Sub(r.CreatedAt)))

		return tx.PutRetry(ctx, &r)
	}

	wait := retryFirst
	for range r.Attempts {
		wait = min(2*wait, retryLast)
	}

	r.Attempts++
	r.DueAt = now.Add(wait)

	return tx.PutRetry(ctx, &r)
}

// isUnread reports whether a retry row failed because its block or balances could not be read, or compared, yet.
func isUnread(err error) bool {
	return errors.Is(err, errUnmeasured) || errors.Is(err, errBlockUnread)
}

// unreadWait returns how long a row waits until it is asked for again that waits for some time already.
func unreadWait(age time.Duration) time.Duration {
	return min(max(age/unreadPart, unreadFirst), unreadLast)
}

// UnreadSince returns the receivers of the payments in retry rows that wait because their block or balances could
// not be read yet, each with when the first of them began to.
func UnreadSince(rows []scan.Retry) map[chain.Address]time.Time {
	since := map[chain.Address]time.Time{}

	for _, r := range rows {
		if r.Attempts > 0 {
			continue // something refused it
		}

		if first, known := since[r.Transfer.To]; !known || r.CreatedAt.Before(first) {
			since[r.Transfer.To] = r.CreatedAt
		}
	}

	return since
}
