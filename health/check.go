package health

import (
	"time"
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
	// Lost is set when it does not beat any more and its work was not taken over yet.
	Lost bool
}
