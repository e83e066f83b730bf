package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sqltest"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
	"github.com/seed-8ee7f392/payments/webhook"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// database opens a new, empty database with a pool of so many connections; change may change their settings.
func database(t testing.TB, connections int, change func(*pgx.ConnConfig)) *sql.DB {
	t.Helper()

	return pool(t, testenv.Postgres(t), connections, change)
}

// pool opens the database at a DSN with a pool of so many connections; change may change their settings.
func pool(t testing.TB, dsn string, connections int, change func(*pgx.ConnConfig)) *sql.DB {
	t.Helper()

	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}

	if change != nil {
		change(config)
	}

	db := sqlOpen(t, config)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)

	return db
}

func sqlOpen(t testing.TB, config *pgx.ConnConfig) *sql.DB {
	db := stdlib.OpenDB(*config)

	t.Cleanup(func() { _ = db.Close() })

	return db
}

// open brings the tables of a schema up to date and returns a store over them.
func open(t testing.TB, db *sql.DB, schema string) *postgres.Store {
	t.Helper()

	return openWith(t, db, postgres.Options{Schema: schema})
}

// openWith is open with a choice of options.
func openWith(t testing.TB, db *sql.DB, o postgres.Options) *postgres.Store {
	t.Helper()

	if err := postgres.Migrate(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}

	st, err := postgres.New(db, o)
	if err != nil {
		t.Fatal(err)
	}

	return st
}

// empty removes all rows of the library's tables but the version's. It does not truncate, which
// makes hundreds of files anew.
func empty(t *testing.T, db *sql.DB) {
	t.Helper()

	_, err := db.ExecContext(t.Context(), `DO $$ DECLARE name regclass; BEGIN
		FOR name IN SELECT (schemaname || '.' || tablename)::regclass FROM pg_tables
			WHERE schemaname = 'public' AND tablename <> 'payments_schema_version' LOOP
			EXECUTE 'DELETE FROM ' || name;
		END LOOP;
	END $$`)
	if err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) { testConformance(t, database(t, 16, nil)) }

// TestConformanceInSimpleProtocol is for hosts that talk to the database through a pooler: pgx
// sends the batches its own way.
func TestConformanceInSimpleProtocol(t *testing.T) {
	testConformance(
		t,
		database(t, 16, func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol }),
	)
}

func testConformance(t *testing.T, db *sql.DB) { testConformanceOf(t, db, db) }

// testConformanceOf runs the suite on one pool, and what it needs besides on a direct one.
func testConformanceOf(t *testing.T, direct, db *sql.DB) {
	open(t, direct, "")
	conformance.TestStore(t, func(t *testing.T) store.Store {
		empty(t, direct)

		st, err := postgres.New(db, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}

		return st
	})
}

// TestOneConnection lets many goroutines share a pool of one connection, which works as long as
// closures use their transaction.
func TestOneConnection(t *testing.T) {
	db := database(t, 2, nil)
	open(t, db, "mine") // a migration holds its lock on a connection of its own
	db.SetMaxOpenConns(1)

	st, err := postgres.New(db, postgres.Options{Schema: "mine"})
	if err != nil {
		t.Fatal(err)
	}

	var done sync.WaitGroup
	for n := range 20 {
		done.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()

			err := st.Update(ctx, func(ctx context.Context, tx store.Tx) error {
				if _, err := tx.ReserveNumbers(ctx, "c", 1, 1); err != nil {
					return err
				}

				_, err := tx.Invoices(ctx, invoice.Filter{Limit: 1})

				return err
			})
			if err != nil {
				t.Errorf("%d: %v", n, err)
			}
		})
	}

	done.Wait()
}

func put(id string) func(ctx context.Context, tx store.Tx) error {
	return func(ctx context.Context, tx store.Tx) error { return tx.PutInvoice(ctx, &invoice.Invoice{ID: id}) }
}

