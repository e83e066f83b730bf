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

// Check is what was done lately of one kind of work.
type Check struct {
	// Name is the kind of work, such as "store", "heartbeat", "webhooks", "rates", "clock" or "outbox of sepolia".
	Name string
	// DoneAt is when it last succeeded; zero before it did. Age is how long ago that is.
	DoneAt time.Time
	Age    time.Duration
	// Error is why it fails, and FailingSince since when; both are empty after a success.
	Error        string
	FailingSince time.Time
}

// Process is another process of the service.
type Process struct {
	Name string
	// Still is how long its heartbeat has stood still, as this process saw.
	Still time.Duration
	// ClockAhead is how far its clock is ahead of this process's, within a few seconds.
	ClockAhead time.Duration
	// ClockWrong is set when its clock differs from the store's by more than 5 minutes: it signs nothing then.
	ClockWrong bool
	// Failing are the names of its checks that failed when it last beat, such as "follower of sepolia" where its
	// node is dead. It leaves that work to the others, so OK does not count them.
	Failing []string
	// Lost is set when it does not beat any more and its work was not taken over yet.
	Lost bool
}

// Backlog is an account's webhooks that are due, and what of them this process has claimed and not sent yet.
type Backlog struct {
	AccountID string
	Livemode  bool
	// Due is how many deliveries are due, whichever process sends them, when they were last counted.
	Due int
	// Waiting is how many deliveries wait for a slot here, and InFlight how many are being sent.
	Waiting, InFlight int
	// Age is how long the oldest of those that are due, or wait here, has been due.
	Age time.Duration
}
