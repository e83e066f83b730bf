package httpapi

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// While another connection holds SQLite's write lock, /healthz says that the process lives and /readyz that it
// cannot work, naming what and not why.
func TestReadyzOverALockedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "payments.db")
	e := overSQLite(t, path)
	work := func() { _, _ = e.Step(t.Context()) } // its errors are in Health
	work()

	if status, body := probe(t, HealthHandler(e), "/readyz"); status != http.StatusOK || body.Status != "ok" {
		t.Fatalf("while all is well: %d %+v", status, body)
	}

	unlock := lockSQLite(t, path)

	// Heartbeats are due every 5 s; a second engine beats at once.
	e = overSQLite(t, path)

	work()

	if status, body := probe(
		t,
		HealthHandler(e),
		"/healthz",
	); status != http.StatusOK ||
		body.Status != "ok" {
		t.Errorf("/healthz of a process that lives: %d %+v", status, body)
	}

	status, body := probe(t, HealthHandler(e), "/readyz")
	if status != http.StatusServiceUnavailable || body.Status != "failing" ||
		!slices.Contains(body.Failing, "heartbeat") {
		t.Errorf("while it is locked: %d %+v", status, body)
	}

	if strings.Contains(strings.Join(body.Failing, " "), "lock") {
		t.Errorf("it says why: %+v", body)
	}

	unlock()
	work()

	if status, body := probe(
		t,
		HealthHandler(e),
		"/readyz",
	); status != http.StatusOK ||
		len(body.Failing) > 0 {
		t.Errorf("once it is free: %d %+v", status, body)
	}
}

// A process stays ready while another is lost, and says so.
func TestReadyzWhileAnotherProcessIsLost(t *testing.T) {
	report := health.Report{Processes: []health.Process{{Name: "other", Lost: true}}}

	if report.OK() || statusOf(report) != http.StatusOK {
		t.Errorf("OK %v, status %d", report.OK(), statusOf(report))
	}

	if body := bodyOf(report); body.Status != "failing" || !slices.Contains(body.Failing, "a process") {
		t.Errorf("%+v", body)
	}
}

// /healthz says that the process answers and nothing that it did not look at.
func TestHealthzSaysOnlyThatTheProcessAnswers(t *testing.T) {
	answer := httptest.NewRecorder()
	HealthHandler(overSQLite(t, filepath.Join(t.TempDir(), "payments.db"))).
		ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/healthz", nil))

	if got := strings.TrimSpace(
		answer.Body.String(),
	); answer.Code != http.StatusOK ||
		got != `{"status":"ok"}` {
		t.Errorf("%d %s", answer.Code, got)
	}
}

// A stopped network needs a person; one that fails in another way returns by itself.
func TestStoppedNetworkNeedsAPerson(t *testing.T) {
	failing := health.Network{
		Network:  "base",
		Stale:    true,
		Follower: health.Follower{LastError: "down"},
		Unagreed: "b",
	}
	stopped := health.Network{Network: "sepolia", Stopped: "fork below finality"}

	for _, c := range []struct {
		networks []health.Network
		needs    int
		body     string
	}{
		{[]health.Network{failing}, 0, `"needs_person":false,"failing":["network base"],"ready":`},
		{
			[]health.Network{failing, stopped},
			1,
			`"needs_person":true,"failing":["network base","network sepolia"],` +
				`"stopped":["sepolia"],"ready":`,
		},
	} {
		report := health.Report{Networks: c.networks}

		if report.NeedsPerson() != (c.needs > 0) || needPerson(report) != c.needs {
			t.Errorf("%+v: %t, %d", c.networks, report.NeedsPerson(), needPerson(report))
		}

		if body, err := json.Marshal(bodyOf(report)); err != nil || !strings.Contains(string(body), c.body) {
			t.Errorf("%s, %v: want %s", body, err, c.body)
		}
	}
}

// Whatever takes readiness from a network is named, and takes none from the API.
func TestReadyzNamesTheNetwork(t *testing.T) {
	for name, n := range map[string]health.Network{
		"stopped": {Network: "sepolia", Stopped: "fork below finality"},
		"stale":   {Network: "sepolia", Stale: true},
		"failing": {Network: "sepolia", Follower: health.Follower{LastError: "down"}},
	} {
		report := health.Report{Networks: []health.Network{{Network: "base"}, n}}

		body := bodyOf(report)
		if statusOf(report) != http.StatusOK || body.Status != "failing" || !body.Ready.API ||
			body.Ready.Networks["sepolia"] || !body.Ready.Networks["base"] ||
			!slices.Equal(body.Failing, []string{"network sepolia"}) {
			t.Errorf("%s: status %d, %+v", name, statusOf(report), body)
		}
	}
}

