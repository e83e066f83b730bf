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
	// FailingSince is when the errors began that have not been followed by a success.
	FailingSince time.Time
	// LastReadAt is when this process's node last answered every request of a step.
	LastReadAt time.Time
}
