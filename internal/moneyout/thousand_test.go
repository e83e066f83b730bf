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
	"github.com/seed-8ee7f392/payments/chain/send"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/payout"
)

// Pitfalls 14 and 17. Four processes over one store pay a thousand times from one wallet: every payout once, and the
// wallet's nonces without a gap. Audits made meanwhile find nothing wrong.
func TestThousandPayoutsByFourProcesses(t *testing.T) {
	const payouts, processes = 1000, 4
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *world) {
		w.fund(10_000, 0)
		engines := []*payments.Engine{w.engine}
		for i := 1; i < processes; i++ {
			w.change = func(c *payments.Config) { c.Process = fmt.Sprintf("process %d", i) }
			engines = append(engines, w.boot())
		}
		began := time.Now()
		params := make([]payout.Params, payouts)
		for i := range params {
			params[i] = w.params("SIM", milli(1).Add(chain.Units(uint64(i))))
		}
		created := make([]payout.Payout, payouts)
		var wg sync.WaitGroup
		for p, e := range engines {
			wg.Go(func() {
				for i := p; i < payouts; i += processes {
					var err error
					if created[i], err = e.Payouts.Create(t.Context(), params[i]); err != nil {
						t.Errorf("payout %d: %v", i, err)
						return
					}
				}
			})
		}
		audits := 0
		w.live("all payouts are confirmed", func() bool {
			if w.chain.Now().Sub(began) > time.Duration(audits)*30*time.Second {
				audits++
				a, err := engines[audits%processes].Audit(t.Context())
				w.must(err)
				if all := a.Differences(); len(all) > 0 {
					t.Fatalf("an audit during the work found %+v", all)
				}
			}
			f := payout.Filter{Owner: w.owner, Statuses: []payout.Status{payout.Pending, payout.Processing, payout.Included, payout.Failed}, Limit: 1}
			open, _, err := w.engine.Payouts.List(t.Context(), f)
			w.must(err)
			all, more, err := w.engine.Payouts.List(t.Context(), payout.Filter{Owner: w.owner, Limit: payouts})
			w.must(err)
			return len(open) == 0 && len(all) == payouts && !more
		}, engines...)
		wg.Wait()
		took := time.Since(began)

		times := map[chain.Address]int{}
		for _, m := range w.transfers() {
			if m.From == w.master() {
				times[m.To]++
			}
		}
		var nonces []uint64
		for _, c := range created {
			p := w.get(c.ID)
			if p.Status != payout.Confirmed || times[p.Destination] != 1 {
				t.Errorf("payout %s is %s and was paid %d times", p.ID, p.Status, times[p.Destination])
			}
			w.arrived(p)
			txs, err := w.engine.Store().TransactionsOf(t.Context(), p.ID)
			w.must(err)
			if len(txs) != 1 || txs[0].State != send.Confirmed {
				t.Fatalf("payout %s has the transactions %+v", p.ID, txs)
			}
			nonces = append(nonces, txs[0].Nonce)
		}
		slices.Sort(nonces)
		for i, n := range nonces {
			if n != uint64(i) {
				t.Fatalf("the nonces have a gap or a double at %d: %d", i, n)
			}
		}
		used, err := w.chain.Nonce(t.Context(), w.master())
		w.must(err)
		if used != payouts || len(times) != payouts {
			t.Errorf("the wallet made %d transactions to %d destinations", used, len(times))
		}
		w.clean(10_000, 0)
		t.Logf("%d payouts by %d processes: %d transfers, nonces 0 to %d without a gap, in %s of the network's time; %d audits meanwhile, all without a difference",
			payouts, processes, len(times), nonces[len(nonces)-1], took.Round(time.Second), audits)
	})
}
