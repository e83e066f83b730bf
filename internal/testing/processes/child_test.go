//go:build unix

package processes_test

// This file is a process of the service: the test binary itself, started again. It serves the API,
// runs the engine, and ends when its parent closes its input or is gone.

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/httpapi"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/postgres"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// childVariable holds the orders of a child; a test binary without it is the parent.
const childVariable = "PAYMENTS_CHILD"

// orders are what all processes of a service have in common.
type orders struct {
	DSN, RPC string
	ChainID  uint64
	Began    time.Time

	// Distributed says that DSN is of a Citus cluster.
	Distributed bool
	// SQLite is the file of the store; empty for PostgreSQL.
	SQLite string
	// Keys is the passphrase of the keys: services over one node need different ones.
	Keys string
	// Name is the process's.
	Name string
	// RealTime has the engine run on the system's clock, shifted by what the parent says, and check it.
	RealTime bool
	// Speed is how much faster the engine's clock goes; 0 is speed.
	Speed int
}

// speed is how much faster the engines' clocks go: leases of 30 s then last 3 s, so that many change hands.
const speed = 10

// clockOffset is how far the clock of this process is wrong under RealTime, in nanoseconds.
var clockOffset atomic.Int64

func (o orders) now() time.Time {
	if o.RealTime {
		return time.Now().Add(time.Duration(clockOffset.Load()))
	}

	return o.Began.Add(time.Duration(cmp.Or(o.Speed, speed)) * time.Since(o.Began))
}

// feeTo receives platform fees; nobody has its key.
const feeTo = "0x0000000000000000000000000000000000000fee"

// connections is how many connections a process has: with RealTime, many services share a server.
func (o orders) connections() int {
	if o.RealTime {
		return 4
	}

	return 8
}

// openStore opens the store of the orders. The caller calls shut.
func (o orders) openStore() (st payments.Store, shut func(), err error) {
	if o.SQLite != "" {
		st, err := sqlite.Open(o.SQLite)
		if err != nil {
			return nil, nil, err
		}

		return st, func() { _ = st.Close() }, nil
	}

	config, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		return nil, nil, err
	}

	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(o.connections())
	db.SetMaxIdleConns(o.connections())

	shut = func() { _ = db.Close() }

	st, err = postgres.New(
		db,
		postgres.Options{
			Distributed: o.Distributed,
			ListenConn:  func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, o.DSN) },
		},
	)

	return st, shut, err
}

// engine makes the service's engine. The caller closes what it opened.
func (o orders) engine(log io.Writer) (*payments.Engine, func(), error) {
	st, shut, err := o.openStore()
	if err != nil {
		return nil, shut, err
	}

	network := evm.Local(o.ChainID)

	driver, err := evm.New(evm.Config{Network: network, RPC: o.RPC})
	if err != nil {
		return nil, shut, err
	}
	// of the BIP-39 test vectors
	keys, err := hdkey.New(
		"legal winner thank year wave sausage worth useful legal winner thank yellow",
		o.Keys,
	)
	if err != nil {
		return nil, shut, err
	}

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Hour, o.now)
	if err != nil {
		return nil, shut, err
	}

	fees, err := driver.ParseAddress(feeTo)
	if err != nil {
		return nil, shut, err
	}

	e, err := payments.New(payments.Config{
		Store:        st,
		Drivers:      []payments.ChainDriver{driver},
		Signer:       keys,
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		FeeAddresses: map[string]string{network.Slug: string(fees)},
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Process:      o.Name,
		Now:          o.now,
		Log:          slog.New(slog.NewTextHandler(log, nil)),
	})

	if err == nil && o.RealTime {
		internal.Of(e).CheckClock()
	}

	return e, shut, err
}

// child is the process. It writes its address to the standard output, and what it logs to the standard error.
func child() int {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}

	return 0
}

