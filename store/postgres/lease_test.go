package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/heartbeat"
	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// onceDB counts the closures that are run again.
type onceDB struct {
	leases.DB
	again atomic.Int64
}

func (d *onceDB) Update(ctx context.Context, f func(ctx context.Context, tx lease.Tx) error) error {
	runs := int64(0)

	err := d.DB.Update(ctx, func(ctx context.Context, tx lease.Tx) error {
		runs++
		return f(ctx, tx)
	})
	d.again.Add(runs - 1)

	return err
}

// From ten processes on the names of heartbeats do not sort as their numbers. Two processes that beat lock them in one
// order all the same: PostgreSQL aborts neither. One that looks whether others still hold what it wants locks none, and
// waits for nobody.
func TestHeartbeatsOfTenProcessesAreLockedInOneOrder(t *testing.T) {
	const processes = 12

	db := database(t, 8, nil)
	shared := &onceDB{DB: heartbeat.Over(open(t, db, "").Update)}
	now := time.Unix(1e9, 0)

	var beats []*heartbeat.Heartbeat

	for n := range processes {
		beats = append(beats, heartbeat.New(heartbeat.Config{
			DB:      shared,
			Process: fmt.Sprint("p", n),
			Now:     func() time.Time { return now },
		}))

		if _, err := beats[n].Take(t.Context(), fmt.Sprintf("wallet/%02d", n)); err != nil {
			t.Fatal(err)
		}
	}

	// Another connection holds the third heartbeat, and the first process waits for it when it beats.
	blocker := lockRow(t, db, leases.HeartbeatName(3))
	now = now.Add(heartbeat.Pace)
	first, last := make(chan error, 1), make(chan error, 1)

	go func() { first <- beats[0].Beat(t.Context()) }()

	awaitWaiting(t, db, 1)

	// The last goes for what the first and the third hold, whose heartbeats are locked.
	owner := leases.Owner(leases.HeartbeatName(processes), "session", "turn")

	limited, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()

	if err := shared.Update(limited, func(ctx context.Context, tx lease.Tx) error {
		taken, err := leases.TakeAll(ctx, tx, []string{"wallet/02", "wallet/00"}, owner, now)
		if len(taken) > 0 {
			t.Errorf("%d leases of others were taken", len(taken))
		}

		return err
	}); err != nil {
		t.Errorf("looking for free leases: %v", err)
	}

	go func() { last <- beats[processes-1].Beat(t.Context()) }()

	awaitWaiting(t, db, 2)

	if err := blocker.Rollback(); err != nil {
		t.Fatal(err)
	}

	for _, ended := range []chan error{first, last} {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}

	if again := shared.again.Load(); again > 0 {
		t.Errorf("%d transactions were aborted", again)
	}
}

// A transaction that waits for a lease holds those before it by name, and none after it, whatever order it named them
// in.
func TestLeasesAreLockedInTheOrderOfTheirNames(t *testing.T) {
	db := database(t, 8, nil)
	st := open(t, db, "")

	lock := func(names ...string) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Leases(ctx, names)
			return err
		})
	}
	if err := lock("a", "b", "c"); err != nil {
		t.Fatal(err)
	}

	blocker, waited := lockRow(t, db, "b"), make(chan error, 1)

	go func() { waited <- lock("c", "b", "a") }()

	awaitWaiting(t, db, 1)

	const free = "SELECT count(*) FROM (SELECT name FROM payments_leases WHERE name = $1 FOR UPDATE SKIP LOCKED) l"

	for name, want := range map[string]int{"a": 0, "c": 1} {
		var n int
		if err := db.QueryRowContext(t.Context(), free, name).Scan(&n); err != nil || n != want {
			t.Errorf("%d rows of lease %s are free: %v", n, name, err)
		}
	}

	if err := blocker.Rollback(); err != nil {
		t.Fatal(err)
	}

	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// lockRow locks the row of a lease until its transaction ends.
func lockRow(t *testing.T, db *sql.DB, name string) *sql.Tx {
	t.Helper()

	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}

	var found string
	if err := tx.QueryRowContext(
		t.Context(), "SELECT name FROM payments_leases WHERE name = $1 FOR UPDATE", name,
	).Scan(&found); err != nil {
		t.Fatal(err)
	}

	return tx
}

// awaitWaiting returns when so many transactions wait for a lock.
func awaitWaiting(t *testing.T, db *sql.DB, transactions int) {
	t.Helper()

	const waiting = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"

	until := time.Now().Add(30 * time.Second)
	for n := 0; n != transactions; {
		if time.Now().After(until) {
			t.Fatalf("%d transactions wait, not %d", n, transactions)
		}

		if err := db.QueryRowContext(t.Context(), waiting).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
}
