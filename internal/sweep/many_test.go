package sweep_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
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

	for _, s := range small { // each says why it waits
		if got := w.get(s.ID); got.Status != settlement.Held || got.Reason != settlement.Uneconomic {
			t.Fatalf("%s is %s (%q)", s.PaymentID, got.Status, got.Reason)
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

// Releases that wait for their transactions, more than a planning run reads, hold up no other: a token's release gets
// each of its transactions, and at an address where one of them is under way no second begins.
func TestManyReleasesHoldUpNothing(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	busy := w.deposit(1)
	under := []settlement.Step{{Kind: chain.StepSweep, State: wallet.Signed}}

	err := w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		for i := range 1100 {
			if err := tx.PutSweep(ctx, &settlement.Sweep{
				ID:      fmt.Sprintf("%024d", i),
				Owner:   owner,
				Network: network,
				Deposit: chain.Party{Address: chain.Address(fmt.Sprint("elsewhere", i))},
				Steps:   under,
			}); err != nil {
				return err
			}
		}

		return tx.PutSweep(ctx, &settlement.Sweep{
			ID:      fmt.Sprintf("%024d", 1100),
			Owner:   owner,
			Network: network,
			Deposit: busy,
			Steps:   under,
		})
	})
	if err != nil {
		t.Fatal(err)
	}

	second := w.pay("second", busy, "SIM", coin(1), 2000)
	w.until(w.pay("token", w.deposit(2), "USDX", dollars(400), 400).ID, settlement.Released)

	if got := w.get(second.ID); got.Status != settlement.Pending {
		t.Errorf("where another release is under way, a settlement is %s", got.Status)
	}
}

// Where a network is not read up to its tip, or transactions wait long beyond their time for somebody to sign them, no
// other is planned: it would be given up unsigned, and planned anew.
func TestNothingIsPlannedThatNobodySigns(t *testing.T) {
	for _, test := range []struct {
		what    string
		waiting int
		since   time.Duration
		unread  uint64
		plans   bool
	}{
		{"many that are late", 200, time.Minute, 0, false},
		{"some that are late", 199, time.Minute, 0, true},
		{"many that are due", 200, time.Second, 0, true},
		{"many blocks to read", 0, 0, 200, false},
		{"a block to read", 0, 0, 1, true},
	} {
		w := newHarness(t, account.Settings{})
		s := w.pay("p", w.deposit(1), "SIM", coin(1), 2000)
		w.read()

		err := w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			for i := range test.waiting {
				if err := tx.PutTransaction(ctx, &wallet.Transaction{
					ID:      fmt.Sprintf("%024d", i),
					Owner:   owner,
					Network: network,
					State:   wallet.Queued,
					DueAt:   w.now.Add(-test.since),
				}); err != nil {
					return err
				}
			}

			c, _, err := tx.Cursor(ctx, network)
			if err != nil {
				return err
			}

			c.Tip.Height += test.unread

			return tx.PutCursor(ctx, &c)
		})
		if err != nil {
			t.Fatal(err)
		}

		if _, err := w.sweeper.Step(t.Context(), network); err != nil {
			t.Fatal(err)
		}

		if plans := w.get(s.ID).SweepID != ""; plans != test.plans {
			t.Errorf("%s: a release begins: %v", test.what, plans)
		}
	}
}

// While nothing is planned because the network lags, what waits is not read again and again; when it has been read, it
// is planned.
func TestWhatWaitsIsNotReadWhileANetworkLags(t *testing.T) {
	w := newHarness(t, account.Settings{})
	reads := &dueReads{Store: w.store}
	w.store = reads
	w.connect()

	s := w.pay("p", w.deposit(1), "SIM", coin(1), 2000)
	w.read()

	ahead := func(blocks int) {
		if err := w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			c, _, err := tx.Cursor(ctx, network)
			if err != nil {
				return err
			}

			c.Tip.Height = c.At.Height + uint64(blocks)

			return tx.PutCursor(ctx, &c)
		}); err != nil {
			t.Fatal(err)
		}
	}
	step := func(want int) {
		t.Helper()

		reads.n = 0

		if _, err := w.sweeper.Step(t.Context(), network); err != nil {
			t.Fatal(err)
		}

		if reads.n != want {
			t.Errorf("what waits was read %d times, not %d", reads.n, want)
		}
	}

	ahead(200)
	step(1)
	step(0)
	step(0)
	ahead(0)
	step(1)

	if w.get(s.ID).SweepID == "" {
		t.Error("no release begins when the network has been read")
	}
}

// dueReads counts the reads of due settlements.
type dueReads struct {
	store.Store
	n int
}

func (d *dueReads) DueSettlements(
	ctx context.Context,
	network string,
	at time.Time,
	limit int,
) ([]settlement.Settlement, error) {
	d.n++
	return d.Store.DueSettlements(ctx, network, at, limit)
}
