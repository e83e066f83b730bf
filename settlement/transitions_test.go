package settlement

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var (
	now  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	same = cmp.Options{
		cmp.Comparer(func(a, b chain.Amount) bool { return a == b }),
		cmp.Comparer(func(a, b decimal.Decimal) bool { return a.Equal(b) }),
	}
)

func in(s Status, reason Reason) Settlement {
	out := Settlement{ID: "s", Status: s, Reason: reason, SweepID: "r", Gross: chain.Units(100)}
	if s == Pending || s == Held {
		out.SweepID = ""
	}

	return out
}

// Every move from every status: the status it leads to, or "" where it is refused.
func TestMoves(t *testing.T) {
	type start struct {
		status Status
		reason Reason
	}

	starts := []start{
		{Pending, ""},
		{Held, Uneconomic},
		{Releasing, ""},
		{Released, ""},
		{Reverted, ""},
		{Failed, PaymentOrphaned},
		{Failed, Replanning},
		{Failed, TransactionFailed},
	}
	due := now.Add(time.Minute)
	hold := func(r Reason) func(*Settlement) error {
		return func(s *Settlement) error { _, err := s.Hold(r, nil, now, due); return err }
	}
	fail := func(r Reason) func(*Settlement) error {
		return func(s *Settlement) error { return s.Fail(r, now, time.Time{}) }
	}

	moves := []struct {
		name string
		move func(*Settlement) error
		to   [8]Status
	}{
		{"assign", func(s *Settlement) error { return s.Assign("r", "m") }, [8]Status{Pending, Held}},
		{
			"assign and start",
			func(s *Settlement) error {
				if s.Status != Releasing {
					if err := s.Assign("r", "m"); err != nil {
						return err
					}
				}

				return s.Start(chain.Amount{})
			},
			[8]Status{Releasing, Releasing, Releasing},
		},
		{
			"start without a release",
			func(s *Settlement) error { return s.Start(chain.Amount{}) },
			[8]Status{"", "", Releasing},
		},
		{"unassign", func(s *Settlement) error { return s.Unassign(due) }, [8]Status{Pending, Held}},
		{"hold", hold(BelowSweepMin), [8]Status{Held, Held}},
		{"hold for a failure", hold(FundsMissing), [8]Status{}},
		{
			"release",
			func(s *Settlement) error { return s.Release(chain.Units(1), now) },
			[8]Status{"", "", Released, Released},
		},
		{"fail orphaned", fail(PaymentOrphaned), [8]Status{Failed, Failed, Failed, "", "", Failed}},
		{"fail replanning", fail(Replanning), [8]Status{"", "", Failed, "", "", "", Failed}},
		{"fail not releasable", fail(NotReleasable), [8]Status{Failed, Failed, Failed}},
		{
			"fail transaction",
			fail(TransactionFailed),
			[8]Status{Failed, Failed, Failed, "", "", "", "", Failed},
		},
		{"fail for a hold", fail(Uneconomic), [8]Status{}},
		{
			"revert",
			func(s *Settlement) error { return s.Revert("") },
			[8]Status{"", "", "", Reverted, Reverted},
		},
		{
			"revert orphaned",
			func(s *Settlement) error { return s.Revert(PaymentOrphaned) },
			[8]Status{"", "", "", Reverted, Reverted},
		},
		{
			"return",
			func(s *Settlement) error { return s.Return(false, false, due) },
			[8]Status{Pending, "", "", "", Pending, Pending, Pending, ""},
		},
		{
			"retry",
			func(s *Settlement) error { return s.Return(true, false, due) },
			[8]Status{Pending, "", "", "", Pending, Pending, Pending, Pending},
		},
	}
	for _, m := range moves {
		for i, from := range starts {
			before, after := in(from.status, from.reason), in(from.status, from.reason)

			err := m.move(&after)
			if m.to[i] == "" {
				if !errors.Is(err, fault.State) || fault.Code(err) != "settlement_state" {
					t.Errorf("%s from %s: error %v, want fault.State", m.name, from, err)
				}

				if d := cmp.Diff(before, after, same); d != "" && m.name != "assign and start" {
					t.Errorf("%s from %s was refused and changed the record:\n%s", m.name, from, d)
				}

				continue
			}

			if err != nil || after.Status != m.to[i] {
				t.Errorf("%s from %s leads to %s (%v), want %s", m.name, from, after.Status, err, m.to[i])
				continue
			}

			if (after.Status == Held || after.Status == Failed) == (after.Reason == "") &&
				m.name != "revert orphaned" {
				t.Errorf("%s from %s: status %s with reason %q", m.name, from, after.Status, after.Reason)
			}

			again := after
			if err := m.move(&again); err != nil {
				t.Errorf("%s from %s, a second time: %v", m.name, from, err)
			} else if d := cmp.Diff(after, again, same); d != "" {
				t.Errorf("%s from %s, a second time, changed the record:\n%s", m.name, from, d)
			}
		}
	}
}

