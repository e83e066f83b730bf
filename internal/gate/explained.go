package gate

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/payout"
)

// equalPayouts is the number of payouts to one destination that are read at once, because they may explain a
// payment. maxPages is the largest number of such reads.
const (
	equalPayouts = 500
	maxPages     = 20
)

// distinct drops transactions of the pool that a block now holds or excludes. Those of blocks are last in
// shown.
func distinct(shown []shownTx) (kept []shownTx) {
	seen := map[string]bool{}

	for _, tx := range slices.Backward(shown) {
		drop := seen[tx.TxHash] ||
			slices.ContainsFunc(tx.Spent, func(s chain.Spend) bool { return seen[chaindata.SpendKey(s)] })
		if drop {
			continue
		}

		kept, seen[tx.TxHash] = append(kept, tx), true
		for _, s := range tx.Spent {
			seen[chaindata.SpendKey(s)] = true
		}
	}

	return kept
}

// unexplained returns the hash of the first payment that belongs to no other payout, by the payouts' tags;
// empty if each belongs to one. The tag of a payout has the spends of its signatures, so that it explains one
// payment. Two payments may make a spend of the same payout.
func (g *Gate) unexplained(
	ctx context.Context,
	p payout.Payout,
	payments []shownTx,
	signing []payout.Payout,
) (txHash string, err error) {
	if len(payments) == 0 {
		return "", nil
	}

	var others []payout.Payout

	filter := payout.Filter{
		Owner:    p.Owner,
		Networks: []string{p.Network},
		Q:        string(p.Destination),
		Limit:    equalPayouts,
	}

	for range maxPages {
		page, err := g.config.DB.Payouts(ctx, filter)
		if err != nil {
			return "", err
		}

		for _, other := range page {
			if other.AssetID != p.AssetID || other.Amount != p.Amount || other.Destination != p.Destination {
				continue
			}

			now := slices.ContainsFunc(signing, func(s payout.Payout) bool { return s.ID == other.ID })
			if !now && paidByAny(other, payments) && g.config.VerifyPayout(other) == nil {
				others = append(others, other)
			}
		}

		if txHash = unmatched(payments, others); txHash == "" || len(page) < equalPayouts {
			break
		}

		filter.After = page[len(page)-1].ID
	}

	return txHash, nil
}

// paidByAny reports whether one of the payments may be that of a payout.
func paidByAny(p payout.Payout, payments []shownTx) bool {
	return slices.ContainsFunc(payments, func(tx shownTx) bool { return tx.usesAny(p.Signing.Spent) })
}

// unmatched returns the hash of the first payment for which no payout is left, with any matching.
func unmatched(payments []shownTx, payouts []payout.Payout) string {
	paidBy := map[string]int{} // indexes of payments, by payout

	var match func(at int, tried map[string]bool) bool

	match = func(at int, tried map[string]bool) bool {
		for _, p := range payouts {
			if tried[p.ID] || !payments[at].usesAny(p.Signing.Spent) {
				continue
			}

			tried[p.ID] = true

			if other, taken := paidBy[p.ID]; !taken || match(other, tried) {
				paidBy[p.ID] = at
				return true
			}
		}

		return false
	}

	for at, tx := range payments {
		if !match(at, map[string]bool{}) {
			return tx.TxHash
		}
	}

	return ""
}
