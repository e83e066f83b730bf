//go:build unix

package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file kills processes that deliver. A process is this test binary, started again with the
// variable that names the database; it makes invoices and delivers their events until it is killed.

const processVariable = "PAYMENTS_WEBHOOK_TEST_DATABASE"

// crashConfig configures a process that crashes.
type crashConfig struct {
	Path  string
	Owner event.Owner
	// what the clock of this process is ahead by: the claims of the one before have lapsed
	Ahead time.Duration
	// KillAt is the commit at which the process kills itself, from 1; 0: it never does. After says
	// that it does so when the commit took effect, not before it.
	KillAt int
	After  bool
	Makes  bool // it makes events as well
}

// crashStore counts commits and kills its process at one of them, as SIGKILL does.
type crashStore struct {
	store.Store
	c       crashConfig
	mu      sync.Mutex
	commits int
}

func (m *crashStore) Update(ctx context.Context, f func(context.Context, store.Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	crash := false
	err := m.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := f(ctx, tx); err != nil {
			return err
		}

		m.commits++
		if crash = m.commits == m.c.KillAt; crash && !m.c.After {
			kill()
		}

		return nil
	})

	if crash {
		kill()
	}

	return err
}

func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)

	select {}
}

// engineAt is an engine over a SQLite file, with a clock that is ahead.
func engineAt(st store.Store, ahead time.Duration) (*payments.Engine, error) {
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Minute, nil)
	if err != nil {
		return nil, err
	}

	return payments.New(payments.Config{
		Store:        st,
		Drivers:      []payments.ChainDriver{sim.New(sim.Config{})},
		Signer:       sim.NewSigner(7, nil),
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log:          slog.New(slog.DiscardHandler),
		Now:          func() time.Time { return time.Now().Add(ahead) },
	})
}

// deliverUntilKilled is the main function of such a process. It writes a line for each invoice
// whose creation was answered, and ends by itself when nothing is pending any more.
func deliverUntilKilled(variable string) error {
	var c crashConfig
	if err := json.Unmarshal([]byte(variable), &c); err != nil {
		return err
	}

	db, err := sqlite.Open(c.Path)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()

	engine, err := engineAt(&crashStore{Store: db, c: c}, c.Ahead)
	if err != nil {
		return err
	}

	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()

	var work sync.WaitGroup
	if c.Makes {
		work.Go(func() {
			for ctx.Err() == nil {
				inv, err := engine.Invoices.Create(ctx, invoice.CreateParams{
					Owner: c.Owner,
					Options: []invoice.OptionParams{
						{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(15)},
					},
				})
				if err == nil {
					fmt.Println(inv.ID)
				} else {
					fmt.Fprintln(os.Stderr, "creating an invoice:", err)
				}
			}
		})
	}

	if c.Makes {
		err = internal.Of(engine).Deliverer.Run(ctx)
	} else {
		for did := true; did && err == nil; {
			did, err = internal.Of(engine).Deliverer.Step(ctx)
		}
	}

	stop()
	work.Wait()

	return err
}

// counter is an endpoint that counts the requests of each delivery and event. It takes a little
// while, so that processes die with requests under way.
type counter struct {
	mu         sync.Mutex
	requests   map[string]int // by delivery
	arrived    map[string]int // by event
	unverified error
	secret     string
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}

	c.mu.Lock()
	secret := c.secret
	c.mu.Unlock()

	if err := verifyThen(body, r.Header.Get(webhook.SignatureHeader), secret); err != nil {
		c.mu.Lock()
		c.unverified = err
		c.mu.Unlock()
	}

	c.mu.Lock()
	c.requests[r.Header.Get(webhook.DeliveryIDHeader)]++
	c.mu.Unlock()
	time.Sleep(rand.N(4 * time.Millisecond))
	c.mu.Lock()
	c.arrived[r.Header.Get(webhook.EventIDHeader)]++
	c.mu.Unlock()
}

