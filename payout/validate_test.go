package payout

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/fault"
)

func TestDestinationMustBeOnTheList(t *testing.T) {
	network := sim.New(sim.Config{})

	to := network.NewAddress()
	slug := network.Network().Slug

	here, other := chain.Destination{
		Network: slug,
		Address: to,
	}, chain.Destination{
		Network: slug,
		Address: network.NewAddress(),
	}
	for _, c := range []struct {
		name string
		only []chain.Destination
		code string
	}{
		{"no list", nil, ""},
		{"on the list", []chain.Destination{other, here}, ""},
		{"not on the list", []chain.Destination{other}, "destination_not_allowed"},
		{
			"the same address on another network",
			[]chain.Destination{{Network: "elsewhere", Address: to}},
			"destination_not_allowed",
		},
		{"an empty list", []chain.Destination{}, "destination_not_allowed"},
	} {
		if _, err := destination(network, string(to), c.only); fault.Code(err) != c.code {
			t.Errorf("%s: %v, want code %q", c.name, err, c.code)
		}
	}
}
