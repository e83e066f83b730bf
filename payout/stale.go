package payout

import (
	"time"
)

// GiveUpAfter is how long a payout may wait unsigned before it fails as stale (specification part 8).
const GiveUpAfter = 2 * time.Hour // spec 3.2.2
