package health

import (
	"time"
)

// Follower is one process's state of following a network.
type Follower struct {
	// Following is set while this process holds the network's lease.
	Following bool
	// LastError is the last error and LastErrorAt its time; both are empty after a success.
	LastError   string
	LastErrorAt time.Time
	// FailingSince is when the current run of errors began; zero after a success.
	FailingSince time.Time
	// LastReadAt is when this process's node last answered every request of a step.
	LastReadAt time.Time
	// Unreadable names the first asset and address whose balance the token's contract did not return when
	// balances were last compared, and counts the others. It is empty when all were read. Payments of the
	// other assets are not affected.
	Unreadable string

	// Unread are up to 100 transfers that could not be read, and up to 100 that wait to be stored. Those wait
	// because a balance that measures them cannot be read, or because storing them failed. Each is tried
	// again until it succeeds, and delays nothing else. Unread also names blocks that no node had when the
	// network was resumed.
	Unread []Unread
}

// Unread is a transfer, or the history of an address, that could not be read or stored.
type Unread struct {
	// Address is the address whose transfers are missing; empty for a transaction of a whole block.
	Address string
	// TxHash is empty if it is not known which transaction is missing.
	TxHash string
	// Height is the first block in which something may be missing.
	Height uint64
	// Error is why it waits; Since is when the wait began.
	Error string
	Since time.Time
}
