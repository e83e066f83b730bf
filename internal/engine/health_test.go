package engine

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook"
)

// illStore is a store of which a part may fail, with a clock.
type illStore struct {
	store.Store
	reads, writes error
	claims        error // of deliveries
	due           error // of transactions
	ahead         time.Duration
	now           func() time.Time
}

func (s *illStore) Accounts(ctx context.Context, after string, limit int) ([]account.Account, error) {
	if s.reads != nil {
		return nil, s.reads
	}

	return s.Store.Accounts(ctx, after, limit)
}

func (s *illStore) DueTransactions(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]wallet.Transaction, error) {
	if s.due != nil {
		return nil, s.due
	}

	return s.Store.DueTransactions(ctx, network, now, limit)
}

func (s *illStore) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if s.writes != nil {
			return s.writes
		}

		return f(ctx, illTx{tx, s.claims})
	})
}

// Time returns the time by the store's clock.
func (s *illStore) Time(context.Context) (time.Time, error) { return s.now().Add(s.ahead), nil }

type illTx struct {
	store.Tx
	claims error
}

func (t illTx) ClaimDeliveries(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
	if t.claims != nil {
		return nil, t.claims
	}

	return t.Tx.ClaimDeliveries(ctx, c)
}

// illRates are prices that may fail.
type illRates struct {
	rate.Source
	err error
}

func (r *illRates) Quote(ctx context.Context, base, currency string) (rate.Quote, error) {
	if r.err != nil {
		return rate.Quote{}, r.err
	}

	return r.Source.Quote(ctx, base, currency)
}

// clinic is an engine whose parts fail one by one, with a clock of the test's.
type clinic struct {
	*Engine
	t     *testing.T
	store *illStore
	rates *illRates
	chain *sim.Chain
	log   *bytes.Buffer

	mu sync.Mutex
	at time.Time
}

