package settlementstate

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// What an ended settlement shows is published when it changes, unless another event of the same transaction shows it.
func TestIsUpdated(t *testing.T) {
	costsMore := func(s *settlement.Settlement) { s.NetworkFees = chain.Units(7) }
	cases := []struct {
		name   string
		status settlement.Status
		change func(s *settlement.Settlement)
		want   bool
	}{
		{"released, and costs more", settlement.Released, costsMore, true},
		{"failed, and costs more", settlement.Failed, costsMore, true},
		{"pending", settlement.Pending, costsMore, false},
		{"held", settlement.Held, costsMore, false},
		{"releasing", settlement.Releasing, costsMore, false},
		{"reverted", settlement.Reverted, costsMore, false},
		{"nothing changed", settlement.Released, func(*settlement.Settlement) {}, false},
		{
			"nobody can see it",
			settlement.Released,
			func(s *settlement.Settlement) { s.CarriedOut, s.Version = chain.Units(7), 9 },
			false,
		},
		{
			"an event says so",
			settlement.Released,
			func(s *settlement.Settlement) { costsMore(s); s.Sequence++ },
			false,
		},
		{
			"it goes back into the queue",
			settlement.Failed,
			func(s *settlement.Settlement) { s.Status = settlement.Pending },
			false,
		},
	}

	for _, c := range cases {
		before := in(c.status, settlement.NotReleasable)
		now := before
		c.change(&now)

		if got := IsUpdated(before, now); got != c.want {
			t.Errorf("%s: published %t", c.name, got)
		}
	}

	if opened := in(settlement.Released, ""); IsUpdated(settlement.Settlement{}, opened) {
		t.Error("one that is released when it opens is published twice")
	}
}
