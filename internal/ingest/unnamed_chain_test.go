package ingest_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// wantNoMore checks that what is confirmed at an address does not exceed what arrived, and returns the payments.
func (w *harness) wantNoMore(inv invoice.Invoice) []invoice.Payment {
	w.t.Helper()

	var sum chain.Amount

	all := w.payments(inv.ID)
	for _, p := range all {
		if p.Status == invoice.Confirmed {
			sum = sum.Add(p.Amount)
		}
	}

	if held := w.chain.Balance(addressOf(inv), "SIM"); held.Less(sum) {
		w.t.Fatalf("%s is confirmed, and %s arrived", sum, held)
	}

	return all
}

// Decisions 11, "Balance rises": coin of a second contract pays an invoice while that of the first is not swept.
func TestSecondContractPaymentCountsBeforeTheFirstIsSwept(t *testing.T) {
	w := newHarness(t, sim.Config{})
	inv := w.sell("SIM", coin(3))

	w.chain.PayInternal(addressOf(inv), coin(1))
	w.mine(40)
	w.want(inv, invoice.Underpaid, coin(1), chain.Amount{})

	for range 40 {
		if len(w.wantNoMore(inv)) == 1 && w.chain.Balance(addressOf(inv), "SIM") == coin(1) {
			w.chain.PayInternal(addressOf(inv), coin(2))
		}

		w.mine(1)
	}

	w.want(inv, invoice.Paid, coin(3), chain.Amount{})

	all := w.wantNoMore(inv)
	if len(all) != 2 || all[0].Amount != coin(1) || all[1].Amount != coin(2) {
		t.Errorf("the payments are %+v", all)
	}
}

// A transfer that is found later names the first payment whose balance held it, and the sum stays.
func TestTransfersNameThePaymentsThatHoldThem(t *testing.T) {
	for name, secondFirst := range map[string]bool{"in order": false, "the second first": true} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			inv := w.sell("SIM", coin(4))

			first := w.chain.PayInternal(addressOf(inv), coin(1))
			w.mine(40)

			second := w.chain.PayInternal(addressOf(inv), coin(1))
			w.mine(40)

			before := w.wantNoMore(inv)
			if len(before) != 2 {
				t.Fatalf("the payments are %+v", before)
			}

			hashes := []string{first, second}
			if secondFirst {
				hashes = []string{second, first}
			}

			for _, hash := range hashes {
				w.hint(inv, hash)
				w.mine(1)
				w.want(inv, invoice.Underpaid, coin(2), chain.Amount{})
			}

			all := w.wantNoMore(inv)
			if len(all) != 2 || all[0].TxHash != first || all[1].TxHash != second {
				t.Errorf("the payments are %+v", all)
			}
		})
	}
}

// A fork takes every contract payment back that it is below; what arrives again is counted once.
func TestForkTakesContractPaymentsBack(t *testing.T) {
	for name, depth := range map[string]uint64{"the second": 30, "both": 60} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{NoFinality: true})
			inv := w.sell("SIM", coin(2))

			for range 2 {
				w.chain.PayInternal(addressOf(inv), coin(1))
				w.mine(25)
			}

			w.mine(10)
			w.want(inv, invoice.Paid, coin(2), chain.Amount{})
			w.fork(depth)

			for range 80 {
				w.mine(1)
				w.wantNoMore(inv)
			}

			w.want(inv, invoice.Paid, coin(2), chain.Amount{})
		})
	}
}
