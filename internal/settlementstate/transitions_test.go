package settlementstate

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/settlement"
)

var (
	now  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	same = cmp.Options{
		cmp.Comparer(func(a, b chain.Amount) bool { return a == b }),
		cmp.Comparer(func(a, b decimal.Decimal) bool { return a.Equal(b) }),
	}
)

func in(s settlement.Status, reason settlement.Reason) settlement.Settlement {
	out := settlement.Settlement{ID: "s", Status: s, Reason: reason, SweepID: "r", Gross: chain.Units(100)}
	if s == settlement.Pending || s == settlement.Held {
		out.SweepID = ""
	}

	return out
}

// Every move from every status: the status it leads to, or "" where it is refused.
func TestMoves(t *testing.T) {
	type start struct {
		status settlement.Status
		reason settlement.Reason
	}

	starts := []start{
		{settlement.Pending, ""},
		{settlement.Held, settlement.Uneconomic},
		{settlement.Releasing, ""},
		{settlement.Released, ""},
		{settlement.Reverted, ""},
		{settlement.Failed, settlement.PaymentOrphaned},
		{settlement.Failed, settlement.Replanning},
		{settlement.Failed, settlement.TransactionFailed},
	}
	due := now.Add(time.Minute)
	hold := func(r settlement.Reason) func(*settlement.Settlement) error {
		return func(s *settlement.Settlement) error { _, err := Hold(s, r, nil, now, due); return err }
	}
	fail := func(r settlement.Reason) func(*settlement.Settlement) error {
		return func(s *settlement.Settlement) error { return Fail(s, r, now, time.Time{}) }
	}

	moves := []struct {
		name string
		move func(*settlement.Settlement) error
		to   [8]settlement.Status
	}{
		{
			"assign",
			func(s *settlement.Settlement) error { return Assign(s, "r", "m") },
			[8]settlement.Status{settlement.Pending, settlement.Held},
		},
		{
			"assign and start",
			func(s *settlement.Settlement) error {
				if s.Status != settlement.Releasing {
					if err := Assign(s, "r", "m"); err != nil {
						return err
					}
				}

				return Start(s, chain.Amount{})
			},
			[8]settlement.Status{settlement.Releasing, settlement.Releasing, settlement.Releasing},
		},
		{
			"start without a release",
			func(s *settlement.Settlement) error { return Start(s, chain.Amount{}) },
			[8]settlement.Status{"", "", settlement.Releasing},
		},
		{
			"unassign",
			func(s *settlement.Settlement) error { return Unassign(s, due) },
			[8]settlement.Status{settlement.Pending, settlement.Held},
		},
		{"hold", hold(settlement.BelowSweepMin), [8]settlement.Status{settlement.Held, settlement.Held}},
		{"hold for a failure", hold(settlement.FundsMissing), [8]settlement.Status{}},
		{
			"release",
			func(s *settlement.Settlement) error { return Release(s, chain.Units(1), now) },
			[8]settlement.Status{"", "", settlement.Released, settlement.Released},
		},
		{
			"fail orphaned",
			fail(settlement.PaymentOrphaned),
			[8]settlement.Status{
				settlement.Failed,
				settlement.Failed,
				settlement.Failed,
				"",
				"",
				settlement.Failed,
			},
		},
		{
			"fail replanning",
			fail(settlement.Replanning),
			[8]settlement.Status{"", "", settlement.Failed, "", "", "", settlement.Failed},
		},
		{
			"fail not releasable",
			fail(settlement.NotReleasable),
			[8]settlement.Status{settlement.Failed, settlement.Failed, settlement.Failed},
		},
		{
			"fail transaction",
			fail(settlement.TransactionFailed),
			[8]settlement.Status{
				settlement.Failed,
				settlement.Failed,
				settlement.Failed,
				"",
				"",
				"",
				"",
				settlement.Failed,
			},
		},
		{"fail for a hold", fail(settlement.Uneconomic), [8]settlement.Status{}},
		{
			"revert",
			func(s *settlement.Settlement) error { return Revert(s, "") },
			[8]settlement.Status{"", "", "", settlement.Reverted, settlement.Reverted},
		},
		{
			"revert orphaned",
			func(s *settlement.Settlement) error { return Revert(s, settlement.PaymentOrphaned) },
			[8]settlement.Status{"", "", "", settlement.Reverted, settlement.Reverted},
		},
		{
			"return",
			func(s *settlement.Settlement) error { return s.Return(false, false, due) },
			[8]settlement.Status{
				settlement.Pending,
				"",
				"",
				"",
				settlement.Pending,
				settlement.Pending,
				settlement.Pending,
				"",
			},
		},
		{
			"retry",
			func(s *settlement.Settlement) error { return s.Return(true, false, due) },
			[8]settlement.Status{
				settlement.Pending,
				"",
				"",
				"",
				settlement.Pending,
				settlement.Pending,
				settlement.Pending,
				settlement.Pending,
			},
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

			if (after.Status == settlement.Held || after.Status == settlement.Failed) == (after.Reason == "") &&
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
	s := in(settlement.Pending, "")
	for i, c := range []struct {
		reason settlement.Reason
		fresh  bool
	}{
		{settlement.Uneconomic, true},
		{settlement.Uneconomic, false},
		{settlement.BelowSweepMin, true},
		{settlement.BelowSweepMin, false},
	} {
		fresh, err := Hold(&s, c.reason, nil, now.Add(time.Duration(i)*time.Hour), now)
		if err != nil || fresh != c.fresh || s.HeldSince != now {
			t.Errorf("hold %d: fresh %v, %v, held since %s", i, fresh, err, s.HeldSince)
		}
	}
}

func TestPlannedSettlementIsNotPlannedTwice(t *testing.T) {
	s := in(settlement.Pending, "")
	if err := Assign(&s, "r", "m"); err != nil {
		t.Fatal(err)
	}

	if err := Assign(&s, "r2", "m"); !errors.Is(err, fault.State) {
		t.Errorf("it was put into a second release: %v", err)
	}

	if _, err := Hold(&s, settlement.Uneconomic, nil, now, now); !errors.Is(err, fault.State) {
		t.Errorf("it was held while its release is under way: %v", err)
	}
}

// What a pending settlement waited for is over once a release takes it; what it says of that release stays.
func TestPlannedSettlementWaitsNoMore(t *testing.T) {
	s := in(settlement.Pending, "")
	Wait(&s, "release_under_way: another release", now)

	if err := Assign(&s, "r", "master"); err != nil || s.ReasonMessage != "" || !s.WaitingSince.IsZero() {
		t.Errorf("it says %q since %s: %v", s.ReasonMessage, s.WaitingSince, err)
	}

	Wait(&s, "no_block: its own", now)

	if err := Assign(&s, "r", "master"); err != nil || s.ReasonMessage == "" {
		t.Errorf("the same release again: it says %q: %v", s.ReasonMessage, err)
	}

	held := in(settlement.Held, settlement.Uneconomic)
	held.WaitingSince = now

	if err := Assign(&held, "r", "master"); err != nil || !held.WaitingSince.Equal(now) {
		t.Errorf("a held one is held since %s: %v", held.WaitingSince, err)
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
		s := settlement.Settlement{FeeNative: chain.Units(rapid.Uint64Range(0, 1000).Draw(t, "fee"))}
		s.FeeCarried = s.FeeNative

		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				Pay(&s, DueFee(s))
			case 1:
				Unpay(&s, s.FeePaid)
			case 2:
				CarryIn(&s, chain.Units(rapid.Uint64Range(0, 1000).Draw(t, "carried")))
			case 3:
				GiveBack(&s, chain.Units(rapid.Uint64Range(0, 1000).Draw(t, "waits")))
			case 4:
				CarryOut(&s, DueFee(s))
			case 5:
				TakeBack(&s, s.CarriedOut)
			}

			if s.FeeCarried.Less(s.CarriedOut) {
				t.Fatalf("%s was left to later releases, of %s", s.CarriedOut, s.FeeCarried)
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
