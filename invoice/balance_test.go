package invoice_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// settle lets time pass with blocks in it, and compares the balances that are due after each.
func (w *harness) settle(d time.Duration, blocks int) {
	w.t.Helper()

	for range blocks {
		w.pass(d / time.Duration(blocks))
		w.chains[0].Mine(1)
		w.follow()
		w.doDueWork()
	}
}

// A payment in a block below the first one that is read is found by the balance alone, so an address that is made
// before is compared at once. Later ones are compared first after 30 seconds, like any that waits for money.
func TestAddressIsComparedAtOnceBeforeItsNetworkIsRead(t *testing.T) {
	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})

	early := w.sell()
	w.chains[0].Pay(early.Options[0].Address, "SIM", chain.MustAmount(due))
	w.mine(2)
	w.follow()
	w.compareBalances()

	if p := w.onlyPayment(early.ID); p.DetectedBy != invoice.ByBalance {
		t.Errorf("the payment below the first block: %+v", p)
	}

	w.pass(30 * time.Second) // until then it is not asked again whether the network is read
	w.compareBalances()

	later := w.sell()
	before := w.chains[0].Calls(sim.MethodBalances)
	w.compareBalances()

	if calls := w.chains[0].Calls(sim.MethodBalances) - before; calls != 0 {
		t.Errorf("an address that is made later costs %d calls at once", calls)
	}

	w.pass(30 * time.Second)
	w.compareBalances()

	row, err := w.store.MatchAddresses(
		context.Background(), w.chains[0].Network().Space(), []chain.Address{later.Options[0].Address},
	)
	if err != nil || len(row) != 1 || row[0].CheckedAt.IsZero() {
		t.Errorf("after 30 seconds it was not compared: %+v, %v", row, err)
	}
}

// Row 40 of the pitfalls: coin from a contract is found within a minute beside another payment, and once
// the invoice is closed, within the hour.
func TestCoinFromAContractIsFoundInEveryStatus(t *testing.T) {
	const half = "25000000000000000"

	for name, row := range map[string]struct {
		before func(w *harness, inv invoice.Invoice)
		within time.Duration
		status invoice.Status
		flags  []invoice.Flag
		late   bool
	}{
		"open": {
			before: func(*harness, invoice.Invoice) {},
			within: time.Minute,
			status: invoice.Underpaid,
		},
		"beside another payment": {
			before: func(w *harness, inv invoice.Invoice) { w.pay(inv, half) },
			within: time.Minute,
			status: invoice.Paid,
		},
		"underpaid": {
			before: func(w *harness, inv invoice.Invoice) {
				w.pay(inv, half)
				w.settle(time.Minute, 4)
			},
			within: time.Minute,
			status: invoice.Paid,
		},
		"paid": {
			before: func(w *harness, inv invoice.Invoice) {
				w.pay(inv, due)
				w.settle(2*time.Minute, 4)
			},
			within: time.Hour + time.Minute,
			status: invoice.Paid,
			flags:  []invoice.Flag{invoice.Overpaid},
		},
		"expired": {
			before: func(w *harness, _ invoice.Invoice) {
				w.settle(25*time.Hour, 25)
				w.settle(2*time.Minute, 4)
			},
			within: time.Hour + time.Minute,
			status: invoice.Expired,
			late:   true,
		},
		"canceled": {
			before: func(w *harness, inv invoice.Invoice) {
				_, err := w.svc.Cancel(context.Background(), w.owner, inv.ID)
				w.must(err)
			},
			within: time.Hour + time.Minute,
			status: invoice.Canceled,
			late:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
			w.follow()

			inv := w.sell()
			row.before(w, inv)
			w.restart() // another process takes over
			w.chains[0].PayInternal(inv.Options[0].Address, chain.MustAmount(half))
			w.chains[0].Mine(1)
			w.follow()
			w.settle(row.within, 2)

			all := w.paymentsOf(inv.ID)
			if n := len(all); n == 0 || all[n-1].TxHash != "" || all[n-1].Status != invoice.Detected ||
				all[n-1].DetectedBy != invoice.ByBalance || all[n-1].Amount.String() != half {
				t.Fatalf("the payments are %+v", all)
			}

			w.settle(2*time.Minute, 4)

			all = w.paymentsOf(inv.ID)
			if last := all[len(all)-1]; last.Status != invoice.Confirmed || last.Late != row.late {
				t.Errorf("the payment is %+v", last)
			}

			got := w.get(inv.ID)
			if got.Status != row.status ||
				len(row.flags) > 0 && fmt.Sprint(got.Flags) != fmt.Sprint(row.flags) {
				t.Errorf("the invoice is %s %v, want %s %v", got.Status, got.Flags, row.status, row.flags)
			}
		})
	}
}

// sellToken makes an invoice of 100 EUR that is to be paid in USDX.
func (w *harness) sellToken() invoice.Invoice {
	w.t.Helper()

	return w.create(invoice.CreateParams{
		Price:   &invoice.Price{Currency: "EUR", Amount: "90"},
		Options: []invoice.OptionParams{{Asset: "USDX", Network: "simnet"}},
	})
}