func newClinic(t *testing.T, over store.Store) *clinic {
	t.Helper()

	c := &clinic{t: t, log: &bytes.Buffer{}, at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	now := func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()

		return c.at
	}

	c.store = &illStore{Store: over, now: now}
	c.chain = sim.New(sim.Config{Clock: now})

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "1", "USDC/USD": "1"}, time.Minute, now)
	if err != nil {
		t.Fatal(err)
	}

	c.rates = &illRates{Source: prices}

	c.Engine, err = New(Config{
		Store:     c.store,
		Drivers:   []chain.Driver{c.chain},
		Signer:    sim.NewSigner(1, nil),
		Rates:     c.rates,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
		Now:       now,
		Log:       slog.New(slog.NewTextHandler(c.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}

	began := c.at
	c.clock.elapsed = func() time.Duration { return now().Sub(began) }

	return c
}

// passes lets time pass and does each kind of work once.
func (c *clinic) passes(d time.Duration) health.Report {
	c.t.Helper()
	c.mu.Lock()
	c.at = c.at.Add(d)
	c.mu.Unlock()

	_, _ = c.Step(c.t.Context()) // what fails is in the report

	report, err := c.Health(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}

	return report
}

func check(t *testing.T, report health.Report, name string) health.Check {
	t.Helper()

	at := slices.IndexFunc(report.Checks, func(c health.Check) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("no check %q in %+v", name, report.Checks)
	}

	return report.Checks[at]
}

// Health is composed of what was done: of each part it shows when that last succeeded, why it fails and since
// when, and whether the whole is OK.
func TestHealthIsComposed(t *testing.T) {
	down := fault.New(fault.Unavailable, "down", "it is down")

	for name, part := range map[string]struct {
		check string
		fail  func(c *clinic, err error)
	}{
		"network":     {"follower of simnet", failCalls(sim.MethodHead)},
		"store read":  {"store", func(c *clinic, err error) { c.store.reads = err }},
		"store write": {"heartbeat", func(c *clinic, err error) { c.store.writes = err }},
		"webhooks":    {"webhooks", func(c *clinic, err error) { c.store.claims = err }},
		"outbox":      {"outbox of simnet", func(c *clinic, err error) { c.store.due = err }},
		"rates":       {"rates", func(c *clinic, err error) { c.rates.err = err }},
		"clock": {
			"clock",
			func(c *clinic, err error) {
				c.store.ahead = 0
				if err != nil {
					c.store.ahead = time.Hour
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClinic(t, memory.New())
			c.CheckClock()

			well := c.passes(2 * time.Minute)
			if got := check(t, well, part.check); !well.OK() || !got.DoneAt.Equal(c.at) || got.Error != "" {
				t.Fatalf("while all is well: OK %v, %+v", well.OK(), well.Checks)
			}

			if got := well.Networks[0].Unconfirmed; !strings.Contains(got, "one is configured") {
				t.Errorf("one endpoint is configured, and Health says %q", got)
			}

			began := c.at
			part.fail(c, down)

			first := c.passes(2 * time.Minute)
			since := c.at
			second := c.passes(2 * time.Minute)

			for _, report := range []health.Report{first, second} {
				got := check(t, report, part.check)

				answers := part.check != health.Store && part.check != health.Heartbeat
				if report.OK() || report.Ready() != answers ||
					report.PricesReady() != (part.check != health.Rates) ||
					got.Error == "" ||
					!got.FailingSince.Equal(since) ||
					!got.DoneAt.Equal(began) {
					t.Errorf("OK %v, ready %v, %+v", report.OK(), report.Ready(), got)
				}
			}

			if got := check(t, second, part.check); got.Age != 4*time.Minute {
				t.Errorf("its age is %s", got.Age)
			}

			part.fail(c, nil)

			again := c.passes(2 * time.Minute)
			if got := check(
				t,
				again,
				part.check,
			); !again.OK() || got.Error != "" ||
				!got.FailingSince.IsZero() {
				t.Errorf("once it is well: OK %v, %+v", again.OK(), again.Checks)
			}
		})
	}
}

// failCalls has calls of the node fail.
func failCalls(method sim.Method) func(c *clinic, err error) {
	return func(c *clinic, err error) {
		c.chain.SetIntercept(func(_ context.Context, called sim.Method) error {
			if called == method {
				return err
			}

			return nil
		})
	}
}

// Work that a running engine does not do at all is a failure too.
func TestWorkThatIsNotDoneIsOverdue(t *testing.T) {
	var l workLog

	at := time.Unix(1e9, 0)
	l.done("outbox", 10*time.Second, at, false, nil)

	for _, test := range []struct {
		running bool
		after   time.Duration
		overdue bool
	}{
		{true, 80 * time.Second, false},
		{true, 81 * time.Second, true},
		{false, time.Hour, false},
	} {
		l.set(test.running)

		got := l.checks(at.Add(test.after))[0]
		if overdue := got.Error != ""; overdue != test.overdue || overdue == got.FailingSince.IsZero() {
			t.Errorf("running %v, %s later: %+v", test.running, test.after, got)
		}
	}
}

// A clock that differs from the store's is warned of above 5 s, and signs nothing above 5 minutes. An injected
// clock is not checked.
func TestClockSkew(t *testing.T) {
	for _, test := range []struct {
		ahead  time.Duration
		warned bool
		signs  bool
	}{
		{5 * time.Second, false, true},
		{5*time.Second + time.Millisecond, true, true},
		{-6 * time.Second, true, true},
		{5 * time.Minute, true, true},
		{5*time.Minute + time.Millisecond, true, false},
		{-6 * time.Minute, true, false},
	} {
		for _, checked := range []bool{true, false} {
			c := newClinic(t, memory.New())
			c.store.ahead = -test.ahead

			want := test
			if want.ahead = test.ahead; checked {
				c.CheckClock()
			} else {
				want.ahead, want.warned, want.signs = 0, false, true
			}

			report := c.passes(time.Minute)
			if report.ClockSkew != want.ahead || report.OK() != want.signs || c.maySign() != want.signs {
				t.Errorf("%s, checked %v: %s, OK %v, signs %v",
					test.ahead, checked, report.ClockSkew, report.OK(), c.maySign())
			}

			if warned := strings.Contains(c.log.String(), "clock differs"); warned != want.warned {
				t.Errorf("%s, checked %v: warned %v", test.ahead, checked, warned)
			}
		}
	}
}

// What other processes read is dated by the store's clock, so that a wrong clock here stalls nothing there.
func TestDeadlinesCountFromTheStoresClock(t *testing.T) {
	c := newClinic(t, memory.New())
	c.CheckClock()

	c.store.ahead = -time.Hour
	c.passes(time.Minute)

	if got := c.storeNow(); !got.Equal(c.at.Add(-time.Hour)) {
		t.Errorf("%s, want %s", got, c.at.Add(-time.Hour))
	}
}

// A step of the clock is seen at once, not only when the store's clock is read again.
func TestStepOfTheClockIsSeenAtOnce(t *testing.T) {
	c := newClinic(t, memory.New())
	c.CheckClock()
	c.passes(time.Minute)

	right := c.storeNow()
	if !c.maySign() {
		t.Fatal("it does not sign while its clock is right")
	}

	// The clock steps; the machine's monotonic one does not.
	c.clock.elapsed = func() time.Duration { return time.Minute }
	c.at = c.at.Add(time.Hour)

	if got := c.storeNow(); c.maySign() || !got.Equal(right) {
		t.Errorf("it signs %v, and counts from %s instead of %s", c.maySign(), got, right)
	}
}

// A newest block ahead of the clock is warned of and shown, and nothing else: the report stays OK. One behind it
// is neither.
func TestBlockTimeWarnsOnlyWhenItIsAhead(t *testing.T) {
	for _, test := range []struct {
		ahead   time.Duration
		checked bool
		shown   bool
	}{
		{aheadBlocks * 12 * time.Second, true, false},
		{aheadBlocks*12*time.Second + time.Second, true, true},
		{-30 * time.Minute, true, false},
		{time.Hour, false, false},
	} {
		c := newClinic(t, memory.New())
		if test.checked {
			c.CheckClock()
		}

		tip := chain.Ref{Height: 900, Time: c.at.Add(test.ahead)}
		cursor := scan.Cursor{
			At:     tip,
			Tip:    tip,
			Recent: []chain.Ref{{Height: 800, Time: tip.Time.Add(-100 * 12 * time.Second)}},
		}

		if got := c.tipAhead(cursor); (got > 0) != test.shown {
			t.Errorf("%s ahead, checked %v: %s", test.ahead, test.checked, got)
		}
	}

	c := newClinic(t, memory.New())
	c.CheckClock()

	c.chain.SetClock(func() time.Time { return c.at.Add(3 * time.Hour) })
	c.chain.Mine(1)
	c.passes(time.Minute)
	c.chain.Mine(1)

	report := c.passes(time.Minute)
	if got := report.Networks[0].TipAhead; got < 2*time.Hour || !report.OK() {
		t.Errorf("a block of the future: %s ahead, OK %v", got, report.OK())
	}

	if !strings.Contains(c.log.String(), "newest block is ahead") {
		t.Errorf("not warned of: %s", c.log)
	}
}

// A process that does not follow a network asked no node, and does not say that it did.
func TestStandbyReportsNoReading(t *testing.T) {
	shared := memory.New()
	leader, standby := newClinic(t, shared), newClinic(t, shared)

	leader.passes(time.Minute)

	report := standby.passes(time.Minute)
	if f := report.Networks[0].Follower; f.Following || !f.LastReadAt.IsZero() {
		t.Errorf("the standby: %+v", f)
	}

	report = leader.passes(time.Minute)
	if f := report.Networks[0].Follower; !f.Following || !f.LastReadAt.Equal(leader.at) {
		t.Errorf("the leader: %+v", f)
	}
}

// A process that stopped beating makes the others' Health false until its leases are free; they stay ready.
func TestLostProcessIsReportedUntilItIsReplaced(t *testing.T) {
	shared := memory.New()
	dying, other := newClinic(t, shared), newClinic(t, shared)

	dying.passes(time.Second)
	other.passes(time.Second)

	var reported, well time.Duration

	for at := time.Second; at <= time.Minute; at += time.Second {
		report := other.passes(time.Second)

		switch {
		case !report.OK() && reported == 0:
			reported = at
		case report.OK() && reported > 0 && well == 0:
			well = at
		}

		if !report.Ready() {
			t.Fatalf("after %s it is not ready: %+v", at, report)
		}
	}

	if reported == 0 || reported > 16*time.Second || well == 0 || well > time.Minute {
		t.Errorf("reported after %s, well after %s", reported, well)
	}

	if f := other.passes(time.Second).Networks[0].Follower; !f.Following {
		t.Errorf("it did not take over: %+v", f)
	}
}
