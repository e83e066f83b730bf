package sweep_test

import (
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// More small deposits wait at an address than one release takes, none of which is worth its release. They hold up
// no large one, and a planning run that only holds them comes to an end.
func TestManySmallDepositsHoldUpNothing(t *testing.T) {
	w := newHarness(t, account.Settings{})
	place := w.deposit(1)

	var small []settlement.Settlement

	for i := range 130 {
		w.chain.Pay(place.Address, "SIM", chain.Units(1))

		small = append(small, w.open(fmt.Sprint("small", i), place, "SIM", chain.Units(1), 0))
	}

	w.chain.Mine(3)

	for steps := 0; ; steps++ {
		did, err := w.sweeper.Step(t.Context(), network)
		if err != nil {
			t.Fatal(err)
		}

		if !did {
			break
		}

		if steps == 20 {
			t.Fatal("while no time passes there is always more to plan")
		}
	}

	for _, s := range small {
		if got := w.get(s.ID); got.Status == settlement.Releasing || got.Status == settlement.Released {
			t.Fatalf("%s is %s", s.PaymentID, got.Status)
		}
	}

	w.until(w.pay("large", place, "SIM", coin(1), 2000).ID, settlement.Released)
}

// More deposits than one planning run looks at wait at an address with a release under way. Those elsewhere go on.
func TestBusyAddressHidesNobody(t *testing.T) {
	w := newHarness(t, account.Settings{})
	busy, other := w.deposit(1), w.deposit(2)

	w.until(w.pay("first", busy, "SIM", coin(1), 2000).ID, settlement.Releasing)

	for i := range 450 {
		w.open(fmt.Sprint("more", i), busy, "SIM", chain.Units(1), 0)
	}

	honest := w.pay("honest", other, "SIM", coin(1), 2000)
	w.read()

	if _, err := w.sweeper.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}

	if got := w.get(honest.ID); got.SweepID == "" {
		t.Errorf("the honest one is %s, and in no release", got.Status)
	}
}
