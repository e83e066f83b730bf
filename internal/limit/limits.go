package limit

import (
	"time"

	"github.com/seed-8ee7f392/payments/limits"
)

// Burst is how many seconds' budget may be used at once.
const Burst = 5

// Defaults returns the table of defaults.
func Defaults() limits.Table {
	return limits.Table{
		Body:                 512 << 10,
		BodyTimeout:          10 * time.Second,
		UnknownKeys:          100,
		UnknownKeysPerClient: 10,
		Streams:              10_000,
		StreamsPerClient:     32,
		Hints:                20,
		HintsPerInvoice:      2,
		HintsPerClient:       4,
		CheckoutPayments:     20,
		DepositAddresses:     1_000_000,
	}
}

// Complete returns the table with defaults for all values that are not above 0.
func Complete(t limits.Table) limits.Table {
	d := Defaults()

	return limits.Table{
		Body:                 positive(t.Body, d.Body),
		BodyTimeout:          positive(t.BodyTimeout, d.BodyTimeout),
		UnknownKeys:          positive(t.UnknownKeys, d.UnknownKeys),
		UnknownKeysPerClient: positive(t.UnknownKeysPerClient, d.UnknownKeysPerClient),
		Streams:              positive(t.Streams, d.Streams),
		StreamsPerClient:     positive(t.StreamsPerClient, d.StreamsPerClient),
		Hints:                positive(t.Hints, d.Hints),
		HintsPerInvoice:      positive(t.HintsPerInvoice, d.HintsPerInvoice),
		HintsPerClient:       positive(t.HintsPerClient, d.HintsPerClient),
		CheckoutPayments:     positive(t.CheckoutPayments, d.CheckoutPayments),
		DepositAddresses:     positive(t.DepositAddresses, d.DepositAddresses),
	}
}

// positive returns the value if it is above 0, else the default.
func positive[T int | int64 | time.Duration](value, byDefault T) T {
	if value <= 0 {
		return byDefault
	}

	return value
}
