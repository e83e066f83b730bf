package payout

import "time"

// GiveUpAfter is how long a payout may wait unsigned before it fails as stale (specification part 8). Its transaction
// carries the time when it is over, and internal/txmgr lets it fail in stale.go, before it signs, or in unserved.go.
const GiveUpAfter = 2 * time.Hour
