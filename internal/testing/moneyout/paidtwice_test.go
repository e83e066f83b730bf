package moneyout_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// early is a network whose driver calls transactions expired 15 blocks before they are, and whose node loses sight of
// the first one that it is given.
type early struct {
	*sim.Windows
	held chain.Signed
	// together has it find the first one again when it is given the second.
	together bool
}

func (d *early) Assemble(
	order chain.Order, unsigned chain.Unsigned, keys []chain.PublicKey, signatures [][]byte,
) (chain.Signed, error) {
	signed, err := d.Windows.Assemble(order, unsigned, keys, signatures)
	signed.ValidToHeight -= 15

	return signed, err
}

func (d *early) Broadcast(ctx context.Context, signed chain.Signed) error {
	if d.held.TxHash == "" {
		d.held = signed
	}

	if signed.TxHash == d.held.TxHash {
		return nil
	}

	if d.together {
		if err := d.Windows.Broadcast(ctx, d.held); err != nil {
			return err
		}
	}

	return d.Windows.Broadcast(ctx, signed)
}

// Two attempts of one payout in blocks freeze the wallet, and are a difference until a person has said what the second
// was.
func TestPayoutThatIsPaidTwice(t *testing.T) {
	t.Run("after it was confirmed", func(t *testing.T) { testPaidTwice(t, false) })
	t.Run("in one block", func(t *testing.T) { testPaidTwice(t, true) })
}

func testPaidTwice(t *testing.T, together bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &early{Windows: sim.NewWindows(sim.WindowsConfig{}), together: together}
		w := newHarnessOver(t, memory.New(), account.Settings{}, sim.Config{}, func(c *payments.Config) {
			c.Drivers = append(c.Drivers, d)
		})
		slug := d.Network().Slug
		party, err := internal.Of(w.engine).Transactions.MasterWallet(t.Context(), slug, w.account.Index)
		w.must(err)

		master := party.Address
		d.Fund(master, "SIMW", coin(10))

		run := func(what string, done func() bool) {
			w.live(what, func() bool {
				d.Mine(1)
				return done()
			})
		}
		create := func() payout.Payout {
			params := w.params("SIMW", milli(2))
			params.Network, params.Destination = slug, string(d.NewAddress())
			p, err := w.engine.Payouts.Create(t.Context(), params)
			w.must(err)

			return p
		}
		health := func() (frozen []string) {
			h, err := w.engine.Health(t.Context())
			w.must(err)

			for _, one := range frozenOf(h) {
				frozen = append(frozen, one.Reason+" "+one.FrozenBy)
			}

			return frozen
		}

		p := create()

		run("an attempt is confirmed", func() bool { return w.get(p.ID).Status == payout.Confirmed })

		paidBy := w.get(p.ID).TxHash

		if !together {
			if frozen := health(); len(frozen) != 0 || paidBy == d.held.TxHash {
				t.Errorf("before it is paid by %s, and frozen are %v", paidBy, frozen)
			}

			w.must(d.Windows.Broadcast(t.Context(), d.held))
		}

		run("the wallet is frozen", func() bool { return len(health()) > 0 })

		if len(health()) == 0 {
			t.FailNow()
		}

		w.check("paid in all", d.Balance(p.Destination, "SIMW"), milli(4))

		second := strings.TrimPrefix(health()[0], string(wallet.FrozenPaidTwice)+" ")
		if d.held.TxHash == "" || second == paidBy || !together && second != d.held.TxHash {
			t.Errorf("paid by %s, and then Health says %q", paidBy, second)
		}

		differences := func() (found []audit.Difference) {
			report, err := w.engine.Audit(t.Context())
			w.must(err)

			for _, n := range report.Networks {
				found = append(found, n.Differences...)
			}

			return found
		}

		twice := 0

		for _, d := range differences() {
			if d.Kind == audit.PaidTwice && d.Address == master {
				twice++
			}
		}

		if twice != 1 {
			t.Errorf("the audit finds %+v", differences())
		}

		waiting := create()

		run("time goes by", func() bool { return time.Since(waiting.CreatedAt) > 5*time.Minute })

		if got := w.get(waiting.ID); got.Status != payout.Pending {
			t.Errorf("the next payout is %s", got.Status)
		}

		w.must(w.engine.Acknowledge(t.Context(), slug, second, wallet.Foreign))
		run(
			"the next payout is confirmed",
			func() bool { return w.get(waiting.ID).Status == payout.Confirmed },
		)

		if got := w.get(p.ID); got.Status != payout.Confirmed || got.TxHash != paidBy {
			t.Errorf("the payout is %s by %s", got.Status, got.TxHash)
		}

		if left := differences(); len(left) != 0 {
			t.Errorf("after it was acknowledged the audit finds %+v", left)
		}
	})
}
