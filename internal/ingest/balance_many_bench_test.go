package ingest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/ingest"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// BenchmarkCheckBalancesAmong measures one call of balance watching, for 500 addresses that are due, among many
// that are not.
func BenchmarkCheckBalancesAmong(b *testing.B) {
	for _, many := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("addresses=%d", many), func(b *testing.B) {
			const due = 500

			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			clock := func() time.Time { return now }
			network := sim.New(sim.Config{Clock: clock, NoFinality: true})

			db, err := sqlite.Open(filepath.Join(b.TempDir(), "payments.db"))
			if err != nil {
				b.Fatal(err)
			}

			b.Cleanup(func() { _ = db.Close() })

			fillAddresses(b, db, network, many, now)

			ingester := watcherOver(b, db, network, clock)
			wait := time.Hour * due / time.Duration(many)
			before := network.Calls(sim.MethodBalances)

			for b.Loop() {
				now = now.Add(max(wait, time.Second))

				if _, err := ingester.CheckBalances(b.Context(), "simnet"); err != nil {
					b.Fatal(err)
				}
			}

			b.ReportMetric(float64(network.Calls(sim.MethodBalances)-before)/float64(b.N), "calls/op")
		})
	}
}

// fillAddresses stores deposit addresses that hold nothing and are due in the next hour, one after the other.
func fillAddresses(b *testing.B, db store.Store, network *sim.Chain, many int, now time.Time) {
	b.Helper()

	const each = 10_000

	tip := network.Mine(1)
	ids := id.New(func() time.Time { return now }, nil)

	for from := 0; from < many; from += each {
		if err := db.Update(b.Context(), func(ctx context.Context, tx store.Tx) error {
			if from == 0 {
				if err := tx.PutCursor(ctx, &scan.Cursor{Network: "simnet", At: tip, Tip: tip}); err != nil {
					return err
				}
			}

			for i := from; i < min(from+each, many); i++ {
				if err := tx.PutAddress(ctx, invoice.Address{
					Space:            network.Network().Space(),
					Address:          network.NewAddress(),
					Kind:             invoice.ForDeposit,
					DepositAddressID: ids.Next(),
					Network:          "simnet",
					CreatedAt:        now,
					NextCheck:        now.Add(time.Hour * time.Duration(i) / time.Duration(many)),
				}); err != nil {
					return err
				}
			}

			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// watcherOver returns an ingester over a store and a network.
func watcherOver(
	b *testing.B,
	db store.Store,
	network *sim.Chain,
	clock func() time.Time,
) *ingest.Ingester {
	b.Helper()

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "1", "USDC/USD": "1"}, time.Minute, clock)
	if err != nil {
		b.Fatal(err)
	}

	registry, err := chain.NewRegistry(network)
	if err != nil {
		b.Fatal(err)
	}

	return ingest.New(ingest.Config{
		DB:       ingestDB{db},
		Registry: registry,
		Rates:    prices,
		IDs:      id.New(clock, nil),
		Now:      clock,

		VerifyAddress: invoice.New(invoice.Config{}).VerifyAddress,
	})
}
