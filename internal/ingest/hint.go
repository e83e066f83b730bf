package ingest

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
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

	if !paysOne(found.Transfers, ours) {
		return nil
	}

	p, err := s.prepareFound(ctx, driver, found)
	if err != nil {
		return err
	}

	p.detectedBy, out.result = invoice.ByHint, invoice.HintFound
	out.batches = append(out.batches, p)

	return nil
}

// paysOne reports whether some transfer goes to one of the addresses.
func paysOne(transfers []chain.Transfer, addresses map[chain.Address]bool) bool {
	return slices.ContainsFunc(
		transfers, func(t chain.Transfer) bool { return addresses[t.To] && !t.Amount.IsZero() },
	)
}

// prepareFound prepares a batch of the transfers of one transaction that was looked up. In a block that the
// follower has passed they are what that block shows; else they are provisional, as in the pool.
func (s *Ingester) prepareFound(
	ctx context.Context,
	driver chain.Driver,
	found chain.FoundTx,
) (PreparedBatch, error) {
	network := driver.Network()
	b := follow.Batch{Network: network}

	block, err := s.passedBlock(ctx, driver, found)
	if err != nil {
		return PreparedBatch{}, err
	}

	if block != nil {
		b.Blocks = []chain.Block{*block}
	} else {
		b.Pool = []chain.PoolTx{{TxHash: found.TxHash, Transfers: found.Transfers, Spent: found.Spent}}
	}

	p, err := s.PrepareBatch(ctx, b)
	if err != nil {
		return PreparedBatch{}, err
	}

	stored, err := s.db.PaymentsByHash(ctx, network.Slug, []string{found.TxHash})
	if err != nil {
		return PreparedBatch{}, err
	}

	var keys []invoice.TransferKey

	for _, payment := range stored {
		keys = append(keys, invoicestate.PaymentKey(payment))
	}

	for _, t := range p.observed {
		if t.TxHash == found.TxHash {
			keys = append(keys, t.key())
		}
	}

	return p.Only(keys...), nil
}

// passedBlock returns the block of a transaction that was looked up, as it is read now; nil while the follower
// has not passed it, when the chain has another block there, or after a fork that the follower has not seen:
// its cursor counts the blocks of another branch. Blocks show no internal transfers: those of the look-up are
// added, unless the transaction failed.
func (s *Ingester) passedBlock(
	ctx context.Context,
	driver chain.Driver,
	found chain.FoundTx,
) (*chain.Block, error) {
	network := driver.Network().Slug

	cursor, err := s.cursor(ctx, network)
	if err != nil || found.Block.IsZero() || found.Block.Height > cursor.At.Height {
		return nil, err
	}

	block := chain.Block{Ref: found.Block, Transfers: found.Transfers, Spent: found.Spent}

	if scanner, can := driver.(chain.BlockScanner); can {
		blocks, err := scanner.Blocks(ctx, found.Block.Height, found.Block.Height)
		if err != nil || !isOnly(blocks, found.Block) {
			return nil, err
		}

		block = withInternal(blocks[0], found)
	} else if block.Ref, err = driver.RefAt(ctx, found.Block.Height); err != nil {
		return nil, err
	} else if block.Hash != found.Block.Hash {
		return nil, nil
	}

	passed, err := inChain(ctx, driver, cursor.At)
	if err != nil || !passed {
		return nil, err
	}

	return &block, nil
}

// isOnly reports whether blocks are the one of a reference.
func isOnly(blocks []chain.Block, at chain.Ref) bool {
	return len(blocks) == 1 && blocks[0].Hash == at.Hash
}

// inChain reports whether the network's node has a block in its chain.
func inChain(ctx context.Context, driver chain.Driver, block chain.Ref) (bool, error) {
	ref, err := driver.RefAt(ctx, block.Height)
	if errors.Is(err, fault.NotFound) {
		return false, nil
	}

	return err == nil && ref.Hash == block.Hash, err
}

// withInternal returns the block with the internal transfers of a transaction in it.
func withInternal(block chain.Block, found chain.FoundTx) chain.Block {
	transfers := slices.Clone(block.Transfers)

	for _, t := range found.Transfers {
		if t.Index >= chaindata.InternalIndex && !found.Failed {
			transfers = append(transfers, t)
		}
	}

	block.Transfers = transfers

	return block
}

// cursor returns the cursor of a network.
func (s *Ingester) cursor(ctx context.Context, network string) (scan.Cursor, error) {
	cursor, _, err := s.db.Cursor(ctx, network)

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
