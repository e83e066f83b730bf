package ingest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// Where movements of coin log, coin of a contract is a transfer of its block: it is detected there, with its sender,
// and confirms at its depth though no balance can be read.
func TestCoinThatLogsIsCreditedAtItsBlock(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.chain.LogCoin()
	inv := w.sell("SIM", coin(1))
	hash := w.chain.PayInternal(addressOf(inv), coin(1))

	w.set(&w.failing, true)
	w.mine(1)
	w.want(inv, invoice.Pending, chain.Amount{}, coin(1))

	p := w.only(inv.ID)
	if p.TxHash != hash || p.TxIndex != 1 || p.FromAddress == "" || p.DetectedBy != invoice.ByPoll {
		t.Errorf("the payment is %+v", p)
	}

	w.mine(int(w.network.Confirmations) - 1)
	w.want(inv, invoice.Paid, coin(1), chain.Amount{})

	w.set(&w.failing, false)
	w.idle(2 * time.Minute)
	w.mine(2)

	if again := w.only(inv.ID); again.ID != p.ID || again.Amount != coin(1) {
		t.Errorf("the balances make %+v", again)
	}
}

// Row 78 of the pitfalls, where movements of coin log: a contract pays the rest in time while a release is on its way,
// and the invoice is paid before that has ended.
func TestCoinThatLogsPaysAnInvoiceDuringARelease(t *testing.T) {
	w, inv, release := newReleasing(t)
	w.chain.LogCoin()
	w.chain.PayInternal(addressOf(inv), coin(2))
	w.mine(int(w.network.Confirmations))

	w.wantReleasing(release)
	w.want(inv, invoice.Paid, coin(3), chain.Amount{})
}

// Row 77 of the pitfalls, where movements of coin log: what drips in meanwhile holds nothing back, not for a block.
func TestDripsOfCoinThatLogsHoldNothingBack(t *testing.T) {
	for name, dust := range map[string]chain.Amount{"no dust": {}, "dust": chain.Units(1000)} {
		t.Run(name, func(t *testing.T) {
			network := twoTokens()
			network.Assets[0].Dust = dust

			w := newHarness(t, sim.Config{NoFinality: true, Network: network})
			w.chain.LogCoin()
			inv := w.sell("SIM", coin(1))
			w.chain.PayInternal(addressOf(inv), coin(1))

			for range w.network.Confirmations {
				w.chain.PayInternal(addressOf(inv), chain.Units(1))
				w.mine(1)
			}

			if got := w.get(inv); got.Status != invoice.Paid {
				t.Errorf("the invoice is %s", got.Status)
			}

			w.idle(2 * time.Minute)
			w.mine(4)

			for _, p := range w.wantNoMore(inv) {
				if p.TxHash == "" {
					t.Errorf("%+v is known from the balance alone", p)
				}
			}
		})
	}
}

// A network whose movements of coin begin to log credits everything once: what was found by balance before, what logs
// after, plain transfers, transactions that are named by their payers, and all of it after forks.
func TestCoinIsCreditedOnceWhenMovementsBeginToLog(t *testing.T) {
	for _, depth := range []uint64{0, 3, 24, 44} {
		t.Run(fmt.Sprintf("a fork of %d blocks", depth), func(t *testing.T) {
			w := newHarness(t, sim.Config{NoFinality: true})
			d := w.deposit()
			pay := func() []string {
				return []string{
					w.chain.PayInternal(d.Address, coin(1)),
					w.chain.Pay(d.Address, "SIM", coin(2)),
				}
			}

			hashes := pay()

			w.mine(20)

			hashes = append(hashes, pay()...)

			w.chain.LogCoin()
			w.mine(2)

			hashes = append(hashes, pay()...)

			w.mine(20)

			if depth > 0 {
				w.fork(depth)
			}

			for range 3 {
				w.idle(40 * time.Second)
				w.mine(20)
			}

			for _, hash := range hashes {
				_, err := w.engine.Invoices.HintDeposit(t.Context(), w.owner, d.ID, hash)
				w.must(err)
				w.mine(1)
			}

			for range 3 {
				w.idle(40 * time.Second)
				w.mine(20)
			}

			w.wantSum(d.ID, w.chain.Balance(d.Address, "SIM"), 0)
		})
	}
}
