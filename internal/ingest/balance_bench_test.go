package ingest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/ingest"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// ingestDB is the store in memory as an Ingester sees it.
type ingestDB struct{ store.Store }

func (d ingestDB) Update(ctx context.Context, f func(ctx context.Context, tx ingest.Tx) error) error {
	return d.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return f(ctx, eventless{tx}) })
}

type eventless struct{ store.Tx }

func (eventless) AppendEvents(context.Context, ...event.Event) error { return nil }

// BenchmarkCheckBalances measures one call of balance watching: swept addresses, and ones that hold money
// which nothing explains yet.
func BenchmarkCheckBalances(b *testing.B) {
	for _, holds := range []uint64{0, 1} {
		b.Run(fmt.Sprintf("holds=%d", holds), func(b *testing.B) {
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			clock := func() time.Time { return now }
			network := sim.New(sim.Config{Clock: clock, NoFinality: true})
			tip := network.Mine(1)
			db := memory.New()

			prices, err := rate.NewFixed(
				map[string]string{"ETH/USD": "1", "USDC/USD": "1"},
				time.Minute,
				clock,
			)
			if err != nil {
				b.Fatal(err)
			}

			registry, err := chain.NewRegistry(network)
			if err != nil {
				b.Fatal(err)
			}

			ids := id.New(clock, nil)
			ingester := ingest.New(ingest.Config{
				DB:       ingestDB{db},
				Registry: registry,
				Rates:    prices,
				IDs:      ids,
				Now:      clock,

				VerifyAddress: invoice.New(invoice.Config{}).VerifyAddress,
			})

			const shown = 500

			if err := db.Update(b.Context(), func(ctx context.Context, tx store.Tx) error {
				if err := tx.PutCursor(ctx, &scan.Cursor{Network: "simnet", At: tip, Tip: tip}); err != nil {
					return err
				}

				for range shown {
					d := invoice.DepositAddress{
						ID:      ids.Next(),
						Network: "simnet",
						Address: network.NewAddress(),
					}
					if holds > 0 {
						network.Fund(d.Address, "SIM", chain.Units(holds))
					}

					if err := tx.PutDepositAddress(ctx, &d); err != nil {
						return err
					}

					if err := tx.PutAddress(ctx, invoice.Address{
						Space:            network.Network().Space(),
						Address:          d.Address,
						Kind:             invoice.ForDeposit,
						DepositAddressID: d.ID,
						Network:          "simnet",
						CreatedAt:        now,
						NextCheck:        now,
					}); err != nil {
						return err
					}
				}

				return nil
			}); err != nil {
				b.Fatal(err)
			}

			before := network.Calls(sim.MethodBalances)

			for b.Loop() {
				now = now.Add(time.Hour)

				if _, err := ingester.CheckBalances(b.Context(), "simnet"); err != nil {
					b.Fatal(err)
				}
			}

			b.ReportMetric(float64(network.Calls(sim.MethodBalances)-before)/float64(b.N), "calls/op")
			b.ReportMetric(shown, "addresses/op")
		})
	}
}
