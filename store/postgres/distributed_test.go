package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
	"github.com/seed-8ee7f392/payments/webhook"
)

var distributed = postgres.Options{Distributed: true}

// TestDistributedConformance is the whole suite on a cluster of three nodes.
func TestDistributedConformance(t *testing.T) {
	db := cluster(t)

	conformance.TestStore(t, func(t *testing.T) store.Store {
		empty(t, db)
		return openDistributed(t, db)
	})
}

// A transaction of several accounts, and so of several nodes, is committed whole or not at all, also when its
// statements are sent at once.
func TestDistributedTransactionIsWhole(t *testing.T) {
	st := openDistributed(t, cluster(t))

	creating := func(ids ...string) func(ctx context.Context, tx store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error {
			for _, id := range ids {
				inv := invoice.Invoice{ID: id, Owner: event.Owner{AccountID: "account of " + id}}
				if err := tx.PutInvoice(ctx, &inv); err != nil {
					return err
				}
			}

			return nil
		}
	}
	if err := st.Update(t.Context(), creating("taken")); err != nil {
		t.Fatal(err)
	}

	var ids []string
	for n := range 12 {
		ids = append(ids, fmt.Sprintf("new%d", n))
	}

	err := st.Update(t.Context(), creating(append(ids, "taken")...))
	if !errors.Is(err, fault.Duplicate) {
		t.Errorf("a transaction with a row that exists answered %v", err)
	}

	for _, id := range ids {
		if _, err := st.InvoiceByID(t.Context(), id); !errors.Is(err, fault.NotFound) {
			t.Errorf("invoice %s remains of a transaction that failed (%v)", id, err)
		}
	}

	if err := st.Update(t.Context(), creating(ids...)); err != nil {
		t.Errorf("the same without that row: %v", err)
	}
}

// Deliveries are claimed by account: a claimer waits neither for one that has claimed other rows of the same node, nor
// for one that has the same rows, and takes what is left.
func TestDistributedClaimsWaitForNobody(t *testing.T) {
	const accounts = 12

	st, now := openDistributed(t, cluster(t)), time.Unix(1e9, 0).UTC()

	if err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		for n := range accounts {
			id := fmt.Sprintf("dlv_%02d", n)

			if err := tx.PutDeliveries(ctx, &webhook.Delivery{
				ID:            id,
				Owner:         event.Owner{AccountID: "account of " + id},
				EventID:       id,
				EndpointID:    id,
				Status:        webhook.DeliveryPending,
				NextAttemptAt: now,
			}); err != nil {
				return err
			}
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	claim := func(ctx context.Context, tx store.Tx, owner string, limit int) int {
		claimed, err := tx.ClaimDeliveries(
			ctx,
			webhook.Claim{By: owner, Now: now, Until: now.Add(time.Minute), Limit: limit},
		)
		if err != nil {
			t.Errorf("%s: %v", owner, err)
		}

		return len(claimed)
	}

	if err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if n := claim(ctx, tx, "the first", accounts/2); n != accounts/2 {
			t.Errorf("the first claimed %d", n)
		}

		limited, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()

		return st.Update(limited, func(_ context.Context, tx store.Tx) error {
			if n := claim(limited, tx, "the second", accounts); n != accounts/2 {
				t.Errorf("beside it, the second claimed %d", n)
			}

			return nil
		})
	}); err != nil {
		t.Error(err)
	}
}

