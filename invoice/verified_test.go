package invoice

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// TestVerifiedAddressesAreForgotten: at verifiedFor at the latest, when the clock goes back, and when there are more
// than two generations hold.
func TestVerifiedAddressesAreForgotten(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	one := shownAddress{address: "one", invoiceID: "1", optionID: "2"}
	other := one
	other.invoiceID = "3"

	for _, c := range []struct {
		after time.Duration
		known bool
	}{
		{0, true},
		{verifiedFor / 2, true},
		{verifiedFor - 1, true},
		{verifiedFor, false},
		{-1, false},
	} {
		var v verifiedAddresses

		v.add([]shownAddress{one}, start)

		if got := len(v.without([]shownAddress{one}, start.Add(c.after))) == 0; got != c.known {
			t.Errorf("after %s it is known: %v", c.after, got)
		}

		if len(v.without([]shownAddress{other}, start.Add(c.after))) == 0 {
			t.Errorf("after %s another object's address is known", c.after)
		}
	}

	var v verifiedAddresses

	v.add([]shownAddress{one}, start)

	for i := range 2 * maxVerified {
		v.add([]shownAddress{{address: chain.Address(fmt.Sprint(i))}}, start)
	}

	if len(v.without([]shownAddress{one}, start)) == 0 || len(v.newer) > maxVerified ||
		len(v.previous) > maxVerified {
		t.Errorf("%d and %d are remembered", len(v.newer), len(v.previous))
	}
}

// A generation that ages by halves forgets what it held after verifiedFor, however often it is asked.
func TestVerifiedAddressesAgeByHalves(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	one := []shownAddress{{address: "one"}}

	var v verifiedAddresses

	v.add(nil, start)
	v.add(one, start.Add(time.Second))

	for at := time.Second; at < 2*verifiedFor; at += time.Second {
		if len(v.without(one, start.Add(at))) != 0 {
			if at > verifiedFor+time.Second {
				t.Errorf("known for %s", at)
			}

			return
		}
	}

	t.Error("known for ever")
}
