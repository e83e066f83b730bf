package ingest

// This file reads blocks again before payments in them confirm: what is agreed on counts (chain.Agreed).

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// rereadFor is how long what a block showed is used, from when it was read: one batch may be prepared several times.
const rereadFor = 10 * time.Second

// rereadBlock is what a block shows that was read again. The zero value is one that was not read yet.
type rereadBlock struct {
	// hashes are the transactions that it is read for.
	hashes []string
	// agreed is set when it is agreed that this block is at its height, and what is in it.
	agreed bool
	// shown are the transfers in it, net.
	shown map[invoice.TransferKey]chain.Transfer
	// verified is set when the block's contents were checked against its header.
	verified bool
	until    time.Time
}

// confirmRead confirms a payment that is deep enough, if its block was read again and still shows it. A block
// that was checked against its header and shows less corrects the payment; one that shows nothing of it
// drops it. It fails with invoice.ErrUnprepared when the block was not read again yet, but for a retry row.
func (in *intake) confirmRead(a *entry, p *invoice.Payment) error {
	if p.TxHash == "" {
		return nil // only its balance, read again, confirms it
	}

	if !in.s.canReread(p.Network) {
		return in.confirm(a, p)
	}

	block, read := in.p.reread[p.Block.Hash]
	if !read || !slices.Contains(block.hashes, p.TxHash) {
		in.s.suspectBlock(p.Network, p.Block, p.TxHash)

		if in.p.retry != "" {
			return nil // the next batch confirms it
		}

		return fmt.Errorf(
			"block %d of %s was not read again: %w", p.Block.Height, p.Network, invoice.ErrUnprepared,
		)
	}

	if !block.agreed {
		return nil
	}

	shown, present := block.shown[invoicestate.PaymentKey(*p)]

	switch {
	case p.TxIndex >= chaindata.InternalIndex:
		return in.confirm(a, p) // blocks show no internal transfers; balances do
	case present && !shown.Amount.Less(p.Amount):
		return in.confirmShown(a, p, shown)
	case !block.verified:
		in.s.log.Warn(
			"a payment is not in its block when that is read again; it waits",
			"payment", p.ID, "network", p.Network, "tx", p.TxHash, "height", p.Block.Height,
		)

		return nil
	case present:
		return in.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
			return invoicestate.Correct(p, shown)
		})
	}

	return in.move(
		a,
		p,
		func(p *invoice.Payment) ([]event.Type, error) { return invoicestate.Displace(p, in.now) },
	)
}

// confirmShown confirms a payment whose block shows at least its amount, with the sender that the block shows.
func (in *intake) confirmShown(a *entry, p *invoice.Payment, shown chain.Transfer) error {
	shown.Amount = p.Amount // what arrived by it

	if err := in.move(
		a, p, func(p *invoice.Payment) ([]event.Type, error) { return invoicestate.Correct(p, shown) },
	); err != nil {
		return err
	}

	return in.confirm(a, p)
}

// canReread reports whether the driver of a network can say what is agreed on.
func (s *Ingester) canReread(network string) bool {
	driver, err := s.registry.Driver(network)
	if err != nil {
		return false
	}

	_, can := driver.(chain.Agreed)

	return can
}

// suspectBlock queues a block to be read again, for one of its transactions, when the next batch of the network is
// prepared.
func (s *Ingester) suspectBlock(network string, block chain.Ref, hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.suspects[network] == nil {
		s.suspects[network] = map[chain.Ref]rereadBlock{}
	}

	known := s.suspects[network][block].hashes
	if !slices.Contains(known, hash) {
		s.suspects[network][block] = rereadBlock{hashes: append(slices.Clone(known), hash)}
	}
}

// suspectDue queues the blocks in which payments confirm with a batch, as far as the records show: those that wait, and
// those that the batch brings and that are deep enough for any value. The batch is then applied once, and not a second
// time for the blocks that confirmRead misses.
func (s *Ingester) suspectDue(
	ctx context.Context,
	b follow.Batch,
	waiting []invoice.Payment,
	matched []observedTransfer,
) error {
	if b.Next.At.IsZero() || !s.canReread(b.Network.Slug) {
		return nil
	}

	trusted := trustedBlocks(b.Next, b.Blocks)
	due := map[invoice.TransferKey]chain.Ref{}

	for _, p := range waiting {
		if p.Status == invoice.Detected && !p.Simulated && p.TxHash != "" && !p.Block.IsZero() &&
			scanstate.IsFinal(b.Next, b.Network, p.Required, p.Block) {
			due[invoicestate.PaymentKey(p)] = p.Block
		}
	}

	most := confirmationsFor(b.Network, decimal.Decimal{}, false)

	for _, m := range matched {
		asset, enabled := b.Network.AssetByID(m.AssetID)
		deep := !m.at.IsZero() && scanstate.IsFinal(b.Next, b.Network, most, m.at)

		if deep && enabled && !m.Amount.Less(asset.Dust) {
			due[m.key()] = m.at
		}
	}

	if err := s.withoutOthers(ctx, b.Network.Slug, due); err != nil {
		return err
	}

	for key, at := range due {
		// A fork that takes a payment's block away leaves nothing to confirm.
		if hash, known := trusted[at.Height]; !known || hash == at.Hash {
			s.suspectBlock(b.Network.Slug, at, key.TxHash)
		}
	}

	return nil
}

