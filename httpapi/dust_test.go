package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// openDusty opens a shop on a network whose coin has a dust limit, and returns a function that lets a block's time
// pass and the engine work.
func openDusty(t *testing.T, dust chain.Amount) (*shop, func()) {
	t.Helper()

	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	network := sim.DefaultNetwork()
	network.Assets[0].Dust = dust
	chained := sim.New(sim.Config{Network: network})

	s := bootWith(
		t, memory.New(), nil, func() time.Time { return now },
		func(c *payments.Config) { c.Drivers = []payments.ChainDriver{chained} },
	)
	s.network = chained
	s.enter(t)

	return s, func() {
		for range 8 {
			s.network.Mine(1)

			now = now.Add(3 * time.Second)

			for did := true; did; {
				var err error
				if did, err = s.engine.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// 300 payments of one base unit make no payment, settlement or event, and leave the page as it was. Another invoice's
// payment shows that the network is read.
func TestDustMakesNoRecords(t *testing.T) {
	s, work := openDusty(t, chain.Units(1_000_000))
	work() // reading begins

	create := func() (inv map[string]any, address chain.Address) {
		inv = s.post(t, "/v1/invoices", invoiceBody)
		option := inv["options"].([]any)[0].(map[string]any)

		return inv, chain.Address(option["address"].(string))
	}

	_, honest := create()
	inv, dusty := create()

	s.network.Pay(honest, "SIM", chain.Units(2_000_000))
	work()

	paths := []string{"/v1/payments", "/v1/settlements", "/v1/events"}

	var before []int
	for _, path := range paths {
		before = append(before, s.count(t, path))
	}

	if before[0] != 1 || before[1] != 1 {
		t.Fatalf("one payment makes %d payments and %d settlements", before[0], before[1])
	}

	path := serveCheckout(t, s).URL + checkoutPath(t, inv)
	_, untouched := answer(t, path, nil)

	for range 300 {
		s.network.Pay(dusty, "SIM", chain.Units(1))
	}

	work()

	for i, list := range paths {
		if n := s.count(t, list); n != before[i] {
			t.Errorf("%s: %d, %d before", list, n, before[i])
		}
	}

	if _, page := answer(t, path, nil); len(page) > len(untouched)+100 {
		t.Errorf("the page grew from %d to %d bytes", len(untouched), len(page))
	}
}

// count returns how many objects a list has, over all its pages.
func (s *shop) count(t *testing.T, path string) (n int) {
	t.Helper()

	for after := ""; ; {
		page := s.get(t, fmt.Sprintf("%s?limit=100%s", path, after))
		n += len(page["data"].([]any))

		if page["has_more"] != true {
			return n
		}

		after = "&starting_after=" + page["next_cursor"].(string)
	}
}
