package gate_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// A node that was just restored has few blocks. A payout is signed where they reach back to its acceptance, whatever
// else the node lacks; an older one waits for a node that has more.
func TestAPayoutIsCheckedWithTheBlocksThereAre(t *testing.T) {
	for name, read := range map[string]func(w *sim.Windows) driver{
		"by block":   func(w *sim.Windows) driver { return w },
		"by address": func(w *sim.Windows) driver { return byAddress{driver: w.ByAddress().(driver), blocks: w} },
	} {
		for _, c := range []struct {
			blocks int // that the node has; one takes two seconds
			age    time.Duration
			want   string
		}{
			{blocks: 200, age: 0},
			{blocks: 200, age: 5 * time.Minute},
			{blocks: 40, age: 30 * time.Second},
			{blocks: 14, age: 2 * time.Second},
			{blocks: 200, age: 10 * time.Minute, want: "payout_unchecked"},
			{blocks: 40, age: 2 * time.Minute, want: "payout_unchecked"},
		} {
			e := newExpiring(t, read)
			e.mine(600)

			head, err := e.driver.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			e.network.Prune(head.Tip.Height + 1 - uint64(c.blocks))
			e.db.payout.CreatedAt = e.now.Add(-c.age)
			e.restart(t)

			if _, err := e.sign(t); fault.Code(err) != c.want {
				t.Errorf(
					"%s, %d blocks, %s after its acceptance it is signed with the error %v, not %q",
					name, c.blocks, c.age, err, c.want,
				)
			}
		}
	}
}
