//go:build unix

package processes_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// Four processes over a cluster of three nodes, one of which is aborted and started again when half of the invoices
// are made: 100 of 200 accounts, or PAYMENTS_CITUS_INVOICES. In the end every invoice is paid, every payment is
// recorded once and released once, every event was delivered, and the audit agrees.
func TestDistributedNodeRestarts(t *testing.T) {
	testenv.OnlyStores(t)

	const processes, merchants, payers = 4, 200, 8

	invoices := 100

	if text := os.Getenv("PAYMENTS_CITUS_INVOICES"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}

		invoices = n
	}

	cluster := testenv.Citus(t, 3)
	node := testenv.Anvil(t, testenv.AnvilOptions{BlockTime: 500 * time.Millisecond})
	o := orders{
		DSN:         cluster.DSN,
		Distributed: true,
		RPC:         node.URL,
		ChainID:     node.ChainID,
		Began:       time.Now(),
		Speed:       1, // what waits half an hour for its signature is planned anew
	}
	migrate(t, o.DSN, postgres.Options{Distributed: true})

	all := []*scene{newScene(t, o)}
	for len(all) < merchants {
		all = append(all, all[0].sibling())
	}

	f := rear(t, o, processes)

	all[0].awaitFollower() // what was paid before the network is read has no transaction

	begun := time.Now()

	var (
		working sync.WaitGroup
		next    atomic.Int64
	)

	for payer := range payers {
		working.Go(func() {
			for n := int(next.Add(1)) - 1; n < invoices; n = int(next.Add(1)) - 1 {
				if n == invoices/2 {
					working.Go(func() { cluster.Restart(t, 1) })
				}

				key := fmt.Sprintf("order-%d", n)
				amount := chain.Pow10(16).Add(chain.Units(uint64(n)))

				s := all[n%merchants]

				id, to, err := s.order(f, n, key, amount)
				if err == nil {
					err = s.pay(id, to, amount, payer)
				}

				if err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
			}
		})
	}

	working.Wait()

	if t.Failed() {
		t.FailNow()
	}

	made := time.Since(begun)

	var (
		events, deliveries int
		retried            int64
	)

	settled(all...)

	took := time.Since(begun)

	for _, p := range f.all {
		if err := p.end(); err != nil {
			t.Errorf("a process did not end in order: %v", err)
		}
	}

	for _, s := range all {
		stored, delivered := s.verifyRecords()
		events, deliveries, retried = events+stored, deliveries+delivered, retried+s.retried.Load()
	}

	all[0].audit()

	t.Logf(
		"%d invoices of %d accounts by %d processes, made and paid in %s, settled after %s; one node restarted, "+
			"%d requests sent again; %d events delivered %d times; the audit agrees",
		invoices,
		merchants,
		processes,
		made.Round(time.Second),
		took.Round(time.Second),
		retried,
		events,
		deliveries,
	)
}