// withoutOthers takes out the transfers that do not confirm with a batch: those of own transactions, those that are
// confirmed already, and those that wait in retry rows.
func (s *Ingester) withoutOthers(
	ctx context.Context,
	network string,
	due map[invoice.TransferKey]chain.Ref,
) error {
	if len(due) == 0 {
		return nil
	}

	hashes := make([]string, 0, len(due))
	for key := range due {
		hashes = append(hashes, key.TxHash)
	}

	slices.Sort(hashes)
	hashes = slices.Compact(hashes)

	own, err := s.db.OwnTransactions(ctx, network, hashes)
	if err != nil {
		return err
	}

	known, err := s.db.PaymentsByHash(ctx, network, hashes)
	if err != nil {
		return err
	}

	rows, err := AllRetries(ctx, s.db, network, s.now())
	if err != nil {
		return err
	}

	for key := range due {
		if t, ours := own[key.TxHash]; ours && t.Kind != wallet.Payout {
			delete(due, key)
		}
	}

	for _, p := range known {
		if p.Status == invoice.Confirmed {
			delete(due, invoicestate.PaymentKey(p))
		}
	}

	for _, r := range rows {
		delete(due, invoicestate.KeyOf(r.Transfer))
	}

	return nil
}

// rereadBlocks reads the suspect blocks again and returns what they show, by hash. Payments in one
// that cannot be read now do not confirm with this batch. What was read too long ago is read anew where the batch may
// need it (needed, by hash), and dropped otherwise: were it only dropped, a batch that takes longer than rereadFor
// would find another block unread each time it is prepared.
func (s *Ingester) rereadBlocks(
	ctx context.Context,
	network string,
	needed map[string]bool,
) map[string]rereadBlock {
	s.mu.Lock()
	suspects := maps.Clone(s.suspects[network])
	s.mu.Unlock()

	blocks := make(map[string]rereadBlock, len(suspects))

	order := slices.SortedFunc(maps.Keys(suspects), func(a, b chain.Ref) int {
		return cmp.Or(cmp.Compare(a.Height, b.Height), cmp.Compare(a.Hash, b.Hash))
	})

	for _, at := range order {
		r := suspects[at]

		switch {
		case r.until.IsZero(), s.now().After(r.until) && needed[at.Hash]:
			r = s.rereadBlock(ctx, network, at, r.hashes)
			r.until = s.now().Add(rereadFor)
		case s.now().After(r.until):
			r = rereadBlock{}
		}

		s.mu.Lock()
		if r.until.IsZero() {
			delete(s.suspects[network], at)
		} else {
			s.suspects[network][at] = r
			blocks[at.Hash] = r
		}
		s.mu.Unlock()
	}

	return blocks
}

// rereadBlock reads what is agreed on of a block. agreed is false when nothing is.
func (s *Ingester) rereadBlock(
	ctx context.Context,
	network string,
	at chain.Ref,
	hashes []string,
) rereadBlock {
	unread := rereadBlock{hashes: hashes}

	driver, err := s.registry.Driver(network)
	if err != nil {
		return unread
	}

	agreed, can := driver.(chain.Agreed)
	if !can {
		return unread
	}

	block, err := agreed.AgreedBlock(ctx, at, hashes)
	if err != nil {
		s.logReread(ctx, network, at, err)
		return unread
	}

	shown := map[invoice.TransferKey]chain.Transfer{}
	for _, t := range arrivals(block.Transfers) {
		shown[invoicestate.KeyOf(t)] = t
	}

	return rereadBlock{
		hashes:   hashes,
		agreed:   true,
		shown:    shown,
		verified: block.Unverified == "" && block.Hash == at.Hash,
	}
}

// logReread logs why payments in a block wait.
func (s *Ingester) logReread(ctx context.Context, network string, at chain.Ref, err error) {
	level := slog.LevelWarn
	if errors.Is(err, fault.NotFound) {
		level = slog.LevelError
	}

	s.log.LogAttrs(
		ctx, level, "a block could not be read again; payments in it wait",
		slog.String("network", network), slog.Any("height", at.Height), slog.Any("error", err),
	)
}
