// Package limits holds the budgets that keep strangers, and merchants, from exhausting a service. A host sets
// them in payments.Config.Limits; the engine, the API and the checkout page obey them. docs/limits.md lists
// them, and what happens when each is exceeded.
package limits

import "time"

// Table is the table of budgets. A field of 0 has its default.
type Table struct {
	// Body is the largest body of an API request, in bytes. Defaults to 512 KiB.
	Body int64

	// BodyTimeout is how long a body may take to arrive, on the API and the checkout page. Defaults to 10 s.
	BodyTimeout time.Duration

	// UnknownKeys is how many unknown API keys are looked up per second in this process, UnknownKeysPerClient
	// how many for one client address. Bursts are five times as large. Defaults to 100 and 10.
	UnknownKeys, UnknownKeysPerClient int

	// Streams is how many event streams of checkout pages may be open in this process, StreamsPerClient how
	// many for one client address. Defaults to 10,000 and 32.
	Streams, StreamsPerClient int

	// Hints is how many transaction hashes of payers are looked up per second in this process.
	// HintsPerInvoice is how many for one invoice, and HintsPerClient how many for one client address. Bursts
	// are five times as large. Defaults to 20, 2 and 4.
	Hints, HintsPerInvoice, HintsPerClient int

	// CheckoutPayments is how many payments a checkout page shows: only the newest. Defaults to 20.
	CheckoutPayments int

	// DepositAddresses is how many deposit addresses an account may make in a mode, gaps of its counter
	// included. Defaults to 1,000,000.
	DepositAddresses int
}