// A token transfer whose log and bloom the preferred node drops is found by its balance, and takes its
// transaction once a node shows it.
func TestDroppedLogsAreFoundByBalance(t *testing.T) {
	for name, nodes := range map[string]int{"alone": 1, "with an honest second node": 2} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{}, sim.Config{
				NoFinality: true,
				Nodes:      nodes,
				Unverified: true,
			})
			w.follow()

			inv := w.sellToken()
			hash := w.pay(inv, "100000000")
			w.chains[0].SetNode(0, sim.NodeFaults{DropsLogs: []string{hash}, DropsBloom: true})
			w.chains[0].Mine(1)
			w.follow()
			w.settle(time.Minute, 2)

			p := w.onlyPayment(inv.ID)
			if p.TxHash != "" || p.Amount.String() != "100000000" || p.Status != invoice.Detected {
				t.Fatalf("the payment is %+v", p)
			}

			w.chains[0].SetNode(0, sim.NodeFaults{})

			_, err := w.svc.Hint(context.Background(), inv.ID, hash)
			w.must(err)

			named := w.onlyPayment(inv.ID)
			if named.ID != p.ID || named.TxHash != hash || named.Amount != p.Amount ||
				w.countEvents(event.PaymentTransactionAttached) != 1 {
				t.Errorf("attached: %+v", named)
			}

			w.settle(time.Minute, 3)
			w.want(w.get(inv.ID), invoice.Paid)

			if n := len(w.paymentsOf(inv.ID)); n != 1 {
				t.Errorf("%d payments", n)
			}
		})
	}
}

// An excess that is gone when the balance is read again never confirms; one that shrank confirms as what is
// left of it, and what came later waits as a payment of its own.
func TestExcessIsReadAgain(t *testing.T) {
	for name, row := range map[string]struct {
		change func(c *sim.Chain, address chain.Address) string
		status invoice.PaymentStatus
		amount string
		others int // payments of what came later
	}{
		"gone": {
			change: func(c *sim.Chain, address chain.Address) string {
				return c.TransferFrom(address, c.NewAddress(), "USDX", chain.MustAmount("100000000"))
			},
			status: invoice.Dropped,
			amount: "100000000",
		},
		"less": {
			change: func(c *sim.Chain, address chain.Address) string {
				return c.TransferFrom(address, c.NewAddress(), "USDX", chain.MustAmount("40000000"))
			},
			status: invoice.Confirmed,
			amount: "60000000",
		},
		"more": {
			change: func(c *sim.Chain, address chain.Address) string {
				return c.Pay(address, "USDX", chain.MustAmount("5000000"))
			},
			status: invoice.Confirmed,
			amount: "100000000",
			others: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true, Unverified: true})
			w.follow()

			c, inv := w.chains[0], w.sellToken()
			address := inv.Options[0].Address
			first := w.pay(inv, "100000000")
			c.SetNode(0, sim.NodeFaults{DropsLogs: []string{first}, DropsBloom: true})
			c.Mine(1)
			w.follow()
			w.settle(time.Minute, 1)

			seen := w.onlyPayment(inv.ID)
			second := row.change(c, address)
			c.SetNode(0, sim.NodeFaults{DropsLogs: []string{first, second}, DropsBloom: true})
			w.settle(time.Minute, 1)

			if p := w.paymentsOf(inv.ID)[0]; p.ID != seen.ID || p.Block.Height > seen.Block.Height {
				t.Errorf("it counts from block %d, before from %d", p.Block.Height, seen.Block.Height)
			}

			w.settle(3*time.Minute, 5)

			all := w.paymentsOf(inv.ID)
			if len(all) != 1+row.others || all[len(all)-1].Status != row.status {
				t.Errorf("the payments are %+v", all)
			}

			p := all[0]
			if p.ID != seen.ID || p.Status != row.status || p.Amount.String() != row.amount {
				t.Errorf("the payment is %+v", p)
			}
		})
	}
}

