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
	// Unreadable names the first asset and address whose balance the token's contract did not answer for when
	// balances were last compared, and counts the others; empty when all were read. Payments of the other
	// assets are not affected.
	Unreadable string

	// Unread are the transfers that could not be read, up to 100, and those that wait to be stored, up to 100: a
	// balance that measures them cannot be read, or storing them failed. Each is tried again until it succeeds,
	// and holds up nothing else. So are blocks that no node had when the network was resumed.
	Unread []Unread
}

// Unread is a transfer, or the history of an address, that could not be read or stored.
type Unread struct {
	// Address is whose transfers are missing; empty for a transaction of a whole block.
	Address string
	// TxHash is empty when it is not known which transaction is missing.
	TxHash string
	// Height is that of the first block in which something may be missing.
	Height uint64
	// Error says why it waits, and Since since when.
	Error string
	Since time.Time
}
