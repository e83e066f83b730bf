package sweep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A foreign transaction takes the nonce of the sweep after the fee was paid: an operator retries,
// and the fee is not paid again.
func TestRetryDoesNotPayTheFeeAgain(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.run("the sweep waits", func() bool { return w.get(opened.ID).SweepTx != "" })
	w.chain.Replace(w.get(opened.ID).SweepTx)

	s := w.until(opened.ID, settlement.Failed)
	if s.Reason != settlement.TransactionFailed || s.FeePaid != s.FeeNative || s.NetReleased != nil {
		t.Fatalf("failed as %+v", s)
	}

	w.acknowledge()

	if _, err := w.service.Retry(t.Context(), owner, s.ID); err != nil {
		t.Fatal(err)
	}

	s = w.until(s.ID, settlement.Released)
	w.check("paid", s.FeePaid, s.FeeNative)
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), s.FeeNative)
	w.check("net", *s.NetReleased, dollars(400))

	if _, err := w.service.Retry(t.Context(), owner, s.ID); !errors.Is(err, fault.State) {
		t.Errorf("retrying a released one: %v", err)
	}
}

func TestRetryOfANativeDepositReleasesWhatIsLeft(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "SIM", coin(1), 2000)
	w.run("the sweep waits", func() bool { return w.get(opened.ID).SweepTx != "" })
	w.chain.Replace(w.get(opened.ID).SweepTx) // costs the address a network fee that no record explains
	s := w.until(opened.ID, settlement.Failed)
	missing := coin(1).Sub(s.FeePaid).Sub(s.NetworkFees).Sub(w.chain.Balance(deposit.Address, "SIM"))
	w.chain.Fund(deposit.Address, "SIM", missing)
	w.acknowledge()

	if _, err := w.service.Retry(t.Context(), owner, s.ID); err != nil {
		t.Fatal(err)
	}

	s = w.until(s.ID, settlement.Released)
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), s.FeeNative)
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), s.Gross)
	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})
}

func TestMissingFundsNeedAnOperator(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	s := w.open("p1", w.deposit(1), "USDX", dollars(400), 400) // nobody paid
	w.work()

	if s = w.get(s.ID); s.Status != settlement.Pending {
		t.Fatalf("a node that may lag made it %s %s", s.Status, s.Reason)
	}

	w.now = w.now.Add(20 * time.Minute)
	if s = w.until(s.ID, settlement.Failed); s.Reason != settlement.FundsMissing {
		t.Errorf("failed for %s", s.Reason)
	}
}

// Pitfall 20. What arrived counts, not what the transaction says.
func TestTokenReleaseThatRevertsIsNotReleased(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.run("the sweep waits", func() bool { return w.get(opened.ID).SweepTx != "" })
	w.chain.Freeze(w.master().Address, "USDX", true)

	s := w.until(opened.ID, settlement.Failed)
	if s.Reason != settlement.TransactionFailed || s.NetReleased != nil {
		t.Fatalf("failed as %+v", s)
	}

	left := w.chain.Balance(deposit.Address, "SIM")
	w.check(
		"native coin in all",
		w.chain.Balance(w.master().Address, "SIM").Add(s.FeePaid).Add(s.NetworkFees).Add(left),
		coin(1),
	)
	w.chain.Freeze(w.master().Address, "USDX", false)

	if _, err := w.service.Retry(t.Context(), owner, s.ID); err != nil {
		t.Fatal(err)
	}

	s = w.until(s.ID, settlement.Released)
	left = w.chain.Balance(deposit.Address, "SIM")
	w.check(
		"native coin in all",
		w.chain.Balance(w.master().Address, "SIM").Add(s.FeePaid).Add(s.NetworkFees).Add(left),
		coin(1),
	)
	w.check("paid", w.chain.Balance(w.fee, "SIM"), s.FeeNative)
}

// closing has a simulated network close accounts as Solana does, and the first sweeps reverted:
// what they pay to freezes.
type closing struct {
	*sim.Chain
	from, to chain.Address
	reverts  int
	sent     map[string]bool
	again    error // of planning without closing
}