func TestMetrics(t *testing.T) {
	got := string(metricsOf(health.Report{
		Checks: []health.Check{
			{Name: "store", Age: 1500 * time.Millisecond},
			{Name: "heartbeat", Error: "down"},
			{Name: "rates", Error: "down"},
			{Name: "outbox of \"x\"\n", Error: "down"},
		},
		Networks: []health.Network{
			{Network: "sepolia", Behind: 3, Stopped: "fork below finality"},
			{Network: "base", Stale: true, Follower: health.Follower{LastError: "down"}},
		},
		Wallets: []health.Wallet{{Network: "sepolia", Frozen: true}, {Network: "base"}},
		Processes: []health.Process{
			{Name: `a\b`, Still: 12 * time.Second, Lost: true, Failing: []string{"x", "y"}},
		},
		Attention: []health.Attention{
			{Object: "settlement", Network: "sepolia", Status: "failed", Reason: "funds_missing", Count: 3},
			{
				Object:  "payout",
				Network: "base",
				Status:  "pending",
				Reason:  "insufficient_funds",
				Count:   4,
				Since:   time.Unix(5, 0),
			},
		},
		ClockSkew: -time.Second,
		Backlog:   health.Backlog{Due: 9, Waiting: 5, InFlight: 2, Age: time.Minute},
		Backlogs:  []health.Backlog{{AccountID: "65a", Livemode: true, Due: 7, Waiting: 4, Age: time.Minute}},
	}))

	for _, line := range []string{
		"payments_ok 0",
		"payments_ready 0",
		"payments_prices_ready 0",
		"payments_clock_skew_seconds -1",
		`payments_check_age_seconds{check="store"} 1.5`,
		`payments_check_failing{check="store"} 0`,
		`payments_check_failing{check="outbox of \"x\"\n"} 1`,
		"payments_needs_person 6",
		`payments_attention{object="settlement",network="sepolia",status="failed",reason="funds_missing"} 3`,
		`payments_attention{object="payout",network="base",status="pending",reason="insufficient_funds"} 4`,
		`payments_attention_oldest_timestamp_seconds{object="payout",network="base",status="pending",` +
			`reason="insufficient_funds"} 5`,
		`payments_network_behind_blocks{network="sepolia"} 3`,
		`payments_network_stopped{network="sepolia"} 1`,
		`payments_network_stopped{network="base"} 0`,
		`payments_network_stale{network="sepolia"} 0`,
		`payments_network_stale{network="base"} 1`,
		`payments_network_failing{network="sepolia"} 0`,
		`payments_network_failing{network="base"} 1`,
		`payments_process_still_seconds{process="a\\b"} 12`,
		`payments_process_failing{process="a\\b"} 2`,
		"payments_webhooks_due 9",
		`payments_webhooks_account_due{account="65a",livemode="true"} 7`,
		"payments_webhooks_waiting 5",
		"payments_webhooks_in_flight 2",
		"payments_webhooks_age_seconds 60",
		`payments_webhooks_account_waiting{account="65a",livemode="true"} 4`,
		`payments_webhooks_account_age_seconds{account="65a",livemode="true"} 60`,
		"# TYPE payments_webhooks_account_age_seconds gauge",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %s in\n%s", line, got)
		}
	}
}

func TestMetricsHandler(t *testing.T) {
	e := overSQLite(t, filepath.Join(t.TempDir(), "payments.db"))
	answer := httptest.NewRecorder()
	MetricsHandler(e).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))

	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "payments_ok ") {
		t.Errorf("%d: %s", answer.Code, answer.Body)
	}
}

// overSQLite returns an engine over a file, which waits 10 ms for its lock.
func overSQLite(t *testing.T, path string) *payments.Engine {
	t.Helper()

	st, err := sqlite.Open(path, sqlite.WithBusyTimeout(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = st.Close() })

	prices, err := rate.NewFixed(map[string]string{"SIM/USD": "1"}, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}

	e, err := payments.New(payments.Config{
		Store:     st,
		Drivers:   []payments.ChainDriver{sim.New(sim.Config{})},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}

	return e
}

// lockSQLite takes the write lock of a file until unlock is called.
func lockSQLite(t *testing.T, path string) (unlock func()) {
	t.Helper()

	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}

	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}

	return func() {
		if _, err := conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK"); err != nil {
			t.Error(err)
		}

		_, _ = conn.Close(), db.Close()
	}
}

func probe(t *testing.T, h http.Handler, path string) (status int, body healthBody) {
	t.Helper()

	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))

	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}

	return answer.Code, body
}
