package health

import (
	"time"
)

// Follower is what one process knows of a network it follows.
type Follower struct {
	// Following says that this process holds the network's lease.
	Following bool
	// LastError is what went wrong last and LastErrorAt when; the zero time after a success.
	LastError   string
	LastErrorAt time.Time
	// LastReadAt is when the node last answered everything that was asked.
	LastReadAt time.Time
}
