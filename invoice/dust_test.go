package invoice_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// newDustHarness starts with a network on which less than so many base units of SIM are dust.
func newDustHarness(t *testing.T, dust uint64) *harness {
	t.Helper()

	n := sim.DefaultNetwork()
	n.Assets[0].Dust = chain.Units(dust)

	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true, Network: n})
	w.follow()

	return w
}

// dustAt returns the stored sum at an address in base units of SIM, and the number of transfers.
func (w *harness) dustAt(address chain.Address) (sum string, count int64) {
	w.t.Helper()

	all, err := w.store.DustOf(context.Background(), "simnet", []chain.Address{address})
	w.must(err)

	if len(all) == 0 {
		return "0", 0
	}

	rows, err := w.store.DustTransfers(context.Background(), "simnet", address, all[0].AssetID, 0)
	w.must(err)

	if len(all) != 1 || int64(len(rows)) != all[0].Count {
		w.t.Errorf("%d sums, %d transfers: %+v", len(all), len(rows), all)
	}

	return all[0].Amount.String(), all[0].Count
}

// Transfers below Asset.Dust are published to nobody. They become payments by their hashes when their sum reaches
// it, and are counted once.
func TestDustAddsUpToPayments(t *testing.T) {
	w := newDustHarness(t, 1000)
	inv := w.sell()
	address := inv.Options[0].Address
	first, second := w.pay(inv, "400"), w.pay(inv, "500")
	w.follow() // in the pool
	w.settle(time.Minute, 3)

	// Coin from a contract that is too small as well: the balance does not count the stored dust again.
	w.chains[0].PayInternal(address, chain.Units(500))
	w.settle(2*time.Minute, 4)

	_, err := w.svc.Hint(context.Background(), inv.ID, first) // its block is read again
	w.must(err)

	if sum, count := w.dustAt(address); sum != "900" || count != 2 || len(w.paymentsOf(inv.ID)) != 0 ||
		w.published(inv.ID) != "invoice.created" && w.published(inv.ID) != "" {
		t.Fatalf(
			"%s in %d transfers, payments %+v, events %s",
			sum,
			count,
			w.paymentsOf(inv.ID),
			w.published(inv.ID),
		)
	}

	third := w.pay(inv, "100")
	w.settle(2*time.Minute, 4)

	found := map[string]string{}

	for _, p := range w.paymentsOf(inv.ID) {
		found[p.TxHash] = p.Amount.String()

		if p.Status != invoice.Confirmed {
			t.Errorf("payment %+v", p)
		}
	}

	if sum, count := w.dustAt(
		address,
	); sum != "0" || count != 0 || len(found) != 3 || found[first] != "400" ||
		found[second] != "500" ||
		found[third] != "100" {
		t.Errorf("%s in %d transfers are left, the payments are %v", sum, count, found)
	}
}

// Dust that completes an invoice is a payment, whichever comes first.
func TestDustCompletesAnInvoice(t *testing.T) {
	const almost = "49999999999999900"

	for name, order := range map[string][]string{
		"last":  {almost, "100"},
		"first": {"100", almost},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDustHarness(t, 1000)
			inv := w.sell()

			for _, amount := range order {
				w.pay(inv, amount)
				w.settle(2*time.Minute, 4)
			}

			w.settle(2*time.Minute, 4)
			w.want(w.get(inv.ID), invoice.Paid)

			if n := len(w.paymentsOf(inv.ID)); n != 2 {
				t.Errorf("%d payments", n)
			}
		})
	}
}

// A fork takes dust back with its block.
func TestDustThatAForkTakes(t *testing.T) {
	w := newDustHarness(t, 1000)
	inv := w.sell()
	w.pay(inv, "400")
	w.settle(time.Minute, 1)

	w.pay(inv, "300")
	w.settle(time.Minute, 1)

	for _, step := range []struct {
		fork sim.Fork
		sum  string
	}{
		{sim.Fork{Depth: 1, Fate: sim.ReturnToPool}, "700"},
		{sim.Fork{Depth: 2, Fate: sim.DropOrphan}, "400"},
	} {
		w.chains[0].Fork(step.fork)
		w.settle(time.Minute, 2)

		if sum, _ := w.dustAt(inv.Options[0].Address); sum != step.sum {
			t.Errorf("%s after a fork of %d, want %s", sum, step.fork.Depth, step.sum)
		}
	}
}

// A flood of dust makes no payments, asks the node for nothing, and delays nobody.
func TestDustFlood(t *testing.T) {
	const flood = 10_000

	w := newDustHarness(t, 1_000_000)
	victim, honest := w.sell(), w.sell()

	for range flood {
		w.chains[0].Pay(victim.Options[0].Address, "SIM", chain.Units(1))
	}

	w.pay(honest, due)

	calls := w.chains[0].Calls(sim.AnyMethod)
	began := time.Now()

	w.chains[0].Mine(1)
	w.follow()
	t.Logf("%d transfers in one block: %s", flood, time.Since(began))

	if more := w.chains[0].Calls(sim.AnyMethod) - calls; more > 10 {
		t.Errorf("the block cost %d calls", more)
	}

	if sum, count := w.dustAt(victim.Options[0].Address); sum != "10000" || count != flood {
		t.Errorf("%s in %d transfers", sum, count)
	}

	// It adds up: one transaction makes at most 100 payments of it.
	w.pay(victim, "999999")
	w.settle(2*time.Minute, 4)
	w.want(w.get(honest.ID), invoice.Paid)

	if n := len(w.paymentsOf(victim.ID)); n != 100 {
		t.Errorf("%d payments of dust, want 100", n)
	}
}
