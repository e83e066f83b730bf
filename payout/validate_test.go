package payout

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/fault"
)

func TestDestinationMustBeOnTheList(t *testing.T) {
	network := sim.New(sim.Config{})

	to, other := string(network.NewAddress()), string(network.NewAddress())
	for _, c := range []struct {
		name string
		only []string
		code string
	}{
		{"no list", nil, ""},
		{"on the list", []string{other, to}, ""},
		{"not on the list", []string{other}, "destination_not_allowed"},
		{"an empty list", []string{}, "destination_not_allowed"},
	} {
		if _, err := destination(network, to, c.only); fault.Code(err) != c.code {
			t.Errorf("%s: %v, want code %q", c.name, err, c.code)
		}
	}
}
