package ingest

// This file detects that another transaction replaced a payment's.

import (
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// usesKept is how long the spends of a transaction in a block are kept: longer than the deepest forks last.
const usesKept = time.Hour

// use holds what the transaction of payments spends, and the payments.
type use struct {
	spent []chain.Spend
	keys  []invoice.TransferKey
	until time.Time
}

// replaced returns the payments whose transactions cannot be included any more as far as the batch
// shows, because another one spends the same. It also keeps what the batch shows of the spends
// of its payments for later batches. A process that did not see them learns of a replacement when
// the transaction was lost for a day. Nothing is final here: a fork may exclude the other
// one and include the first one.
func (s *Ingester) replaced(b follow.Batch, matched []observedTransfer) []invoice.TransferKey {
	s.mu.Lock()
	defer s.mu.Unlock()

	ours := s.uses[b.Network.Slug]
	if ours == nil {
		ours = map[string]*use{}
		s.uses[b.Network.Slug] = ours
	}

	now := s.now()
	addUses(ours, matched, now)

	if len(ours) == 0 {
		return nil
	}

	spentBy := recordSpends(ours, b)

	var out []invoice.TransferKey

	for hash, u := range ours {
		for _, used := range u.spent {
			if other := spentBy[used]; other != "" && other != hash {
				out = append(out, u.keys...)
				break
			}
		}

		if now.After(u.until) {
			delete(ours, hash)
		}
	}

	slices.SortFunc(out, invoicestate.Compare)

	return out
}

// addUses adds the transactions of the matched transfers to ours, and sets for how long they are kept.
func addUses(ours map[string]*use, matched []observedTransfer, now time.Time) {
	for _, m := range matched {
		u := ours[m.TxHash]
		if u == nil {
			u = &use{}
			ours[m.TxHash] = u
		}

		if !slices.Contains(u.keys, m.key()) {
			u.keys = append(u.keys, m.key())
		}

		if u.until = now.Add(invoicestate.LostAfter); !m.at.IsZero() {
			u.until = now.Add(usesKept)
		}
	}
}

// recordSpends adds what the batch shows our transactions spend, and returns by which transaction
// each coin or nonce is spent.
func recordSpends(ours map[string]*use, b follow.Batch) map[chain.Spend]string {
	spentBy := map[chain.Spend]string{}

	record := func(spends []chain.Spend) {
		for _, spend := range spends {
			spentBy[chaindata.Used(spend)] = spend.By
			if u := ours[spend.By]; u != nil && !slices.Contains(u.spent, chaindata.Used(spend)) {
				u.spent = append(u.spent, chaindata.Used(spend))
			}
		}
	}

	for _, tx := range b.Pool {
		record(tx.Spent)
	}

	for _, block := range b.Blocks { // what is in a block outranks the pool
		record(block.Spent)
	}

	return spentBy
}
