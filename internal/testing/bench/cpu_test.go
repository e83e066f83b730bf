//go:build linux

package bench_test

// This file measures what a creation costs: CPU of this process and of PostgreSQL's, and bytes of WAL. Unlike rates,
// these hardly change beside other work. The client over HTTP is a process of its own, so that its CPU is not counted.

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/testing/bench"
)

const (
	// perTurn is how many are made in a turn, and together how many at once.
	perTurn, together = 2_000, 8
	// cpuTurns is how often each is measured; figures are the medians.
	cpuTurns = 3
	// clientVariable makes this binary a client: what it asks for, fields separated by spaces.
	clientVariable = "PAYMENTS_BENCH_CLIENT"
)

// BenchmarkCPU prints microseconds of CPU and bytes of WAL of one creation, and of one insert by pgbench and by a bare
// handler.
func BenchmarkCPU(b *testing.B) {
	dsn, db := benchDatabase(b)
	s := newShop(b, db)
	server := serverOf(b, db)

	for _, side := range []struct {
		name string
		turn func(b *testing.B)
	}{
		{"pgbench", func(b *testing.B) { pgbenchRows(b, dsn) }},
		{"handler with one INSERT", func(b *testing.B) { s.fromOutside(b, "insert") }},
		{"Invoices.Create", func(b *testing.B) { s.fromInside(b, s.createInProcess) }},
		{"POST", func(b *testing.B) { s.fromOutside(b, "create") }},
		{"POST, key", func(b *testing.B) { s.fromOutside(b, "create with key") }},
	} {
		b.Run(side.name, func(b *testing.B) {
			side.turn(b) // prepares statements, and fills caches and pools

			var own, database, wal, commits []float64

			for b.Loop() {
				for range cpuTurns {
					ownBefore, serverBefore := ownCPU(b), server.cpu(b)
					walBefore, commitsBefore := written(b, db)

					side.turn(b)

					walAfter, commitsAfter := written(b, db)

					own = append(own, float64((ownCPU(b)-ownBefore).Microseconds())/perTurn)
					database = append(database, float64((server.cpu(b)-serverBefore).Microseconds())/perTurn)
					wal = append(wal, float64(walAfter-walBefore)/perTurn)
					commits = append(commits, float64(commitsAfter-commitsBefore)/perTurn)
				}
			}

			fmt.Printf(
				"%-26s c=%d  Go %4.0f µs   PostgreSQL %4.0f µs   WAL %5.0f bytes   commits %.2f\n",
				side.name, together, bench.Median(own), bench.Median(database), bench.Median(wal),
				bench.Median(commits),
			)
			b.ReportMetric(0, "ns/op")
		})
	}
}

// fromInside calls f perTurn times, while the engine runs.
func (s *shop) fromInside(b *testing.B, f func() error) {
	b.Helper()

	s.running(func(b *testing.B, _ int) float64 {
		b.Helper()
		perform(b, f)

		return 0
	})(b, together)
}

// perform calls f perTurn times, together at once.
func perform(b testing.TB, f func() error) {
	var (
		begun   atomic.Int64
		working sync.WaitGroup
	)

	for range together {
		working.Go(func() {
			for begun.Add(1) <= perTurn {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}

	working.Wait()
}

// pgbenchRows inserts perTurn rows by pgbench.
func pgbenchRows(b *testing.B, dsn string) {
	b.Helper()

	runPgbench(b, dsn, pgbenchInsert, together, "-t", strconv.Itoa(perTurn/together))
}

// fromOutside has a client process ask perTurn times, while the engine runs.
func (s *shop) fromOutside(b *testing.B, what string) {
	b.Helper()

	first := s.orders.Add(perTurn) - perTurn

	s.running(func(b *testing.B, _ int) float64 {
		b.Helper()

		client := exec.Command(os.Args[0], "-test.run", "^TestAsk$")

		client.Env = append(os.Environ(), strings.Join([]string{
			clientVariable + "=" + s.url, s.key, s.network, strconv.FormatInt(first, 10), what,
		}, " "))

		if out, err := client.CombinedOutput(); err != nil {
			b.Fatalf("client: %v: %s", err, out)
		}

		return 0
	})(b, together)
}

// TestAsk is the client process of fromOutside.
func TestAsk(t *testing.T) {
	fields := strings.SplitN(os.Getenv(clientVariable), " ", 5)
	if len(fields) < 5 {
		t.Skip("runs as the client of BenchmarkCPU")
	}

	s := &shop{
		url:     fields[0],
		key:     fields[1],
		network: fields[2],
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: together}},
	}

	first, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	s.orders.Store(first)
	perform(t, map[string]func() error{
		"insert":          s.insert,
		"create":          s.create(false),
		"create with key": s.create(true),
	}[fields[4]])
}

// ownCPU is the time of CPU that this process took until now.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()

	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}

	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// written is the position of the server's log, and how many transactions have written.
func written(b *testing.B, db *sql.DB) (wal, commits int64) {
	b.Helper()

	err := db.QueryRowContext(
		b.Context(),
		"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, "+
			"pg_snapshot_xmax(pg_current_snapshot())::text::bigint",
	).Scan(&wal, &commits)
	if err != nil {
		b.Fatal(err)
	}

	return wal, commits
}

// serverProcess is the process of PostgreSQL that starts all others.
type serverProcess int

// serverOf finds the server that a connection's process is a child of.
func serverOf(b *testing.B, db *sql.DB) serverProcess {
	b.Helper()

	var backend int
	if err := db.QueryRowContext(b.Context(), "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		b.Fatal(err)
	}

	parent, _, ok := processStat(backend)
	if !ok {
		b.Skip("the server's processes are not visible here")
	}

	return serverProcess(parent)
}

// cpu is the time of CPU that the server's processes took until now, those that ended included.
func (p serverProcess) cpu(b *testing.B) (total time.Duration) {
	b.Helper()

	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}

	for _, file := range all {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			b.Fatal(err)
		}

		parent, used, ok := processStat(pid)
		if ok && (parent == int(p) || pid == int(p)) {
			total += used
		}
	}

	return total
}

// processStat reads the parent of a process and its time of CPU, that of children that ended included; see proc(5).
func processStat(pid int) (parent int, used time.Duration, ok bool) {
	const tick = time.Second / 100 // USER_HZ

	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}

	_, after, _ := strings.Cut(string(text), ") ")

	fields := strings.Fields(after)
	if len(fields) < 15 {
		return 0, 0, false
	}

	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, false
		}

		used += time.Duration(n) * tick
	}

	parent, err = strconv.Atoi(fields[1])

	return parent, used, err == nil
}