func (c *closing) Broadcast(ctx context.Context, tx chain.Signed) error {
	err := c.Chain.Broadcast(ctx, tx)
	if tx.From == c.from && !c.sent[tx.TxHash] {
		c.sent[tx.TxHash] = true
		c.Freeze(c.to, "USDX", len(c.sent) <= c.reverts)
	}

	return err
}

func (c *closing) PlanSweep(ctx context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
	if r.KeepOpen {
		c.Freeze(c.to, "USDX", false)

		if c.again != nil {
			return nil, c.again
		}
	}

	steps, err := c.Chain.PlanSweep(ctx, r)
	if err == nil && len(steps) > 0 {
		steps[len(steps)-1].Order.Close = !r.KeepOpen
	}

	return steps, err
}

// A sweep that closes its account is reverted: the release goes on by itself, once, and leaves the
// account open.
func TestRevertedSweepThatClosesIsMadeAgainWithoutClosing(t *testing.T) {
	for _, c := range []struct {
		name    string
		reverts int
		again   error
		ends    settlement.Status
		sweeps  int
	}{
		{"and goes through", 1, nil, settlement.Released, 2},
		{"and is reverted again", 2, nil, settlement.Failed, 2},
		{
			"and cannot pay for what has to stay",
			1,
			fault.New(fault.State, "uneconomic", "too little"),
			settlement.Failed,
			1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			deposit := w.deposit(1)
			w.driver = &closing{
				w.chain,
				deposit.Address,
				w.master().Address,
				c.reverts,
				map[string]bool{},
				c.again,
			}
			w.boot()
			w.chain.Fund(w.master().Address, "SIM", coin(1))
			opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
			s := w.until(opened.ID, c.ends)

			r, err := w.store.Sweep(t.Context(), s.SweepID)
			if err != nil {
				t.Fatal(err)
			}

			sweeps := 0

			for _, step := range r.Steps {
				if step.Kind != chain.StepSweep {
					continue
				}

				if tx, err := w.store.Transaction(
					t.Context(), step.TransactionID,
				); err != nil ||
					tx.Order.Close != (sweeps == 0) {
					t.Errorf("sweep %d has Close %v, %v", sweeps+1, tx.Order.Close, err)
				}

				sweeps++
			}

			if sweeps != c.sweeps || s.SweepID != r.ID {
				t.Errorf(
					"release %s of the settlement in %s has %d sweeps, want %d",
					r.ID, s.SweepID, sweeps, c.sweeps,
				)
			}

			failures := 0
			if c.ends == settlement.Failed {
				failures = 1

				if s.Reason != settlement.TransactionFailed {
					t.Errorf("it failed for %s", s.Reason)
				}
			} else {
				w.check("net", *s.NetReleased, dollars(400))
			}

			if published := w.published(event.SettlementFailed); published != failures {
				t.Errorf("a failure was published %d times, want %d", published, failures)
			}

			w.check("the platform fee", w.chain.Balance(w.fee, "SIM"), s.FeePaid)
			left := w.chain.Balance(deposit.Address, "SIM")
			w.check(
				"native coin in all",
				w.chain.Balance(w.master().Address, "SIM").Add(s.FeePaid).Add(s.NetworkFees).Add(left),
				coin(1),
			)

			b, _, err := w.store.Balance(t.Context(), network, w.master().Address, w.asset("SIM").ID)
			if err != nil || !b.Reserved.IsZero() {
				t.Errorf("%s are still reserved (%v)", b.Reserved, err)
			}
		})
	}
}

func TestRefusalOfTheSignerNeedsAnOperator(t *testing.T) {
	w := newHarness(t, account.Settings{})
	refuse := true
	w.signer = sim.NewSigner(7, func(chain.SignRequest) error {
		if refuse {
			return chain.Refuse("policy")
		}

		return nil
	})
	w.boot()

	s := w.until(w.pay("p1", w.deposit(1), "SIM", coin(1), 2000).ID, settlement.Failed)
	if s.Reason != settlement.TransactionFailed {
		t.Errorf("failed for %s", s.Reason)
	}

	refuse = false

	if _, err := w.service.Retry(t.Context(), owner, s.ID); err != nil {
		t.Fatal(err)
	}

	w.until(s.ID, settlement.Released)
}