// Addresses are compared at the pace of decisions 11, and one call reads about a thousand balances.
func TestBalanceWatchingIsPaced(t *testing.T) {
	const shown = 1000

	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
	w.follow()

	network := w.chains[0].Network()

	w.must(w.store.Update(context.Background(), func(ctx context.Context, tx store.Tx) error {
		for n := range shown {
			deposit := invoice.DepositAddress{
				ID:        w.ids.Next(),
				Owner:     w.owner,
				Network:   network.Slug,
				Address:   w.chains[0].NewAddress(),
				Status:    invoice.Active,
				CreatedAt: w.clock(),
			}
			if err := tx.PutDepositAddress(ctx, &deposit); err != nil {
				return err
			}

			if err := tx.PutAddress(ctx, invoice.Address{
				Space:            network.Space(),
				Address:          deposit.Address,
				Kind:             invoice.ForDeposit,
				Owner:            w.owner,
				DepositAddressID: deposit.ID,
				Network:          network.Slug,
				CreatedAt:        w.clock(),
				NextCheck:        w.clock().Add(time.Duration(n) * time.Second),
			}); err != nil {
				return err
			}
		}

		return nil
	}))

	// calls returns how many calls an hour costs.
	calls := func() int {
		before := w.chains[0].Calls(sim.MethodBalances)

		for range 60 {
			w.pass(time.Minute)
			w.compareBalances()
		}

		return w.chains[0].Calls(sim.MethodBalances) - before
	}

	for _, phase := range []struct {
		after time.Duration
		most  int
	}{{0, 120}, {8 * 24 * time.Hour, 60}, {100 * 24 * time.Hour, 10}} {
		w.pass(phase.after)
		calls()

		if got := calls(); got > phase.most {
			t.Errorf("after %s an hour costs %d calls, want at most %d", phase.after, got, phase.most)
		}

		due, err := w.store.DueAddresses(context.Background(), "simnet", false, w.clock(), shown)
		if err != nil || len(due) > 40 {
			t.Errorf("after %s %d addresses are overdue, %v", phase.after, len(due), err)
		}
	}
}

// An address that is used again is compared sooner: within the hour after a payment, and within a minute when
// its invoice is open again.
func TestUsedAddressesAreComparedSooner(t *testing.T) {
	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
	w.follow()

	ctx := context.Background()
	inv := w.sell()

	// row returns the address, after it was put off for a year when later is set.
	row := func(later bool) invoice.Address {
		rows, err := w.store.MatchAddresses(
			ctx, w.chains[0].Network().Space(), []chain.Address{inv.Options[0].Address},
		)
		w.must(err)

		if later {
			rows[0].NextCheck, rows[0].Urgent = w.clock().AddDate(1, 0, 0), false
			w.must(w.store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
				return tx.UpdateAddresses(ctx, rows[0])
			}))
		}

		return rows[0]
	}

	row(true)
	w.pay(inv, due)
	w.mine(1)
	w.follow()

	if got := row(false); got.NextCheck.After(w.clock().Add(time.Hour)) {
		t.Errorf("after a payment it is compared at %s, now is %s", got.NextCheck, w.clock())
	}

	w.confirm()
	w.want(w.get(inv.ID), invoice.Paid)
	row(true)
	w.chains[0].Fork(sim.Fork{Depth: 4, Fate: sim.DropOrphan})
	w.mine(2)
	w.follow()
	w.want(w.get(inv.ID), invoice.Open)

	if got := row(false); !got.Urgent || got.NextCheck.After(w.clock().Add(time.Minute)) {
		t.Errorf(
			"open again it is compared at %s (urgent %t), now is %s",
			got.NextCheck,
			got.Urgent,
			w.clock(),
		)
	}
}

// What one second may cost is bounded, and urgent addresses come first.
func TestBalanceWatchingHasABudget(t *testing.T) {
	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
	w.follow()

	network := w.chains[0].Network()

	w.must(w.store.Update(context.Background(), func(ctx context.Context, tx store.Tx) error {
		for n := range 3000 {
			if err := tx.PutAddress(ctx, invoice.Address{
				Space:     network.Space(),
				Address:   w.chains[0].NewAddress(),
				Network:   network.Slug,
				CreatedAt: w.clock(),
				NextCheck: w.clock().Add(-time.Duration(n) * time.Hour),
			}); err != nil {
				return err
			}
		}

		return nil
	}))

	inv := w.sell()
	ctx := context.Background()

	w.pass(30 * time.Second)

	for range 10 {
		_, err := w.ingester.CheckBalances(ctx, "simnet")
		w.must(err)
	}

	if got := w.chains[0].Calls(sim.MethodBalances); got != 2 {
		t.Errorf("%d calls in one second, want 2", got)
	}

	row, err := w.store.MatchAddresses(ctx, network.Space(), []chain.Address{inv.Options[0].Address})
	if err != nil || len(row) != 1 || row[0].CheckedAt.IsZero() {
		t.Errorf("the address of the open invoice was not compared first: %+v, %v", row, err)
	}
}

// Two transfers of one transaction are two payments, in the pool and in its block.
func TestOneTransactionMakesSeveralPayments(t *testing.T) {
	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
	w.follow()

	inv := w.sellToken()
	o := inv.Options[0]
	w.chains[0].PayMany(
		chain.Output{To: o.Address, AssetID: o.AssetID, Amount: chain.MustAmount("20000000")},
		chain.Output{To: o.Address, AssetID: o.AssetID, Amount: chain.MustAmount("30000000")},
	)
	w.follow()
	w.confirm()

	all := w.paymentsOf(inv.ID)
	if len(all) != 2 || all[0].Amount == all[1].Amount || all[0].TxIndex == all[1].TxIndex ||
		all[0].Status != invoice.Confirmed || all[1].Status != invoice.Confirmed {
		t.Errorf("the payments are %+v", all)
	}
}