// TestMigrate brings one database up to date from many processes at once, in two schemas.
func TestMigrate(t *testing.T) {
	db := database(t, 8, nil)
	for _, schema := range []string{"", "shop_1"} {
		st, err := postgres.New(db, postgres.Options{Schema: schema})
		if err != nil {
			t.Fatal(err)
		}

		expect := func(code string, versions ...string) {
			t.Helper()

			_, readErr := st.InvoiceByID(t.Context(), "a")
			for _, err := range []error{readErr, st.Update(t.Context(), put("a"))} {
				if !errors.Is(err, fault.Unavailable) || fault.Code(err) != code {
					t.Fatalf("schema %q: %v, want %s", schema, err, code)
				}

				for _, v := range versions {
					if !strings.Contains(err.Error(), v) {
						t.Errorf("%v does not name version %s", err, v)
					}
				}
			}
		}
		expect("schema_missing", "4")

		var done sync.WaitGroup
		for range 3 {
			done.Go(func() {
				if err := postgres.Migrate(t.Context(), db, postgres.Options{Schema: schema}); err != nil {
					t.Error(err)
				}
			})
		}

		done.Wait()

		if err := st.Update(t.Context(), put("a")); err != nil {
			t.Fatal(err)
		}

		table := "payments_schema_version"
		if schema != "" {
			table = schema + "." + table
		}

		if _, err := db.Exec(
			"INSERT INTO " + table + " (version_id, is_applied) VALUES (99, true)",
		); err != nil {
			t.Fatal(err)
		}

		if st, err = postgres.New(db, postgres.Options{Schema: schema}); err != nil {
			t.Fatal(err)
		}

		expect("schema_new", "99", "4")

		if err := postgres.Migrate(
			t.Context(), db, postgres.Options{Schema: schema},
		); fault.Code(
			err,
		) != "schema_new" {
			t.Errorf("Migrate of a newer schema answered %v", err)
		}
	}

	for _, bad := range []string{"x; DROP TABLE y", "Upper", "1x", "a.b", strings.Repeat("x", 49)} {
		if _, err := postgres.New(db, postgres.Options{Schema: bad}); !errors.Is(err, fault.Invalid) {
			t.Errorf("schema %q answered %v", bad, err)
		}

		if _, err := fs.ReadFile(
			postgres.Migrations(bad), "00001_tables.sql",
		); !errors.Is(
			err, fault.Invalid,
		) {
			t.Errorf("the migrations of schema %q answered %v", bad, err)
		}
	}
}

// TestClaimWaits has a rival wait for a claim: no longer than its limit, which does not apply to later
// locks.
func TestClaimWaits(t *testing.T) {
	db := database(t, 4, nil)
	st := open(t, db, "")
	record := idempotency.Record{Key: idempotency.Key{Key: "k"}}
	other := idempotency.Record{Key: idempotency.Key{Key: "other"}}

	err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := tx.ClaimIdempotencyKey(ctx, record, time.Time{}, time.Second); err != nil {
			return err
		}

		sqlTx, err := postgres.SQLTx(tx) // sends the claim
		if err != nil {
			t.Fatal(err)
		}

		err = st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			return tx.ClaimIdempotencyKey(ctx, record, time.Time{}, 20*time.Millisecond)
		})
		if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "claim_busy" {
			t.Errorf("a rival was answered %v", err)
		}

		// A row that the host finds locked is no claim of a key.
		err = st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			if err := tx.ClaimIdempotencyKey(ctx, other, time.Time{}, time.Second); err != nil {
				return err
			}

			hosts, err := postgres.SQLTx(tx)
			if err != nil {
				return err
			}

			_, err = hosts.ExecContext(ctx, "LOCK payments_idempotency_keys IN EXCLUSIVE MODE NOWAIT")

			return err
		})
		if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "row_locked" {
			t.Errorf("a hook that found a lock was answered %v", err)
		}

		var timeout string
		if err := sqlTx.QueryRowContext(ctx, "SELECT current_setting('lock_timeout')").
			Scan(&timeout); err != nil ||
			timeout != "0" {
			t.Errorf("after a claim the transaction's lock_timeout is %q (%v)", timeout, err)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStandstillHoldsNoLocks stands still in a transaction that holds a lock, as a stopped process does: the
// database ends it after 10 s, or after the host's own limit, and who waits for the lock goes on.
func TestStandstillHoldsNoLocks(t *testing.T) {
	const setting = "idle_in_transaction_session_timeout"

	for limit, want := range map[string]string{"": "10s", "200ms": "200ms"} {
		t.Run(want, func(t *testing.T) {
			st := open(t, database(t, 4, func(c *pgx.ConnConfig) {
				if limit != "" {
					c.RuntimeParams[setting] = limit
				}
			}), "")
			put := func(ctx context.Context, tx store.Tx) error {
				return tx.PutBalance(ctx, &wallet.Balance{Network: "n", Address: "a", AssetID: "ETH"})
			}
			lock := func(ctx context.Context, tx store.Tx) error {
				_, _, err := tx.BalanceForUpdate(ctx, "n", "a", "ETH")
				return err
			}

			if err := st.Update(t.Context(), put); err != nil {
				t.Fatal(err)
			}

			err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
				if err := lock(ctx, tx); err != nil {
					return err
				}

				sqlTx, _ := postgres.SQLTx(tx)

				var have string
				if err := sqlTx.QueryRowContext(ctx, "SELECT current_setting($1)", setting).
					Scan(&have); err != nil || have != want {
					t.Errorf("the limit is %q (%v), not %q", have, err, want)
				}

				if limit == "" {
					return nil // the rest would take 10 s
				}

				return st.Update(t.Context(), lock)
			})
			if limit == "" && err != nil || limit != "" && !errors.Is(err, fault.Unavailable) {
				t.Errorf("the transaction that stood still ended with %v", err)
			}
		})
	}
}

