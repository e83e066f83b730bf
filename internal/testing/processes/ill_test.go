//go:build unix

package processes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/health"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// The bounds of an illness, by a watch that no process sees.
const (
	takeoverIn = 2 * heartbeat.LeaseFor
	reportedIn = heartbeat.LeaseFor // max(15 s, lease)
	// polled is how late the test may see what happened.
	polled = 2 * time.Second
)

// illness is what is wrong with the process that follows the network, while nothing is wrong with the others.
type illness struct {
	name   string
	sqlite bool
	begin  func(w *ward)
	end    func(w *ward) // nil: the process does not come back
	// seen reports that a survivor's Health shows it.
	seen func(h health.Report) bool
	// own reports that the ill process's own Health shows it; nil where it cannot answer.
	own func(h health.Report) bool
	// keeps is set when it still follows: only what it signed is taken over.
	keeps bool
	lasts time.Duration
}

func illnesses(lasts time.Duration) []illness {
	clockWrong := func(h health.Report) bool {
		return slices.ContainsFunc(h.Processes, func(p health.Process) bool { return p.ClockWrong })
	}
	clock := func(offset time.Duration) func(w *ward) {
		return func(w *ward) { w.setClock(offset) }
	}
	failing := func(h health.Report) bool { return !h.OK() }
	noNode := func(h health.Report) bool {
		return slices.ContainsFunc(h.Processes, func(p health.Process) bool {
			return slices.Contains(p.Failing, "follower of local")
		})
	}

	return []illness{
		{
			name:  "stopped",
			begin: func(w *ward) { w.signal(syscall.SIGSTOP) },
			end:   func(w *ward) { w.signal(syscall.SIGCONT) },
			seen:  failing,
			lasts: lasts,
		},
		{
			name:   "killed, over SQLite",
			sqlite: true,
			begin:  func(w *ward) { w.ill.kill() },
			seen:   failing,
		},
		{
			name:  "an hour ahead",
			begin: clock(time.Hour),
			end:   clock(0),
			seen:  clockWrong,
			own:   failing,
			keeps: true,
		},
		{
			name:  "an hour behind",
			begin: clock(-time.Hour),
			end:   clock(0),
			seen:  clockWrong,
			own:   failing,
			keeps: true,
		},
		{
			name:  "node refuses",
			begin: func(w *ward) { w.gate.Store(gateRefuses) },
			end:   func(w *ward) { w.gate.Store(gateOpen) },
			seen:  noNode,
			own:   failing,
		},
		{
			name:  "node hangs",
			begin: func(w *ward) { w.gate.Store(gateHangs) },
			end:   func(w *ward) { w.gate.Store(gateOpen) },
			seen:  noNode,
			own:   failing,
		},
	}
}

// Four processes, one of which falls ill: stopped, killed, its clock an hour wrong, its node dead. Another does
// its work within two leases, the survivors report what they can see within one, and are well again after that.
// The short form has one that is stopped, and one whose node hangs.
func TestIllProcessIsReportedAndReplaced(t *testing.T) {
	all := illnesses(0)
	playIllnesses(t, all[0], all[len(all)-1])
}

// The same with every illness, and with a process stopped for 60 s.
func TestSoakIllProcessIsReportedAndReplaced(t *testing.T) {
	if os.Getenv("SOAKTIME") == "" {
		t.Skip("make soak plays every illness, and stops a process for 60 s")
	}

	playIllnesses(t, illnesses(time.Minute)...)
}

func playIllnesses(t *testing.T, all ...illness) {
	node := testenv.Anvil(t, testenv.AnvilOptions{BlockTime: time.Second})

	for i, ill := range all {
		t.Run(ill.name, func(t *testing.T) {
			t.Parallel()

			o := orders{RPC: node.URL, ChainID: node.ChainID, Keys: ill.name, RealTime: true}
			if ill.sqlite {
				o.SQLite = filepath.Join(t.TempDir(), "payments.db")
			} else {
				o.DSN = testenv.Postgres(t)
				migrate(t, o.DSN, postgres.Options{})
			}

			newWard(t, o, i).play(ill)
		})
	}
}

