package health

import (
	"time"
)

// The names of the checks that a capability depends on: the API on Store and Heartbeat, fiat invoices on Rates.
const (
	Store     = "store"
	Heartbeat = "heartbeat"
	Rates     = "rates"
)

// Check is the recent state of one kind of work.
type Check struct {
	// Name is the kind of work, such as "store", "heartbeat", "webhooks", "rates", "clock" or "outbox of sepolia".
	Name string
	// DoneAt is when it last succeeded; zero before its first success. Age is the time since DoneAt.
	DoneAt time.Time
	Age    time.Duration
	// Error is why it fails, and FailingSince when that began; both are empty after a success.
	Error        string
	FailingSince time.Time
}

// Process is another process of the service.
type Process struct {
	Name string
	// Still is how long this process has seen its heartbeat stand still.
	Still time.Duration
	// ClockAhead is how far its clock is ahead of this process's, accurate to a few seconds.
	ClockAhead time.Duration
	// ClockWrong is set if its clock differs from the store's by more than 5 minutes: it then signs nothing.
	ClockWrong bool
	// Failing are the names of its checks that failed at its last heartbeat, such as "follower of sepolia" if
	// its node is dead. It leaves that work to the others, so OK does not count them.
	Failing []string
	// Lost is set if it no longer sends heartbeats and its work is not taken over yet.
	Lost bool
}

// Backlog is the due webhooks of an account, and how many of them this process has claimed but not sent yet.
type Backlog struct {
	AccountID string
	Livemode  bool
	// Due is how many deliveries were due at the last count, for any sending process.
	Due int
	// Waiting is how many deliveries wait for a slot here, and InFlight how many are being sent.
	Waiting, InFlight int
	// Age is how long the oldest due or waiting delivery has been due.
	Age time.Duration
}
