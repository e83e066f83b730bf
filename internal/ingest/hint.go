package ingest

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/invoice"
)

// preparedHint holds what looking a transaction up gave.
type preparedHint struct {
	result  invoice.HintResult
	batches []PreparedBatch
}

// PrepareHint looks a transaction up on the networks of the invoice's selected options. A network
// that gives no answer is fault.Unavailable unless another one found it.
func (s *Ingester) PrepareHint(
	ctx context.Context,
	invoiceID, txHash string,
) (invoice.Commit[invoice.HintResult], error) {
	inv, err := s.db.InvoiceByID(ctx, invoiceID)
	if err != nil {
		return nil, err
	}

	var networks []string

	ours := map[chain.Address]bool{}

	for _, o := range inv.Options {
		if !o.Selected() {
			continue
		}

		ours[o.Address] = true
		if !slices.Contains(networks, o.Network) {
			networks = append(networks, o.Network)
		}
	}

	return s.commitHint(s.prepareHint(ctx, txHash, networks, ours))
}

// PrepareDepositHint looks a transaction up on the network of an owner's deposit address.
func (s *Ingester) PrepareDepositHint(
	ctx context.Context,
	owner event.Owner,
	depositID, txHash string,
) (invoice.Commit[invoice.HintResult], error) {
	d, err := s.db.DepositAddress(ctx, owner, depositID)
	if err != nil {
		return nil, err
	}

	return s.commitHint(
		s.prepareHint(ctx, txHash, []string{d.Network}, map[chain.Address]bool{d.Address: true}),
	)
}

// prepareHint looks a transaction up on each of the networks.
func (s *Ingester) prepareHint(
	ctx context.Context,
	txHash string,
	networks []string,
	ours map[chain.Address]bool,
) (preparedHint, error) {
	out := preparedHint{result: invoice.HintUnusable}

	var failed error

	for _, network := range networks {
		driver, err := s.registry.Driver(network)
		if err != nil {
			continue
		}

		finder, ok := driver.(chain.Finder)
		if !ok {
			continue
		}

		if out.result == invoice.HintUnusable {
			out.result = invoice.HintNotFound
		}

		found, err := finder.Transaction(ctx, txHash)
		switch {
		case errors.Is(err, fault.NotFound) || errors.Is(err, fault.Invalid):
			continue
		case err != nil:
			failed = err
			continue
		}

		if err := s.addFound(ctx, &out, driver, ours, found); err != nil {
			return preparedHint{}, err
		}
	}

	if failed != nil && out.result != invoice.HintFound {
		return preparedHint{}, failed
	}

	return out, nil
}

// addFound adds a transaction that a network knows: its result, and its batch where it pays one of ours.
func (s *Ingester) addFound(
	ctx context.Context,
	out *preparedHint,
	driver chain.Driver,
	ours map[chain.Address]bool,
	found chain.FoundTx,
) error {
	switch {
	case out.result == invoice.HintFound:
	case found.Failed:
		out.result = invoice.HintFailed
	case out.result != invoice.HintFailed:
		out.result = invoice.HintForeign
	}

	b, err := s.hintBatch(ctx, driver, ours, found)
	if err != nil || b == nil {
		return err
	}

	p, err := s.PrepareBatch(ctx, *b)
	if err != nil {
		return err
	}

	p.detectedBy, out.result = invoice.ByHint, invoice.HintFound

	var keys []invoice.TransferKey
	for _, t := range p.transfers() {
		keys = append(keys, t.key())
	}

	out.batches = append(out.batches, p.Only(keys...))

	return nil
}

// hintBatch returns a batch of those transfers of a transaction that go to addresses of ours, or nil. A block
// that was not read yet is omitted: the transaction waits until the follower has checked that block.
func (s *Ingester) hintBatch(
	ctx context.Context,
	driver chain.Driver,
	ours map[chain.Address]bool,
	found chain.FoundTx,
) (*follow.Batch, error) {
	n := driver.Network()

	var transfers []chain.Transfer

	for _, t := range found.Transfers {
		if ours[t.To] && !t.Amount.IsZero() {
			transfers = append(transfers, t)
		}
	}

	if found.Failed || len(transfers) == 0 {
		return nil, nil
	}

	b := &follow.Batch{Network: n}

	cursor, err := s.cursor(ctx, n.Slug)
	if err != nil {
		return nil, err
	}

	if !found.Block.IsZero() && found.Block.Height <= cursor.At.Height {
		ref, err := driver.RefAt(ctx, found.Block.Height)
		if err != nil {
			return nil, err
		}

		if ref.Hash == found.Block.Hash {
			b.Blocks = []chain.Block{{Ref: ref, Transfers: transfers}}
			return b, nil
		}
	}

	b.Pool = []chain.PoolTx{{TxHash: found.TxHash, Transfers: transfers}}

	return b, nil
}

// cursor returns the cursor of a network.
func (s *Ingester) cursor(ctx context.Context, network string) (scan.Cursor, error) {
	var cursor scan.Cursor

	err := s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		cursor, _, err = tx.Cursor(ctx, network)
		return err
	})

	return cursor, err
}

// commitHint returns the commit of a prepared hint.
func (s *Ingester) commitHint(p preparedHint, err error) (invoice.Commit[invoice.HintResult], error) {
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx invoice.Tx) (invoice.HintResult, error) { return s.hintTx(ctx, tx, p) }, nil
}

// hintTx stores what a hint found.
func (s *Ingester) hintTx(ctx context.Context, tx invoice.Tx, p preparedHint) (invoice.HintResult, error) {
	for _, b := range p.batches {
		cursor, _, err := tx.Cursor(ctx, b.batch.Network.Slug)
		if err != nil {
			return "", err
		}

		if err := s.ApplyTx(ctx, tx, b, cursor); err != nil {
			return "", err
		}
	}

	return p.result, nil
}