// The states of the gate between a process and its node.
const (
	gateOpen = iota
	gateRefuses
	gateHangs
)

// ward is four processes of one service, each with a gate of its own to the node.
type ward struct {
	orders
	t         *testing.T
	look      *payments.Engine
	owner     event.Owner
	processes []*process
	gates     []*atomic.Int32
	closed    chan struct{}

	ill  *process
	gate *atomic.Int32
}

func newWard(t *testing.T, o orders, n int) *ward {
	t.Helper()
	w := &ward{orders: o, t: t, closed: make(chan struct{})}

	look, shut, err := o.engine(io.Discard)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(shut)

	w.look = look
	w.owner.AccountID = merchant(t, look)
	w.fund(n)

	dir := t.TempDir()

	t.Cleanup(func() {
		for _, p := range w.processes {
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
			p.kill()

			if t.Failed() {
				t.Logf("the last of what a process logged:\n%s", tail(p.log))
			}
		}
	})

	for i := range 4 {
		mine, gate := o, &atomic.Int32{}
		mine.Name, mine.RPC = fmt.Sprint("p", i), w.gateTo(o.RPC, gate)

		p, err := mine.start(filepath.Join(dir, mine.Name))
		if err != nil {
			t.Fatal(err)
		}

		w.processes, w.gates = append(w.processes, p), append(w.gates, gate)
	}

	t.Cleanup(func() { close(w.closed) })

	return w
}

// gateTo returns the URL of a gate to a node.
func (w *ward) gateTo(to string, gate *atomic.Int32) string {
	target, err := url.Parse(to)
	if err != nil {
		w.t.Fatal(err)
	}

	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch gate.Load() {
		case gateRefuses:
			panic(http.ErrAbortHandler)
		case gateHangs:
			_, _ = io.Copy(io.Discard, r.Body)

			select {
			case <-r.Context().Done():
			case <-w.closed:
			}

			panic(http.ErrAbortHandler)
		default:
			proxy.ServeHTTP(rw, r)
		}
	}))
	w.t.Cleanup(server.Close)

	return server.URL
}

// fund pays the merchant's master wallet, from the n-th account of the node.
func (w *ward) fund(n int) {
	w.t.Helper()

	a, err := w.look.Accounts.Get(w.t.Context(), w.owner.AccountID)
	if err != nil {
		w.t.Fatal(err)
	}

	master, err := internal.Of(w.look).Transactions.MasterWallet(w.t.Context(), "local", a.Index)
	if err != nil {
		w.t.Fatal(err)
	}

	node, err := rpc.DialContext(w.t.Context(), w.RPC)
	if err != nil {
		w.t.Fatal(err)
	}
	defer node.Close()

	var hash string
	if err := node.CallContext(w.t.Context(), &hash, "eth_sendTransaction", map[string]any{
		"from":  testenv.WellKnownDevAccounts[n].Address,
		"to":    master.Address,
		"value": (*hexutil.Big)(chain.Pow10(18).Big()),
		"gas":   hexutil.Uint64(21000),
	}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *ward) play(ill illness) {
	w.waitFor("all are well", time.Minute, w.allWell)
	w.payOut(time.Minute)

	// The process that follows the network falls ill.
	at := w.following(w.processes)
	w.ill, w.gate = w.processes[at], w.gates[at]
	survivors := slices.Delete(slices.Clone(w.processes), at, at+1)
	began := time.Now()

	ill.begin(w)

	reported := w.observe(ill, survivors)

	paid := w.payOut(takeoverIn + polled - time.Since(began))
	w.t.Logf("taken over after %s: a payout is confirmed", paid.Sub(began).Round(100*time.Millisecond))

	if !ill.keeps {
		w.waitFor("another follows", takeoverIn+polled-time.Since(began), func() bool {
			return w.following(survivors) >= 0
		})
	}

	if at := <-reported; at.IsZero() {
		w.t.Errorf("the survivors' Health did not show it within %s", reportedIn)
	} else {
		w.t.Logf("in Health after %s", at.Sub(began).Round(100*time.Millisecond))
	}

	w.waitFor("the survivors are well", takeoverIn+polled-time.Since(began), func() bool {
		return w.all(survivors, func(h health.Report) bool { return h.OK() })
	})
	w.t.Logf("the survivors are well after %s", time.Since(began).Round(100*time.Millisecond))

	if ill.end == nil {
		return
	}

	time.Sleep(ill.lasts - time.Since(began))
	ill.end(w)
	w.waitFor("all are well again", time.Minute, w.allWell)
	w.payOut(time.Minute)
}

// observe sends when Health showed the illness, or zero if it did not in time.
func (w *ward) observe(ill illness, survivors []*process) <-chan time.Time {
	shown := make(chan time.Time, 1)
	deadline := time.Now().Add(reportedIn + polled)

	go func() {
		for ; time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
			seen := w.all(survivors, ill.seen)
			own := ill.own == nil || w.all([]*process{w.ill}, ill.own)

			if seen && own {
				shown <- time.Now()
				return
			}
		}

		shown <- time.Time{}
	}()

	return shown
}