func serve() error {
	var o orders
	if err := json.Unmarshal([]byte(os.Getenv(childVariable)), &o); err != nil {
		return err
	}

	e, shut, err := o.engine(os.Stderr)
	if shut != nil {
		defer shut()
	}

	if err != nil {
		return err
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	server := &http.Server{Handler: handler(e)}
	go func() { _ = server.Serve(listener) }()

	ctx, stop := context.WithCancel(context.Background())

	go func() {
		defer stop()

		// Each line is how far the clock is wrong from now on.
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			offset, err := time.ParseDuration(lines.Text())
			if err != nil {
				fmt.Fprintln(os.Stderr, "child:", err)
				return
			}

			clockOffset.Store(int64(offset))
		}
	}()

	fmt.Println(listener.Addr())

	err = e.Run(ctx)

	limited, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	_ = server.Shutdown(limited)

	return err
}

// handler serves the API, and Engine.Health at /report.
func handler(e *payments.Engine) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", httpapi.Handler(e, nil))
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, r *http.Request) {
		report, err := e.Health(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}

		_ = json.NewEncoder(w).Encode(report)
	})

	return mux
}

// process is a running child, as its parent sees it.
type process struct {
	addr  string
	cmd   *exec.Cmd
	input io.WriteCloser
	log   string
	dead  bool
}

// start starts a child and waits until it serves.
func (o orders) start(log string) (*process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}

	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}

	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	p := &process{cmd: exec.Command(binary), log: log}

	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), childVariable+"="+string(text)), file

	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}

	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}

	if err := p.cmd.Start(); err != nil {
		return nil, err
	}

	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("a process did not start: %w (%w)\n%s", err, p.cmd.Wait(), tail(log))
	}

	p.addr = strings.TrimSpace(line)

	return p, nil
}

// kill ends the process at once, wherever it is.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}

// end asks the process to end and waits until it has.
func (p *process) end() error {
	_ = p.input.Close()
	return p.cmd.Wait()
}

// family is the running processes, one of which may be replaced at any time.
type family struct {
	mu        sync.Mutex
	all       []*process
	replacing sync.WaitGroup
}

// somebody returns the address of the n-th process, counted around.
func (f *family) somebody(n int) string {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.all[n%len(f.all)].addr
}

// replace kills a process and has another started in its place. It reports false, and does nothing,
// while the one before it is still being replaced.
func (f *family) replace(t *testing.T, o orders, n int) bool {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()

	at := n % len(f.all)

	old := f.all[at]
	if old.dead {
		return false
	}

	old.dead = true
	old.kill()
	f.replacing.Go(func() {
		fresh, err := o.start(old.log)
		if err != nil {
			t.Error(err)
			return
		}

		f.mu.Lock()
		defer f.mu.Unlock()

		f.all[at] = fresh
	})

	return true
}

// rear starts so many processes and stops what is left of them at the end of the test.
func rear(t *testing.T, o orders, n int) *family {
	t.Helper()
	dir, f := t.TempDir(), &family{}
	t.Cleanup(func() {
		f.replacing.Wait()

		for _, p := range f.all {
			p.kill()

			if t.Failed() {
				t.Logf("the last of what a process logged:\n%s", tail(p.log))
			}
		}
	})

	for i := range n {
		p, err := o.start(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}

		f.all = append(f.all, p)
	}

	return f
}

// tail returns the last of a file.
func tail(path string) string {
	text, _ := os.ReadFile(path)
	return string(text[max(0, len(text)-4000):])
}

func migrate(t *testing.T, dsn string, o postgres.Options) {
	t.Helper()

	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}

	db := stdlib.OpenDB(*config)
	defer db.Close()

	if err := postgres.Migrate(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
}

// service starts what all processes share.
func service(t *testing.T) orders {
	t.Helper()
	node := testenv.Anvil(t, testenv.AnvilOptions{BlockTime: 500 * time.Millisecond})
	o := orders{DSN: testenv.Postgres(t), RPC: node.URL, ChainID: node.ChainID, Began: time.Now()}
	migrate(t, o.DSN, postgres.Options{})

	return o
}
