package payout

import "time"

// GiveUpAfter is how long a payout may wait unsigned before it fails as stale (specification part 8). Its
// transaction carries that deadline. internal/txmgr enforces it before signing (stale.go), and on unserved
// networks (unserved.go).
const GiveUpAfter = 2 * time.Hour
