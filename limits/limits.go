// Package limits holds the budgets that keep strangers, and merchants, from exhausting a service. A host sets
// them in payments.Config.Limits; the engine, the API and the checkout page obey them. docs/limits.md lists
// them with what happens at each.
package limits

import "time"

// Table is the table of budgets. A field of 0 has its default.
type Table struct {
	// Body is the largest body of an API request, in bytes. Defaults to 256 KiB.
	Body int64

	// BodyTimeout is how long a body may take to arrive, on the API and the checkout page. Defaults to 10 s.
	BodyTimeout time.Duration

	// UnknownKeys is how many unknown API keys are looked up per second in this process, UnknownKeysPerClient
	// how many of one client address. Bursts are five times as large. Defaults to 100 and 10.
	UnknownKeys, UnknownKeysPerClient int

	// Streams is how many event streams of checkout pages may be open in this process, StreamsPerClient how
	// many of one client address. Defaults to 10,000 and 32.
	Streams, StreamsPerClient int

	// Hints is how many transaction hashes of payers are looked up per second in this process,
	// HintsPerInvoice how many for one invoice. Bursts are five times as large. Defaults to 20 and 2.
	Hints, HintsPerInvoice int

	// CheckoutPayments is how many payments a checkout page shows: the newest. Defaults to 20.
	CheckoutPayments int

	// DepositAddresses is how many deposit addresses an account may make in a mode, gaps of its counter
	// included. Defaults to 1,000,000.
	DepositAddresses int
}

// Burst is how many times the budget of a second may be used at once.
const Burst = 5

// Defaults returns the table of defaults.
func Defaults() Table {
	return Table{
		Body:                 256 << 10,
		BodyTimeout:          10 * time.Second,
		UnknownKeys:          100,
		UnknownKeysPerClient: 10,
		Streams:              10_000,
		StreamsPerClient:     32,
		Hints:                20,
		HintsPerInvoice:      2,
		CheckoutPayments:     20,
		DepositAddresses:     1_000_000,
	}
}

// Complete returns the table with the defaults in place of what is not above 0.
func (t Table) Complete() Table {
	d := Defaults()

	return Table{
		Body:                 positive(t.Body, d.Body),
		BodyTimeout:          positive(t.BodyTimeout, d.BodyTimeout),
		UnknownKeys:          positive(t.UnknownKeys, d.UnknownKeys),
		UnknownKeysPerClient: positive(t.UnknownKeysPerClient, d.UnknownKeysPerClient),
		Streams:              positive(t.Streams, d.Streams),
		StreamsPerClient:     positive(t.StreamsPerClient, d.StreamsPerClient),
		Hints:                positive(t.Hints, d.Hints),
		HintsPerInvoice:      positive(t.HintsPerInvoice, d.HintsPerInvoice),
		CheckoutPayments:     positive(t.CheckoutPayments, d.CheckoutPayments),
		DepositAddresses:     positive(t.DepositAddresses, d.DepositAddresses),
	}
}

// positive returns the value, or the default for one that is not above 0.
func positive[T int | int64 | time.Duration](value, byDefault T) T {
	if value <= 0 {
		return byDefault
	}

	return value
}
