package gate_test

import (
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// Behind one URL the backend that is asked for a wallet's history may be behind the one that showed the tip. A payout
// is signed as soon as one answers that has reached it, and never on the word of one that has not.
func TestAPayoutIsCheckedWhereTheTipWasReached(t *testing.T) {
	for name, c := range map[string]struct {
		paid   bool     // in the newest block
		behind []uint64 // blocks, of the backends in turn
		want   string   // the code of its error
	}{
		"unpaid, the first is behind":     {behind: []uint64{2, 0}},
		"unpaid, most are behind":         {behind: []uint64{2, 2, 1, 0}},
		"unpaid, none has reached it":     {behind: []uint64{2}, want: "payout_unchecked"},
		"paid, the first is behind":       {paid: true, behind: []uint64{2, 0}, want: paidAlready},
		"paid, none has reached it":       {paid: true, behind: []uint64{1}, want: "payout_unchecked"},
		"paid, the one ahead is the last": {paid: true, behind: []uint64{1, 1, 1, 0}, want: paidAlready},
	} {
		t.Run(name, func(t *testing.T) {
			calls, behind := 0, []uint64{0}

			e := newExpiring(t, func(w *sim.Windows) driver {
				return byAddress{
					w.ByAddress().(driver),
					w,
					func() uint64 {
						calls++
						return behind[(calls-1)%len(behind)]
					},
				}
			})

			signed, err := e.sign(t)
			if err == nil && c.paid {
				err = e.driver.Broadcast(t.Context(), signed)
			}

			if err != nil {
				t.Fatal(err)
			}

			e.mine(1)
			e.restart(t)

			calls, behind = 0, c.behind

			_, err = e.sign(t)
			if fault.Code(err) != c.want {
				t.Errorf("it is signed with the error %v, not %q", err, c.want)
			}

			if c.want == "payout_unchecked" && !strings.Contains(err.Error(), "is above the tip") {
				t.Errorf("the cause is missing: %v", err)
			}
		})
	}
}
