package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// settled is the number of payments, each to an address of its own, that BenchmarkSettle waits for; merchants is the
// number of accounts that they are to.
const (
	settled   = 1000
	merchants = 20
)

// BenchmarkSettle measures how many payments are confirmed and how many settlements released in a second: each payment
// lies at an address of its own, and a block comes every 250 ms.
func BenchmarkSettle(b *testing.B) {
	db := openDB(b, testenv.PostgresWith(b, testenv.PostgresOptions{Fsync: true}))
	s := newShop(b, db)
	owners := make([]event.Owner, merchants)

	for i := range owners {
		a, err := s.engine.Accounts.CreateAccount(b.Context(), account.Settings{Name: fmt.Sprint("Shop ", i)})
		if err != nil {
			b.Fatal(err)
		}

		owners[i] = event.Owner{AccountID: a.ID}
	}

	for b.Loop() {
		addresses := make([]chain.Address, settled)

		for i := range addresses {
			d, err := s.engine.Invoices.CreateDeposit(
				b.Context(), invoice.DepositParams{Owner: owners[i%merchants], Network: s.network},
			)
			if err != nil {
				b.Fatal(err)
			}

			addresses[i] = d.Address
		}

		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error, 1)

		go func() { ended <- s.engine.Run(ctx) }()

		before := s.released(b)

		for _, to := range addresses {
			s.chain.Pay(to, "SIM", chain.Pow10(16))
		}

		began := time.Now()

		var confirmed time.Duration

		blocks := time.NewTicker(250 * time.Millisecond)

		for s.released(b) < before+settled {
			<-blocks.C
			s.chain.Mine(1)

			if time.Since(began) > 10*time.Minute {
				b.Fatalf("%d of %d released", s.released(b)-before, settled)
			}

			if confirmed == 0 && s.confirmed(b) >= before+settled {
				confirmed = time.Since(began)
			}
		}

		took := time.Since(began)

		blocks.Stop()
		stop()

		if err := <-ended; err != nil {
			b.Fatal(err)
		}

		fmt.Printf(
			"%d payments: confirmed after %s, released after %s: %.0f /s\n",
			settled, confirmed.Round(time.Millisecond), took.Round(time.Millisecond), settled/took.Seconds(),
		)
		b.ReportMetric(settled/took.Seconds(), "released/s")
	}
}

func (s *shop) released(b *testing.B) (n int) {
	b.Helper()

	if err := s.db.QueryRow(
		"SELECT count(*) FROM payments_settlements WHERE status = $1", string(settlement.Released),
	).Scan(&n); err != nil {
		b.Fatal(err)
	}

	return n
}

func (s *shop) confirmed(b *testing.B) (n int) {
	b.Helper()

	if err := s.db.QueryRow(
		"SELECT count(*) FROM payments_payments WHERE status = $1", string(invoice.Confirmed),
	).Scan(&n); err != nil {
		b.Fatal(err)
	}

	return n
}
