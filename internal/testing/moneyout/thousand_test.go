package moneyout_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
)

// Pitfalls 14 and 17. Four processes over one store pay a thousand times from one wallet: every
// payout once, and the wallet's nonces without a gap. Audits made meanwhile find nothing wrong.
func TestThousandPayoutsByFourProcesses(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		created, audits, took := w.payByFour(raced.Fewer(1000), 30*time.Second)
		w.eachOnce(created)
		w.clean(10_000, 0)
		t.Logf(
			"%d payouts by %d processes, each once, nonces without a gap, in %s of the network's time; %d "+
				"audits meanwhile, all without a difference",
			len(created),
			4,
			took.Round(time.Second),
			audits,
		)
	})
}

// payByFour has four processes over one store pay so many times from one wallet. Audits made
// meanwhile find nothing wrong.
func (w *harness) payByFour(
	n int,
	auditEvery time.Duration,
) (created []payout.Payout, audits int, took time.Duration) {
	w.t.Helper()
	w.fund(10_000, 0)

	engines := []*payments.Engine{w.engine}
	for i := 1; i < 4; i++ {
		w.change = func(c *payments.Config) { c.Process = fmt.Sprintf("process %d", i) }
		engines = append(engines, w.boot())
	}

	created = w.createMany(n, engines)
	began := time.Now()

	w.live("all payouts are confirmed", func() bool {
		if time.Since(began) > time.Duration(audits)*auditEvery {
			w.auditMeanwhile(engines[audits%len(engines)])
			audits++
		}

		return w.allPaid(len(created))
	}, engines...)

	return created, audits, time.Since(began)
}

// createMany has several processes accept payouts at the same time.
func (w *harness) createMany(n int, engines []*payments.Engine) []payout.Payout {
	w.t.Helper()

	params := make([]payout.Params, n)
	for i := range params {
		params[i] = w.params("SIM", milli(1).Add(chain.Units(uint64(i))))
	}

	created := make([]payout.Payout, n)

	var wg sync.WaitGroup
	for p, e := range engines {
		wg.Go(func() {
			for i := p; i < n; i += len(engines) {
				var err error
				if created[i], err = e.Payouts.Create(w.t.Context(), params[i]); err != nil {
					w.t.Errorf("payout %d: %v", i, err)
					return
				}
			}
		})
	}

	wg.Wait()

	if w.t.Failed() {
		w.t.FailNow()
	}

	return created
}

func (w *harness) auditMeanwhile(e *payments.Engine) {
	w.t.Helper()
	a, err := e.Audit(w.t.Context())
	w.must(err)

	for _, d := range a.Differences() {
		w.t.Errorf("an audit during the work found %s: %s", d.Kind, d.Message)
	}
}

func (w *harness) allPaid(n int) bool {
	w.t.Helper()
	confirmed, err := internal.Of(w.engine).Store().Payouts(
		w.t.Context(),
		payout.Filter{Owner: w.owner, Statuses: []payout.Status{payout.Confirmed}, Limit: n},
	)
	w.must(err)

	return len(confirmed) == n
}

// timesPaid is how often the wallet paid each destination.
func (w *harness) timesPaid() map[chain.Address]int {
	w.t.Helper()

	times := map[chain.Address]int{}

	for _, m := range w.transfers() {
		if m.From == w.master() {
			times[m.To]++
		}
	}

	return times
}

// eachOnce checks that payouts are the only transactions of the wallet: one transfer each, and no
// nonce left out.
func (w *harness) eachOnce(created []payout.Payout) {
	w.t.Helper()
	times := w.timesPaid()

	var nonces []uint64

	for _, c := range created {
		p := w.get(c.ID)
		if p.Status != payout.Confirmed || times[p.Destination] != 1 {
			w.t.Errorf("payout %s is %s and was paid %d times", p.ID, p.Status, times[p.Destination])
		}

		w.arrived(p)
		txs, err := internal.Of(w.engine).Store().TransactionsOf(w.t.Context(), p.ID)
		w.must(err)

		if len(txs) != 1 || txs[0].State != wallet.Confirmed {
			w.t.Fatalf("payout %s has the transactions %+v", p.ID, txs)
		}

		nonces = append(nonces, txs[0].Nonce)
	}

	slices.Sort(nonces)

	for i, n := range nonces {
		if n != uint64(i) {
			w.t.Fatalf("the nonces have a gap or a double at %d: %d", i, n)
		}
	}

	used, err := w.chain.Nonce(w.t.Context(), w.master())
	w.must(err)

	if used != uint64(len(created)) || len(times) != len(created) {
		w.t.Errorf("the wallet made %d transactions to %d destinations", used, len(times))
	}
}
