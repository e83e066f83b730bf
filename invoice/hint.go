package invoice

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
)

// HintResult says what became of a payer's hint.
type HintResult string

// The results. A transaction that is unknown may still be on its way to our node.
const (
	HintFound    HintResult = "found"    // it pays what it is said to pay, and is booked
	HintForeign  HintResult = "foreign"  // it exists and pays nothing to it
	HintFailed   HintResult = "failed"   // it is in a block and its execution failed: it moved nothing
	HintNotFound HintResult = "unknown"  // no network in question knows it
	HintUnusable HintResult = "unusable" // no network in question can look transactions up
)

// PreparedHint is a transaction that was looked up.
type PreparedHint struct {
	result  HintResult
	batches []PreparedBatch
}

// PrepareHint looks a transaction up on the networks of the invoice's selected options. A network
// that gives no answer is fault.Unavailable unless another one found it.
func (s *Service) PrepareHint(ctx context.Context, invoiceID, txHash string) (PreparedHint, error) {
	inv, err := s.db.InvoiceByID(ctx, invoiceID)
	if err != nil {
		return PreparedHint{}, err
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

	return s.prepareHint(ctx, txHash, networks, ours)
}

// PrepareDepositHint looks a transaction up on the network of an owner's deposit address.
func (s *Service) PrepareDepositHint(
	ctx context.Context,
	owner event.Owner,
	depositID, txHash string,
) (PreparedHint, error) {
	d, err := s.db.DepositAddress(ctx, owner, depositID)
	if err != nil {
		return PreparedHint{}, err
	}

	return s.prepareHint(ctx, txHash, []string{d.Network}, map[chain.Address]bool{d.Address: true})
}

func (s *Service) prepareHint(
	ctx context.Context,
	txHash string,
	networks []string,
	ours map[chain.Address]bool,
) (PreparedHint, error) {
	txHash = strings.TrimSpace(txHash)
	if err := checkText("tx_hash", txHash, 128); err != nil || txHash == "" {
		return PreparedHint{}, errors.Join(err, missing(txHash))
	}

	out := PreparedHint{result: HintUnusable}

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

		if out.result == HintUnusable {
			out.result = HintNotFound
		}

		found, err := finder.Transaction(ctx, txHash)
		switch {
		case errors.Is(err, fault.NotFound) || errors.Is(err, fault.Invalid):
			continue
		case err != nil:
			failed = err
			continue
		}

		switch {
		case out.result == HintFound:
		case found.Failed:
			out.result = HintFailed
		case out.result != HintFailed:
			out.result = HintForeign
		}

		b, err := s.hintBatch(ctx, driver, ours, found)
		if err != nil {
			return PreparedHint{}, err
		}

		if b == nil {
			continue
		}

		p, err := s.PrepareBatch(ctx, *b)
		if err != nil {
			return PreparedHint{}, err
		}

		p.detectedBy, out.result = ByHint, HintFound

		var keys []TransferKey
		for _, t := range p.sightings() {
			keys = append(keys, t.key())
		}

		out.batches = append(out.batches, p.Only(keys...))
	}

	if failed != nil && out.result != HintFound {
		return PreparedHint{}, failed
	}

	return out, nil
}

func missing(txHash string) error {
	if txHash != "" {
		return nil
	}

	return fault.Param("tx_hash", "parameter_missing", "name the hash of the transaction")
}

// hintBatch makes a batch of those movements of a transaction that go to addresses of ours; nil
// when none does. A block that was not read yet is left out: the transaction waits until the
// follower has checked that block's place.
func (s *Service) hintBatch(
	ctx context.Context,
	driver chain.Driver,
	ours map[chain.Address]bool,
	found chain.Found,
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

// cursor reads how far a network was read.
func (s *Service) cursor(ctx context.Context, network string) (scan.Cursor, error) {
	return update(ctx, s, func(ctx context.Context, tx Tx) (scan.Cursor, error) {
		c, _, err := tx.Cursor(ctx, network)
		return c, err
	})
}

// HintTx books what a hint found.
func (s *Service) HintTx(ctx context.Context, tx Tx, p PreparedHint) (HintResult, error) {
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

// Hint takes a payer's word that a transaction pays the invoice, and books it if the network agrees.
func (s *Service) Hint(ctx context.Context, invoiceID, txHash string) (HintResult, error) {
	return s.hint(ctx, func() (PreparedHint, error) { return s.PrepareHint(ctx, invoiceID, txHash) })
}

// HintDeposit is Hint for an owner's deposit address.
func (s *Service) HintDeposit(
	ctx context.Context,
	owner event.Owner,
	depositID, txHash string,
) (HintResult, error) {
	return s.hint(
		ctx,
		func() (PreparedHint, error) { return s.PrepareDepositHint(ctx, owner, depositID, txHash) },
	)
}

func (s *Service) hint(ctx context.Context, prepare func() (PreparedHint, error)) (HintResult, error) {
	return again(func() (HintResult, error) {
		p, err := prepare()
		if err != nil || len(p.batches) == 0 {
			return p.result, err
		}

		return update(
			ctx, s,
			func(ctx context.Context, tx Tx) (HintResult, error) { return s.HintTx(ctx, tx, p) },
		)
	})
}