// Killed at any moment, by itself at each of its first commits and from outside at random ones:
// every event whose invoice's creation was answered reaches the endpoint at least once, and every
// request that the endpoint saw is in the log of its delivery.
func TestKilledAtAnyMoment(t *testing.T) {
	const byCommit, atRandom = 24, 8

	path := filepath.Join(t.TempDir(), "payments.db")

	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()

	engine, err := engineAt(db, 0)
	if err != nil {
		t.Fatal(err)
	}

	a, err := engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	owner := event.Owner{AccountID: a.ID}
	receiver := &counter{requests: map[string]int{}, arrived: map[string]int{}}

	server := httptest.NewServer(receiver)
	defer server.Close()

	_, secret, err := engine.Webhooks.CreateEndpoint(
		t.Context(),
		webhook.EndpointParams{Owner: owner, URL: server.URL, Events: []event.Type{"*"}},
	)
	if err != nil {
		t.Fatal(err)
	}

	receiver.mu.Lock()
	receiver.secret = secret
	receiver.mu.Unlock()

	var answered []string

	kills := 0
	start := func(c crashConfig, after time.Duration) {
		t.Helper()
		made, said, killed := process(t, c, after)
		answered = append(answered, made...)

		if killed {
			kills++
		} else if c.Makes {
			t.Errorf("a process that was to be killed (%+v) ended by itself; it said %s", c, said)
		}
	}
	generation := 0
	// each process lives two minutes after the one before: its claims have lapsed
	next := func() crashConfig {
		generation++

		return crashConfig{
			Path:  path,
			Owner: owner,
			Ahead: time.Duration(generation) * 2 * time.Minute,
			Makes: true,
		}
	}
	for n := range byCommit {
		c := next()
		c.KillAt, c.After = 1+n/2, n%2 == 1
		start(c, 0)
	}

	for range atRandom {
		start(next(), 50*time.Millisecond+rand.N(200*time.Millisecond))
	}

	if kills != byCommit+atRandom {
		t.Fatalf("%d processes were killed, want %d", kills, byCommit+atRandom)
	}

	if len(answered) == 0 {
		t.Fatal("no creation was answered")
	}

	for range 5 { // in peace, until nothing is left
		c := next()
		c.Makes = false
		start(c, 0)
	}

	checkLog(t, engine, owner, receiver, answered, kills)
}

// process runs one process, and kills it after a while unless that is 0. It returns the invoices
// whose creation was answered, and the errors of the others.
func process(t *testing.T, c crashConfig, after time.Duration) (made []string, said string, killed bool) {
	t.Helper()

	variable, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), os.Args[0])

	cmd.Env = append(os.Environ(), processVariable+"="+string(variable))

	var out, errs bytes.Buffer

	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}

	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		killed = exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	}

	if err != nil && !killed {
		t.Fatalf("a process ended with %v: %s", err, errs.String())
	}

	for line := range bytes.Lines(out.Bytes()) {
		if id, whole := bytes.CutSuffix(line, []byte("\n")); whole { // the last one may have been cut off
			made = append(made, string(id))
		}
	}

	return made, errs.String(), killed
}

func checkLog(
	t *testing.T,
	engine *payments.Engine,
	owner event.Owner,
	receiver *counter,
	answered []string,
	kills int,
) {
	t.Helper()
	receiver.mu.Lock()
	defer receiver.mu.Unlock()

	if receiver.unverified != nil {
		t.Error(receiver.unverified)
	}

	events := map[string]string{} // by invoice

	f := event.Filter{Owner: owner, Limit: 100}
	for more := true; more; {
		page, next, err := engine.Webhooks.ListEvents(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}

		for _, ev := range page {
			events[ev.ObjectID], f.After = ev.ID, ev.ID
			if receiver.arrived[ev.ID] == 0 {
				t.Errorf("event %s never arrived", ev.ID)
			}
		}

		more = next
	}

	for _, id := range answered {
		if events[id] == "" {
			t.Errorf("the creation of invoice %s was answered, and there is no event", id)
		}
	}

	deliveries, requests, logged, interrupted, twice := 0, 0, 0, 0, 0

	g := webhook.DeliveryFilter{Owner: owner, Limit: 100}
	for more := true; more; {
		page, next, err := engine.Webhooks.ListDeliveries(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}

		for _, d := range page {
			g.After = d.ID
			deliveries++
			requests += receiver.requests[d.ID]

			logged += len(d.Log)
			for _, a := range d.Log {
				if a.Error == "interrupted" {
					interrupted++
				}
			}

			if receiver.requests[d.ID] > 1 {
				twice++
			}

			if d.Status != webhook.DeliverySucceeded || d.Attempts != len(d.Log) || d.ClaimedBy != "" {
				t.Errorf(
					"delivery %s is %s after %d attempts, %d of them in the log",
					d.ID, d.Status, d.Attempts, len(d.Log),
				)
			}

			if receiver.requests[d.ID] > len(d.Log) {
				t.Errorf(
					"the endpoint saw %d requests of delivery %s, the log has %d",
					receiver.requests[d.ID], d.ID, len(d.Log),
				)
			}
		}

		more = next
	}

	if interrupted == 0 || twice == 0 {
		t.Errorf(
			"%d interrupted attempts and %d deliveries that came twice: nobody was killed in the middle of something",
			interrupted,
			twice,
		)
	}

	t.Log(
		strconv.Itoa(kills), "processes killed:", len(events), "events,", len(answered),
		"creations answered,", deliveries, "deliveries,", requests,
		"requests seen by the endpoint,",
		logged, "attempts in the log,", interrupted, "of them interrupted,", twice,
		"deliveries that came more than once; none lost",
	)
}
