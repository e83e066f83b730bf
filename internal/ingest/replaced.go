package ingest

// This file notices that another transaction took the place of a payment's.

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/invoice"
)

// usesKept is how long the uses of a transaction in a block are kept: longer than the deepest forks last.
const usesKept = time.Hour

// use is what the transaction of payments uses up, and the payments.
type use struct {
	spent []chain.Spend
	keys  []invoice.TransferKey
	until time.Time
}

// replaced returns the payments whose transactions cannot be included any more as far as the batch
// shows, because another one uses up what they do. It also keeps what the batch shows of the uses
// of its payments for later batches. A process that did not see them learns of a replacement when
// the transaction has been out of sight for a day. Nothing is final here: a fork may take the other
// one out and put the first one in.
func (s *Ingester) replaced(b follow.Batch, matched []observedTransfer) []invoice.TransferKey {
	s.mu.Lock()
	defer s.mu.Unlock()

	ours := s.uses[b.Network.Slug]
	if ours == nil {
		ours = map[string]*use{}
		s.uses[b.Network.Slug] = ours
	}

	now := s.now()

	for _, m := range matched {
		u := ours[m.TxHash]
		if u == nil {
			u = &use{}
			ours[m.TxHash] = u
		}

		if !slices.Contains(u.keys, m.key()) {
			u.keys = append(u.keys, m.key())
		}

		if u.until = now.Add(invoice.LostAfter); !m.at.IsZero() {
			u.until = now.Add(usesKept)
		}
	}

	if len(ours) == 0 {
		return nil
	}

	by := map[chain.Spend]string{}

	see := func(all []chain.Spend) {
		for _, spend := range all {
			by[spend.Used()] = spend.By
			if u := ours[spend.By]; u != nil && !slices.Contains(u.spent, spend.Used()) {
				u.spent = append(u.spent, spend.Used())
			}
		}
	}
	for _, tx := range b.Pool {
		see(tx.Spent)
	}

	for _, block := range b.Blocks { // what is in a block outranks the pool
		see(block.Spent)
	}

	var out []invoice.TransferKey

	for hash, u := range ours {
		for _, used := range u.spent {
			if other := by[used]; other != "" && other != hash {
				out = append(out, u.keys...)
				break
			}
		}

		if now.After(u.until) {
			delete(ours, hash)
		}
	}

	slices.SortFunc(out, func(a, b invoice.TransferKey) int {
		return cmp.Or(cmp.Compare(a.TxHash, b.TxHash), cmp.Compare(a.Index, b.Index))
	})

	return out
}
