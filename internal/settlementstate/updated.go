package settlementstate

import "github.com/seed-8ee7f392/payments/settlement"

// IsUpdated reports whether an ended settlement is still ended and shows something else than before, without
// an event: its sequence is that of before. Changes of a settlement that has not ended are published when it
// ends.
func IsUpdated(before, now settlement.Settlement) bool {
	return hasEnded(before) && hasEnded(now) && before.Sequence == now.Sequence &&
		before.Resource() != now.Resource()
}

// hasEnded reports whether a settlement is released or failed.
func hasEnded(s settlement.Settlement) bool {
	return s.Status == settlement.Released || s.Status == settlement.Failed
}
