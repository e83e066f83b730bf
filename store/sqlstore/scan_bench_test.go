package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/bench"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// scanned owns the rows that are read.
var scanned = event.Owner{AccountID: "acct_1", Livemode: true}

// BenchmarkScan reads the same rows by column lists written by hand and as the store does, in turns, and reports the
// ratio of the medians. Results: docs/performance.md.
func BenchmarkScan(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) {
		st, db := openSQLite(b)
		compareScans(b, st, db, "sqlite", false)
	})
	b.Run("PostgreSQL", func(b *testing.B) {
		config, err := pgx.ParseConfig(testenv.Postgres(b))
		if err != nil {
			b.Fatal(err)
		}

		db := stdlib.OpenDB(*config)
		defer db.Close()

		if err := postgres.Migrate(b.Context(), db, postgres.Options{}); err != nil {
			b.Fatal(err)
		}

		st, err := postgres.New(db, postgres.Options{})
		if err != nil {
			b.Fatal(err)
		}

		compareScans(b, st, db, "pgx", true)
	})
}

func compareScans(b *testing.B, st store.Store, db *sql.DB, driver string, numbered bool) {
	b.Helper()
	fill(b, st)
	db.SetMaxOpenConns(1)

	for _, scan := range sqlstore.Scans(
		db, driver, numbered, scanned.AccountID, "pay_007",
	) {
		b.Run(scan.Name, func(b *testing.B) {
			var byHand, stored []float64

			for b.Loop() {
				byHand = append(byHand, duration(b, scan.ByHand))
				stored = append(stored, duration(b, scan.Store))
			}

			b.ReportMetric(bench.Median(byHand), "µs-by-hand")
			b.ReportMetric(bench.Median(stored)/bench.Median(byHand), "store÷by-hand")
		})
	}
}

// duration returns how many microseconds a reading duration.
func duration(b *testing.B, read func(context.Context) (int, error)) float64 {
	b.Helper()

	begun := time.Now()
	rows, err := read(b.Context())
	spent := time.Since(begun)

	if err != nil || rows == 0 {
		b.Fatalf("%d rows, %v", rows, err)
	}

	return float64(spent.Nanoseconds()) / 1000
}

// fill makes 60 invoices with a payment each.
func fill(b testing.TB, st store.Store) {
	b.Helper()

	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	due := chain.Pow10(18)

	err := st.Update(b.Context(), func(ctx context.Context, tx store.Tx) error {
		for n := range 60 {
			key := chain.KeyRef{Family: "evm", Livemode: true, Role: chain.RoleDeposit, Index: uint32(n)}
			address := chain.Address(fmt.Sprintf("0x%040x", n))
			inv := invoice.Invoice{
				ID:            fmt.Sprintf("inv_%03d", n),
				Owner:         scanned,
				Number:        int64(n),
				Kind:          invoice.Fiat,
				Status:        invoice.Paid,
				Currency:      "USD",
				Price:         decimal.RequireFromString("25.00"),
				OrderID:       fmt.Sprint("order-", n),
				CustomerEmail: "somebody@example.com",
				Metadata:      map[string]string{"cart": "17"},
				ExpiresAt:     at.Add(time.Hour),
				CreatedAt:     at,
				PaidAt:        at,
				Options: []invoice.Option{{
					ID:             "opt_1",
					Network:        "ethereum",
					Asset:          "ETH",
					AssetID:        "eth",
					Decimals:       18,
					AmountDue:      due,
					AmountPaid:     due,
					Rate:           decimal.RequireFromString("2500"),
					QuoteExpiresAt: at,
					Address:        address,
					Key:            key,
					SelectedAt:     at,
				}},
			}

			if err := tx.PutInvoice(ctx, &inv); err != nil {
				return err
			}

			payment := invoice.Payment{
				ID:          fmt.Sprintf("pay_%03d", n),
				Owner:       scanned,
				Status:      invoice.Confirmed,
				InvoiceID:   inv.ID,
				OptionID:    "opt_1",
				Network:     "ethereum",
				Asset:       "ETH",
				AssetID:     "eth",
				Decimals:    18,
				Address:     address,
				Key:         key,
				FromAddress: address,
				TxHash:      fmt.Sprintf("0x%064x", n),
				Amount:      due,
				Block:       chain.Ref{Height: 17, Hash: fmt.Sprintf("0x%064x", n), Time: at},
				Required:    12,
				Rate:        decimal.RequireFromString("2500"),
				Credit:      decimal.RequireFromString("25.00"),
				DetectedBy:  "block",
				DetectedAt:  at,
				ConfirmedAt: at,
			}

			if err := tx.PutPayments(ctx, &payment); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