func TestHoldPublishesOnlyANewReason(t *testing.T) {
	s := in(Pending, "")
	for i, c := range []struct {
		reason Reason
		fresh  bool
	}{{Uneconomic, true}, {Uneconomic, false}, {BelowSweepMin, true}, {BelowSweepMin, false}} {
		fresh, err := s.Hold(c.reason, nil, now.Add(time.Duration(i)*time.Hour), now)
		if err != nil || fresh != c.fresh || s.HeldSince != now {
			t.Errorf("hold %d: fresh %v, %v, held since %s", i, fresh, err, s.HeldSince)
		}
	}
}

func TestPlannedSettlementIsNotPlannedTwice(t *testing.T) {
	s := in(Pending, "")
	if err := s.Assign("r", "m"); err != nil {
		t.Fatal(err)
	}

	if err := s.Assign("r2", "m"); !errors.Is(err, fault.State) {
		t.Errorf("it was put into a second release: %v", err)
	}

	if _, err := s.Hold(Uneconomic, nil, now, now); !errors.Is(err, fault.State) {
		t.Errorf("it was held while its release is under way: %v", err)
	}
}

func TestFeeIsRoundedDown(t *testing.T) {
	d := decimal.RequireFromString
	for _, c := range []struct {
		value string
		bps   int
		usd   string
	}{
		{"2000", 50, "10"},
		{"0.00000199", 50, "0"},
		{"0.01", 50, "0.00005"},
		{"1.00000001", 50, "0.005"},
		{"0.00000399", 50, "0.00000001"},
		{"123.45678901", 0, "0"},
	} {
		if got := FeeUSD(d(c.value), c.bps); !got.Equal(d(c.usd)) {
			t.Errorf("%d bps of %s is %s, want %s", c.bps, c.value, got, c.usd)
		}
	}

	for _, c := range []struct {
		usd, price string
		decimals   uint8
		want       string
	}{
		{"10", "2000", 18, "5000000000000000"},
		{"1", "3", 18, "333333333333333333"},
		{"2", "3", 8, "66666666"},
		{"0", "0", 18, "0"},
		{"0.00000001", "100000", 8, "0"},
	} {
		got, err := FeeNative(d(c.usd), d(c.price), c.decimals)
		if err != nil || got.String() != c.want {
			t.Errorf("%s USD at %s is %s (%v), want %s", c.usd, c.price, got, err, c.want)
		}
	}

	if _, err := FeeNative(d("1"), d("0"), 18); !errors.Is(err, fault.Unavailable) {
		t.Errorf("without a price: %v", err)
	}
}

func TestSplitSumsToTheBaseUnit(t *testing.T) {
	n := chain.Units

	got := Split(n(10), []chain.Amount{n(1), n(1), n(1)})
	if d := cmp.Diff([]chain.Amount{n(4), n(3), n(3)}, got, same); d != "" {
		t.Error(d)
	}

	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 1<<60), 1, 20).Draw(t, "weights")
		amount := n(rapid.Uint64().Draw(t, "amount"))

		var (
			in         []chain.Amount
			sum, whole chain.Amount
		)
		for _, w := range weights {
			in, whole = append(in, n(w)), whole.Add(n(w))
		}

		for i, share := range Split(amount, in) {
			sum = sum.Add(share)
			if i > 0 && share != amount.Share(in[i], whole) {
				t.Fatalf("share %d is %s", i, share)
			}
		}

		if sum != amount {
			t.Fatalf("the shares sum to %s, not %s", sum, amount)
		}
	})
}

func TestFeeBookkeepingKeepsItsInvariant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Settlement{FeeNative: chain.Units(rapid.Uint64Range(0, 1000).Draw(t, "fee"))}
		s.FeeCarried = s.FeeNative

		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				s.Pay(s.FeeCarried)
			case 1:
				s.Unpay(s.FeePaid)
			case 2:
				s.CarryIn(chain.Units(rapid.Uint64Range(0, 1000).Draw(t, "carried")))
			case 3:
				s.CarryOut()
			}

			if s.FeePaid.Add(s.FeeCarried) != s.FeeNative.Add(s.CarriedIn) {
				t.Fatalf(
					"paid %s + carried %s is not owed %s + carried in %s",
					s.FeePaid, s.FeeCarried, s.FeeNative, s.CarriedIn,
				)
			}
		}
	})
}
