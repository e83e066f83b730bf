package storetest

import (
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/event"
)

// epoch is the time that the suite counts from.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// owners are two accounts in two modes. The first two differ in mode alone.
var owners = []event.Owner{
	{AccountID: "one"},
	{AccountID: "one", Livemode: true},
	{AccountID: "two", Livemode: true},
}

// recordID returns the n-th id of the suite: ids sort as their numbers.
func recordID(n int) string { return fmt.Sprintf("%024x", n+1) }

// timeAt returns the time of the n-th record: n minutes after epoch.
func timeAt(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

// cycle returns the n-th of some values, in an order that has no common period with others of
// another length.
func cycle[V any](n int, values ...V) V {
	round := n / len(owners)
	return values[(round*7+round/len(values))%len(values)]
}
