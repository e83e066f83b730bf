package ingest

// This file reads blocks again before payments in them confirm.

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// transferID identifies a transfer by what every reading of its block shows alike.
type transferID struct {
	invoice.TransferKey
	to      chain.Address
	assetID string
	amount  chain.Amount
}

// shownInBlock reports whether a payment that is deep enough may confirm: its block was read again
// and still shows it, or the driver cannot read blocks again. A payment known from a hint or a
// balance is not checked. It fails with invoice.ErrUnprepared when the block was not read again
// yet.
func (in *intake) shownInBlock(p *invoice.Payment) (bool, error) {
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

	shown, read := in.p.reread[p.Block.Hash]
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

// suspectBlock queues a block to be read again when the next batch of the network is prepared.
func (s *Ingester) suspectBlock(network string, block chain.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.suspects[network] == nil {
		s.suspects[network] = map[chain.Ref]reread{}
	}

	if _, known := s.suspects[network][block]; !known {
		s.suspects[network][block] = reread{}
	}
}

// rereadFor is how long what a block showed is used: one batch may be prepared several times.
const rereadFor = 10 * time.Second

// reread holds what a suspect block shows, once it was read again, and until when that is used.
type reread struct {
	shown map[transferID]bool
	until time.Time
}

// rereadBlocks reads the suspect blocks again and returns what they show, by hash. Payments in one
// that cannot be read now, or does not show them, do not confirm with this batch.
func (s *Ingester) rereadBlocks(ctx context.Context, network string) map[string]map[transferID]bool {
	s.mu.Lock()
	suspects := maps.Clone(s.suspects[network])
	s.mu.Unlock()

	shown := make(map[string]map[transferID]bool, len(suspects))
	now := s.now()

	order := slices.SortedFunc(maps.Keys(suspects), func(a, b chain.Ref) int {
		return cmp.Or(cmp.Compare(a.Height, b.Height), cmp.Compare(a.Hash, b.Hash))
	})

	for _, at := range order {
		r := suspects[at]

		switch {
		case r.shown == nil:
			r = reread{s.rereadBlock(ctx, network, at), now.Add(rereadFor)}
		case now.After(r.until):
			r = reread{}
		}

		s.mu.Lock()
		if r.shown == nil {
			delete(s.suspects[network], at)
		} else {
			s.suspects[network][at] = r
			shown[at.Hash] = r.shown
		}
		s.mu.Unlock()
	}

	return shown
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
