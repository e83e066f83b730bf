package requestkey

import (
	"time"
)

// TTL is how long an answer is kept.
const TTL = 24 * time.Hour // spec 8.3