// payOut creates a payout and waits until it is confirmed.
func (w *ward) payOut(limit time.Duration) time.Time {
	w.t.Helper()

	var made payout.Payout

	ctx, end := context.WithTimeout(w.t.Context(), limit)
	defer end()

	w.waitFor("a payout is made", limit, func() (ok bool) {
		var err error

		made, err = w.look.Payouts.Create(ctx, payout.Params{
			Owner:       w.owner,
			Network:     "local",
			Asset:       "ETH",
			Amount:      chain.Pow10(12),
			Destination: "0x00000000000000000000000000000000000000aa",
			RequestedBy: payout.Requester{Type: "user", ID: "test"},
		})

		return err == nil
	})
	w.waitFor("a payout is confirmed", limit, func() bool {
		now, err := w.look.Payouts.Get(w.t.Context(), w.owner, made.ID)
		return err == nil && now.Status == payout.Confirmed
	})

	return time.Now()
}

func (w *ward) waitFor(what string, limit time.Duration, ok func() bool) {
	w.t.Helper()

	for deadline := time.Now().Add(limit); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			for _, p := range w.processes {
				report, err := p.health(w.t.Context())
				w.t.Logf("%+v (%v)", report, err)
			}

			w.t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// allWell reports that all processes are well and see each other, and one follows.
func (w *ward) allWell() bool {
	return w.following(w.processes) >= 0 && w.all(w.processes, func(h health.Report) bool {
		return h.OK() && len(h.Processes) == 3 && !slices.ContainsFunc(
			h.Processes, func(p health.Process) bool { return p.ClockWrong || len(p.Failing) > 0 },
		)
	})
}

// all reports whether all of some processes answer, and with what is asked for.
func (w *ward) all(of []*process, ok func(health.Report) bool) bool {
	for _, p := range of {
		if report, err := p.health(w.t.Context()); err != nil || !ok(report) {
			return false
		}
	}

	return true
}

// following returns the index of the process that follows the network; -1 when none does.
func (w *ward) following(of []*process) int {
	return slices.IndexFunc(of, func(p *process) bool {
		report, err := p.health(w.t.Context())
		return err == nil && len(report.Networks) == 1 && report.Networks[0].Follower.Following
	})
}

func (w *ward) setClock(offset time.Duration) {
	if _, err := fmt.Fprintln(w.ill.input, offset); err != nil {
		w.t.Fatal(err)
	}
}

func (w *ward) signal(s syscall.Signal) {
	if err := w.ill.cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// health asks a process for its Health.
func (p *process) health(ctx context.Context) (report health.Report, err error) {
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()

	req, err := http.NewRequestWithContext(limited, http.MethodGet, "http://"+p.addr+"/report", nil)
	if err != nil {
		return report, err
	}

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return report, err
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusOK {
		return report, fmt.Errorf("/report answered %d", resp.StatusCode)
	}

	return report, json.NewDecoder(resp.Body).Decode(&report)
}
