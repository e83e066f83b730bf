//go:build unix

package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/bench"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/paymentstest"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// site is a service over a database, with merchants who make and read invoices.
type site struct {
	service   *paymentstest.Service
	merchants []event.Owner
	made      atomic.Int64
	mu        sync.Mutex
	invoices  []invoice.Invoice
}

// newSite opens the database at a DSN, with its tables and 200 accounts.
func newSite(b *testing.B, dsn string, options postgres.Options) *site {
	b.Helper()

	st := openWith(b, pool(b, dsn, 16, nil), options)
	s := &site{service: paymentstest.New(b, func(c *payments.Config) { c.Store = st })}

	for i := range 200 {
		a, err := s.service.Engine.Accounts.CreateAccount(
			b.Context(),
			account.Settings{Name: fmt.Sprintf("Shop %d", i)},
		)
		if err != nil {
			b.Fatal(err)
		}

		s.merchants = append(s.merchants, event.Owner{AccountID: a.ID})
	}

	for range 100 {
		if err := s.create(b); err != nil {
			b.Fatal(err)
		}
	}

	return s
}

// create has the next merchant make an invoice with an address of its own.
func (s *site) create(b *testing.B) error {
	inv, err := s.service.Engine.Invoices.Create(b.Context(), invoice.CreateParams{
		Owner: s.merchants[s.made.Add(1)%int64(len(s.merchants))],
		Price: &invoice.Price{Amount: "25.00", Currency: "USD"},
		Options: []invoice.OptionParams{{
			Asset:   "USDX",
			Network: s.service.Network.Network().Slug,
		}},
	})
	if err == nil {
		s.mu.Lock()
		s.invoices = append(s.invoices, inv)
		s.mu.Unlock()
	}

	return err
}

// read reads some invoice.
func (s *site) read(b *testing.B) error {
	s.mu.Lock()
	inv := s.invoices[int(s.made.Add(1))%len(s.invoices)]
	s.mu.Unlock()

	_, err := s.service.Engine.Invoices.Get(b.Context(), inv.Owner, inv.ID)

	return err
}

// What a cluster costs: invoices made and read per second on Citus with one to three nodes, and on plain PostgreSQL,
// in turns. All servers share one machine, so that this shows the overhead of the distribution, not what more machines
// would give; none waits for the disk.
func BenchmarkDistributed(b *testing.B) {
	testenv.OnlyStores(b)

	plain := newSite(b, testenv.Postgres(b), postgres.Options{})
	rate := func(f func(b *testing.B) error) float64 {
		return bench.PerSecond(b, 16, time.Second, func() error { return f(b) })
	}

	for nodes := 1; nodes <= 3; nodes++ {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			spread := newSite(b, testenv.Citus(b, nodes).DSN, distributed)

			var creates, createRatios, reads, readRatios []float64

			for b.Loop() {
				for range 5 {
					alone, together := rate(plain.create), rate(spread.create)
					creates, createRatios = append(creates, together), append(createRatios, together/alone)

					alone, together = rate(plain.read), rate(spread.read)
					reads, readRatios = append(reads, together), append(readRatios, together/alone)
				}
			}

			for unit, all := range map[string][]float64{
				"creates/s":     creates,
				"creates÷plain": createRatios,
				"reads/s":       reads,
				"reads÷plain":   readRatios,
			} {
				b.ReportMetric(bench.Median(all), unit)
			}

			b.ReportMetric(0, "ns/op") // the length of a turn is no result
		})
	}
}
