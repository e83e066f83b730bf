package webhook

import (
	"time"
)

// Policy sets how one process sends webhooks. Slots are shared by mode, then by account, then by endpoint, so
// that slow endpoints delay nobody else. The zero value has the defaults.
type Policy struct {
	// Concurrency is how many deliveries are in flight at once. Test mode gets at most half of them. Defaults
	// to 256.
	Concurrency int

	// PerEndpoint is how many of them go to one endpoint at first. An endpoint whose last attempt failed gets
	// one. Defaults to 4.
	PerEndpoint int
	// MaxPerEndpoint is how many go to an endpoint that answers within 4 s while others wait. Defaults to 32.
	MaxPerEndpoint int

	// Timeout limits an attempt, from looking up the name to the last byte. Defaults to 15 s, and is at most that.
	Timeout time.Duration
	// HeaderTimeout limits the wait for the headers of the answer. Defaults to Timeout.
	HeaderTimeout time.Duration
	// BodyTimeout limits the reading of the body. Defaults to 5 s.
	BodyTimeout time.Duration
	// IdleTimeout limits the wait for the next bytes of the body. Defaults to 2 s.
	IdleTimeout time.Duration
}