// A release that nobody signs in time is planned again by itself.
func TestUnsignedReleaseIsPlannedAgain(t *testing.T) {
	w := newHarness(t, account.Settings{})
	away := true
	w.signer = sim.NewSigner(7, func(chain.SignRequest) error {
		if away {
			return errors.New("the HSM is away")
		}

		return nil
	})
	w.boot()
	opened := w.pay("p1", w.deposit(1), "SIM", coin(1), 2000)
	w.work()

	first := w.get(opened.ID).SweepID
	for range 20 {
		w.pass(5 * time.Minute)
		w.work()
	}

	if s := w.get(opened.ID); s.Status != settlement.Pending || s.SweepID == first {
		t.Fatalf("it is %s in release %s, the first was %s", s.Status, s.SweepID, first)
	}

	away = false

	w.until(opened.ID, settlement.Released)
}

func TestReleaseThatIsGivenUpGivesItsReservationsBack(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	w.signer = sim.NewSigner(7, func(chain.SignRequest) error { return errors.New("the HSM is away") })
	w.boot()
	opened := w.pay("p1", w.deposit(1), "USDX", dollars(400), 400)
	seen := map[string]bool{}

	for range 40 {
		w.work()

		s := w.get(opened.ID)
		if s.SweepID == "" {
			continue
		}

		seen[s.SweepID] = true

		b, _, err := w.store.Balance(t.Context(), network, w.master().Address, w.asset("SIM").ID)
		if err != nil || b.Reserved != *s.RequiredNative {
			t.Fatalf(
				"release %d: %s are reserved, %s are needed (%v)",
				len(seen), b.Reserved, s.RequiredNative, err,
			)
		}

		w.pass(5 * time.Minute)
	}

	if len(seen) < 3 {
		t.Fatalf("it was planned %d times", len(seen))
	}
}

func TestNodeWithoutAnswerIsNotAskedInALoop(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	opened := w.pay("p1", w.deposit(1), "USDX", dollars(400), 400)
	w.chain.FailNext(sim.MethodPlanSweep, sim.Unavailable(), 5)
	w.work()

	if n := w.chain.Calls(sim.MethodPlanSweep); n != 1 {
		t.Errorf("it was asked %d times at once", n)
	}

	w.until(opened.ID, settlement.Released)
}

// A sweep that pays too little for hours is displaced by a transaction to oneself, which costs the
// deposit: that is recorded, and the release made again moves what is left.
func TestRetryAfterASweepWasDisplaced(t *testing.T) {
	for symbol, amount := range map[string]chain.Amount{"SIM": coin(1), "USDX": dollars(400)} {
		t.Run(symbol, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))
			deposit := w.deposit(1)
			s := w.pay("p1", deposit, symbol, amount, 2000)
			w.run("the sweep is on its way", func() bool { return w.get(s.ID).SweepTx != "" })
			paid := w.get(s.ID).NetworkFees
			w.chain.SetFee(40*sim.DefaultBaseFee, sim.DefaultPriority)

			if symbol == "USDX" {
				w.chain.Fund(deposit.Address, "SIM", milli(10)) // for the displacement
			}

			for range 100 {
				w.pass(5 * time.Minute)
				w.work()
			}

			if s = w.get(s.ID); s.Status != settlement.Failed || s.Reason != settlement.TransactionFailed {
				t.Fatalf("it is %s %s", s.Status, s.Reason)
			}

			if !paid.Less(s.NetworkFees) {
				t.Errorf("the network fees are %s, as before it was displaced", s.NetworkFees)
			}

			w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)

			if _, err := w.service.Retry(t.Context(), owner, s.ID); err != nil {
				t.Fatal(err)
			}

			s = w.until(s.ID, settlement.Released)
			if symbol == "SIM" {
				w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), s.Gross)
				w.check(
					"left at the deposit address", w.chain.Balance(deposit.Address, "SIM"),
					chain.Amount{},
				)
			}
		})
	}
}