// TestClaimPassesOverLocked claims deliveries while another transaction holds some that are due
// before the others.
func TestClaimPassesOverLocked(t *testing.T) {
	db := database(t, 4, nil)
	st := open(t, db, "")
	at := time.Unix(1e9, 0)
	claim := func(claimed *[]webhook.Delivery) func(ctx context.Context, tx store.Tx) error {
		return func(ctx context.Context, tx store.Tx) (err error) {
			*claimed, err = tx.ClaimDeliveries(
				ctx,
				webhook.Claim{
					By:          "p",
					Now:         at.Add(time.Hour),
					Until:       at.Add(2 * time.Hour),
					Limit:       2,
					PerEndpoint: 10,
				},
			)

			return err
		}
	}

	err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		for n := range 4 {
			d := webhook.Delivery{
				ID:            fmt.Sprint(n),
				EndpointID:    "e",
				Status:        webhook.DeliveryPending,
				NextAttemptAt: at.Add(time.Duration(n) * time.Second),
			}
			if err := tx.PutDeliveries(ctx, &d); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	err = st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		var mine, theirs []webhook.Delivery
		if err := claim(&mine)(ctx, tx); err != nil {
			return err
		}

		limited, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()

		if err := st.Update(limited, claim(&theirs)); err != nil {
			t.Errorf("a claim beside another one: %v", err)
		}

		if len(mine) != 2 || len(theirs) != 2 || theirs[0].ID != "2" || theirs[1].ID != "3" {
			t.Errorf("one claim took %v, the other %v", mine, theirs)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnavailable(t *testing.T) {
	db := database(t, 2, nil)

	st := open(t, db, "")
	if err := st.Update(t.Context(), put("a")); err != nil {
		t.Fatal(err)
	}

	cut := func(ctx context.Context, tx store.Tx) error {
		sqlTx, _ := postgres.SQLTx(tx)

		_, err := sqlTx.ExecContext(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
		if err == nil {
			t.Error("the connection was not cut")
		}

		return put("b")(ctx, tx)
	}
	if err := st.Update(
		t.Context(), cut,
	); !errors.Is(err, fault.Unavailable) ||
		fault.Code(err) != "database_down" {
		t.Errorf("a cut connection answered %v", err)
	}

	if err := st.Update(t.Context(), put("b")); err != nil {
		t.Errorf("the next try: %v", err)
	}

	if _, err := db.Exec(
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND " +
			"pid <> pg_backend_pid()",
	); err != nil {
		t.Fatal(err)
	}

	if _, err := st.InvoiceByID(t.Context(), "a"); err != nil && !errors.Is(err, fault.Unavailable) {
		t.Errorf("a read on a cut connection answered %v", err)
	}

	if _, err := st.InvoiceByID(t.Context(), "a"); err != nil {
		t.Errorf("the next read: %v", err)
	}

	// As a standby after a failover: the schema is there, writing is refused.
	var name string
	if err := db.QueryRow("SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}

	if _, err := db.Exec("ALTER DATABASE " + name + " SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}

	if _, err := db.Exec(
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND " +
			"pid <> pg_backend_pid()",
	); err != nil {
		t.Fatal(err)
	}

	db.SetMaxIdleConns(0)

	if err := st.Update(
		t.Context(), put("c"),
	); !errors.Is(err, fault.Unavailable) ||
		fault.Code(err) != "database_read_only" {
		t.Errorf("a read-only database answered %v", err)
	}

	nowhere, err := sql.Open("pgx", "postgres://nobody@127.0.0.1:1/nothing?connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	defer nowhere.Close()

	gone, err := postgres.New(nowhere, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}

	if err := gone.Update(
		t.Context(), put("a"),
	); !errors.Is(err, fault.Unavailable) ||
		fault.Code(err) != "database_down" {
		t.Errorf("a database that does not answer: %v", err)
	}
}

// TestJoin writes a host's row and an invoice in the host's own transaction, under each isolation level.
func TestJoin(t *testing.T) {
	db := database(t, 4, nil)

	st := open(t, db, "pay")
	if _, err := db.Exec("CREATE TABLE orders (id text)"); err != nil {
		t.Fatal(err)
	}

	for level, id := range map[sql.IsolationLevel]string{
		sql.LevelReadCommitted:  "rc",
		sql.LevelRepeatableRead: "rr",
		sql.LevelSerializable:   "s",
	} {
		for _, commit := range []bool{false, true} {
			sqlTx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
			if err != nil {
				t.Fatal(err)
			}

			if _, err := sqlTx.Exec("INSERT INTO orders VALUES ($1)", id); err != nil {
				t.Fatal(err)
			}

			tx, flush, err := postgres.Join(sqlTx, postgres.Options{Schema: "pay"})
			if err != nil {
				t.Fatal(err)
			}

			if err := errors.Join(put(id)(t.Context(), tx), flush(t.Context())); err != nil {
				t.Fatal(err)
			}

			end := sqlTx.Rollback
			if commit {
				end = sqlTx.Commit
			}

			if err := end(); err != nil {
				t.Fatal(err)
			}

			if _, err := st.InvoiceByID(t.Context(), id); (err == nil) != commit {
				t.Errorf("%v, committed %v: %v", level, commit, err)
			}
		}
	}
}

// TestPlans asks PostgreSQL how it runs every query when it may choose: with an index, and without
// a sort but where one is allowed.
func TestPlans(t *testing.T) {
	r := &recorder{}
	db := database(t, 2, func(c *pgx.ConnConfig) { c.Tracer = r })

	st := open(t, db, "")
	if err := st.Update(t.Context(), put("a")); err != nil {
		t.Fatal(err)
	}
	// a node, not the "Sort Key" that a merge names
	tables, sorts := regexp.MustCompile(`Seq Scan on payments_`), regexp.MustCompile(`Sort  \(`)

	for _, q := range sqltest.Queries() {
		r.reset()

		if err := q.Run(t.Context(), st); err != nil {
			t.Errorf("%s: %v", q.Name, err)
			continue
		}

		asked := 0

		for _, s := range r.statements() {
			if !strings.HasPrefix(s.Text, "SELECT") && !strings.HasPrefix(s.Text, "WITH") &&
				!strings.HasPrefix(s.Text, "DELETE") &&
				!strings.HasPrefix(s.Text, "UPDATE payments_deliveries") {
				continue
			}

			asked++

			plan := explainPlan(t, db, s)
			if tables.MatchString(plan) || !q.Sorts && sorts.MatchString(plan) {
				t.Errorf("%s: %s\n%s", q.Name, s.Text, plan)
			}
		}

		if asked == 0 {
			t.Errorf("%s asked nothing", q.Name)
		}
	}
}

// explainPlan returns how a statement is run on tables too small for the planner's own figures to
// matter: what it does when it shuns whole tables and sorts is what it can do.
func explainPlan(t *testing.T, db *sql.DB, s sqltest.Statement) string {
	t.Helper()

	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()

	if _, err := tx.Exec(
		"SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off; " +
			"SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off",
	); err != nil {
		t.Fatal(err)
	}

	rows, err := tx.Query("EXPLAIN "+s.Text, s.Args...)
	if err != nil {
		t.Fatalf("%s: %v", s.Text, err)
	}
	defer rows.Close()

	var plan []string

	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}

		plan = append(plan, line)
	}

	return strings.Join(plan, "\n")
}
