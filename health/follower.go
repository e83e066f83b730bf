package health

import (
	"time"
)

// Follower is one process's state of following a network.
type Follower struct {
	// Following reports that this process holds the network's lease.
	Following bool
	// LastError is the last error and LastErrorAt its time; both are empty after a success.
	LastError   string
	LastErrorAt time.Time
	// LastReadAt is when the node last answered every request of a step.
	LastReadAt time.Time
	// Unreadable names the first asset and address whose balance the token's contract did not answer for when
	// balances were last compared, and counts the others; empty when all were read. Payments of the other
	// assets are not affected.
	Unreadable string
}