// A transaction of the coordinator's own tables and one account, which lies on one node, is committed in two phases:
// Citus keeps a record of each such commit until its recovery runs.
func TestDistributedTransactionHasTwoPhases(t *testing.T) {
	db := cluster(t)
	st := openDistributed(t, db)

	if _, err := db.ExecContext(t.Context(), "ALTER SYSTEM SET citus.recover_2pc_interval = -1"); err != nil {
		t.Fatal(err)
	}

	if _, err := db.ExecContext(t.Context(), "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}

	prepared := func() (n int) {
		t.Helper()

		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_dist_transaction").
			Scan(&n); err != nil {
			t.Fatal(err)
		}

		return n
	}

	// Accounts lie on any of the nodes, and one on the coordinator needs no second phase.
	const transactions = 12

	before := prepared()

	for n := range transactions {
		id := fmt.Sprintf("two%d", n)

		if err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			inv := invoice.Invoice{ID: id, Owner: event.Owner{AccountID: "account of " + id}}
			if err := tx.PutInvoice(ctx, &inv); err != nil {
				return err
			}

			return tx.PutAddress(
				ctx,
				invoice.Address{
					Space:     chain.Space{Family: chain.EVM},
					Address:   chain.Address(id),
					InvoiceID: id,
				},
			)
		}); err != nil {
			t.Fatal(err)
		}
	}

	if after := prepared(); after-before < transactions/3 {
		t.Errorf("%d of %d transactions were prepared on another node", after-before, transactions)
	}
}

// The tables lie where docs/distributed.md says: spread by account, or on the coordinator.
func TestDistributedTables(t *testing.T) {
	db := cluster(t)

	page, err := os.ReadFile("../../docs/distributed.md")
	if err != nil {
		t.Fatal(err)
	}

	rows, err := db.QueryContext(t.Context(), `SELECT tablename, EXISTS (SELECT 1 FROM citus_tables
		WHERE table_name::text = tablename AND citus_table_type = 'distributed' AND distribution_column = 'account_id')
		FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'payments\_%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	tables := 0

	for rows.Next() {
		var (
			name   string
			spread bool
		)
		if err := rows.Scan(&name, &spread); err != nil {
			t.Fatal(err)
		}

		tables++
		name = strings.TrimPrefix(name, "payments_")

		_, local, _ := strings.Cut(string(page), "## On the coordinator")
		if strings.Contains(local, "| `"+name+"` |") == spread {
			t.Errorf("docs/distributed.md has another place for %s, which is spread: %t", name, spread)
		}
	}

	if err := rows.Err(); err != nil || tables < 20 {
		t.Errorf("%d tables: %v", tables, err)
	}
}

// A connection keeps no plans of what asks all nodes: they would take a gigabyte in minutes (docs/distributed.md).
func TestDistributedConnectionsKeepNoPlans(t *testing.T) {
	db := cluster(t)
	db.SetMaxOpenConns(1)

	st := openDistributed(t, db)

	for range 10 { // a statement's plan is kept from the sixth time on
		_, invoices := st.DueInvoices(t.Context(), time.Now(), 10)
		_, payments := st.DuePayments(t.Context(), time.Now(), 10)
		_, settlements := st.DueSettlements(t.Context(), "network", time.Now(), 10)
		_, sweeps := st.DueSweeps(t.Context(), "network", time.Now(), 10)
		_, transactions := st.DueTransactions(t.Context(), "network", time.Now(), 10)

		if err := errors.Join(invoices, payments, settlements, sweeps, transactions); err != nil {
			t.Fatal(err)
		}
	}

	var kept int

	err := db.QueryRowContext(
		t.Context(),
		"SELECT coalesce(sum(total_bytes), 0) FROM pg_backend_memory_contexts WHERE name = 'CachedPlan'",
	).Scan(&kept)
	if err != nil || kept > 100_000 {
		t.Errorf("a connection keeps plans of %d bytes, %v", kept, err)
	}
}

// cluster opens a new database of three nodes, with the tables.
func cluster(t *testing.T) *sql.DB {
	t.Helper()
	testenv.OnlyStores(t)

	db := pool(t, testenv.Citus(t, 3).DSN, 16, nil)
	if err := postgres.Migrate(t.Context(), db, distributed); err != nil {
		t.Fatal(err)
	}

	return db
}

func openDistributed(t *testing.T, db *sql.DB) *postgres.Store {
	t.Helper()

	st, err := postgres.New(db, distributed)
	if err != nil {
		t.Fatal(err)
	}

	return st
}
