package ingest

import (
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// observedTransfer is one transfer with the block it is in; the zero block is the pool.
type observedTransfer struct {
	chain.Transfer
	at chain.Ref
}

func (t observedTransfer) key() invoice.TransferKey {
	return invoicestate.KeyOf(t.Transfer)
}

// observe returns the transfers of a batch, net, each key once: a block outranks the pool, which is not asked
// about transactions that are in a block of the batch.
func observe(b follow.Batch) []observedTransfer {
	var out []observedTransfer

	seen, mined := map[invoice.TransferKey]bool{}, map[string]bool{}

	add := func(t chain.Transfer, at chain.Ref) {
		observed := observedTransfer{t, at}
		if key := observed.key(); !seen[key] {
			seen[key] = true

			out = append(out, observed)
		}
	}

	for _, block := range b.Blocks {
		for _, spend := range block.Spent {
			mined[spend.By] = true
		}

		for _, t := range arrivals(block.Transfers) {
			mined[t.TxHash] = true

			add(t, block.Ref)
		}
	}

	for _, tx := range b.Pool {
		if mined[tx.TxHash] {
			continue
		}

		for _, t := range arrivals(tx.Transfers) {
			add(t, chain.Ref{})
		}
	}

	return out
}

// transfers returns the transfers of the batch as it was split.
func (p PreparedBatch) transfers() []observedTransfer {
	if p.only == nil && len(p.without) == 0 {
		return p.observed
	}

	var out []observedTransfer

	for _, t := range p.observed {
		if p.takes(t.key()) {
			out = append(out, t)
		}
	}

	return out
}

// takes reports whether the batch, as it was split, includes a transfer.
func (p PreparedBatch) takes(k invoice.TransferKey) bool {
	return (p.only == nil || p.only[k]) && !p.without[k]
}

// Keys returns what the batch can be split into: the transfers in it that were ours when it was prepared, and
// the payments that it may confirm or take back.
func (p PreparedBatch) Keys() []invoice.TransferKey {
	return slices.DeleteFunc(slices.Clone(p.known), func(k invoice.TransferKey) bool { return !p.takes(k) })
}

// Only returns the batch with nothing but these transfers.
func (p PreparedBatch) Only(keys ...invoice.TransferKey) PreparedBatch {
	p.only = map[invoice.TransferKey]bool{}
	for _, key := range keys {
		p.only[key] = true
	}

	return p
}

// Without returns the batch without these transfers.
func (p PreparedBatch) Without(keys ...invoice.TransferKey) PreparedBatch {
	p.without = maps.Clone(p.without)
	if p.without == nil {
		p.without = map[invoice.TransferKey]bool{}
	}

	for _, key := range keys {
		p.without[key] = true
	}

	return p
}
