package ingest

// This file has blocks read again before payments in them confirm.

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// movement is a transfer without what may be told differently.
type transferID struct {
	invoice.TransferKey
	to      chain.Address
	assetID string
	amount  chain.Amount
}

// sure reports whether a payment that is deep enough may confirm: where blocks can be read again,
// its block was and still shows it. Until then it waits, however long. A payment that scans do not
// show, known from a hint or a balance, is not looked for.
func (in *intake) reread(p *invoice.Payment) (bool, error) {
	if p.DetectedBy != invoice.ByPoll {
		return true, nil
	}

	driver, err := in.s.registry.Driver(p.Network)
	if err != nil {
		return false, err
	}

	if _, can := driver.(chain.Rereader); !can {
		return true, nil
	}

	shown, read := in.p.again[p.Block.Hash]
	if !read {
		in.s.suspectBlock(p.Network, p.Block)

		return false, fmt.Errorf(
			"block %d of %s was not read again: %w",
			p.Block.Height, p.Network, invoice.ErrUnprepared,
		)
	}

	if shown[transferID{p.TransferKey(), p.Address, p.AssetID, p.Amount}] {
		return true, nil
	}

	in.s.log.Warn(
		"a payment is not in its block when that is read again; it waits",
		"payment", p.ID, "network", p.Network, "tx", p.TxHash, "height", p.Block.Height,
	)

	return false, nil
}

// doubt has a block read again the next time a batch of the network is prepared.
func (s *Ingester) suspectBlock(network string, block chain.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.doubted[network] == nil {
		s.doubted[network] = map[chain.Ref]reread{}
	}

	if _, known := s.doubted[network][block]; !known {
		s.doubted[network][block] = reread{}
	}
}

// rereadHolds is for how long a block that was read again is not read once more: while one batch is
// prepared several times.
const rereadHolds = 10 * time.Second

// reread is a block that was doubted, and from when it was read again, what it shows.
type reread struct {
	shown map[transferID]bool
	until time.Time
}

// readAgain returns what the blocks show that were doubted. Payments in one that cannot be read
// now, or does not show them, do not confirm with this batch.
func (s *Ingester) rereadBlocks(ctx context.Context, network string) map[string]map[transferID]bool {
	s.mu.Lock()
	doubted := maps.Clone(s.doubted[network])
	s.mu.Unlock()

	again := make(map[string]map[transferID]bool, len(doubted))
	now := s.now()

	for at, r := range doubted {
		switch {
		case r.shown == nil:
			r = reread{s.rereadBlock(ctx, network, at), now.Add(rereadHolds)}
		case now.After(r.until):
			r = reread{}
		}

		s.mu.Lock()
		if r.shown == nil {
			delete(s.doubted[network], at)
		} else {
			s.doubted[network][at] = r
			again[at.Hash] = r.shown
		}
		s.mu.Unlock()
	}

	return again
}

// rereadBlock returns what a block shows when it is read again; nothing when it cannot be.
func (s *Ingester) rereadBlock(ctx context.Context, network string, at chain.Ref) map[transferID]bool {
	shown := map[transferID]bool{}

	driver, err := s.registry.Driver(network)
	if err != nil {
		return shown
	}

	reader, can := driver.(chain.Rereader)
	if !can {
		return shown
	}

	block, err := reader.Reread(ctx, at)
	if err != nil {
		s.log.LogAttrs(
			ctx, slog.LevelWarn, "a block could not be read again; payments in it wait",
			slog.String("network", network), slog.Any("height", at.Height), slog.Any("error", err),
		)

		return shown
	}

	for _, t := range block.Transfers {
		shown[transferID{invoice.TransferKey{TxHash: t.TxHash, Index: t.Index}, t.To, t.AssetID, t.Amount}] = true
	}

	return shown
}
