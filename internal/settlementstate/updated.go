package settlementstate

import "github.com/seed-8ee7f392/payments/settlement"

// IsUpdated reports whether a settlement that had ended still has, shows something else than before, and no event says
// so yet: its sequence is that of before. What one shows that has not ended is published when it ends.
func IsUpdated(before, now settlement.Settlement) bool {
	return hasEnded(before) && hasEnded(now) && before.Sequence == now.Sequence &&
		before.Resource() != now.Resource()
}

// hasEnded reports whether a settlement is released or failed.
func hasEnded(s settlement.Settlement) bool {
	return s.Status == settlement.Released || s.Status == settlement.Failed
}
