// Package deliver sends webhooks. An event becomes deliveries in the transaction that stores it (fanout.go).
// A worker claims due deliveries (worker.go, pool.go), posts them (attempt.go, client.go), and stores the
// results and their effect on endpoints (result.go). Secrets are redacted before results are stored
// (redact.go).
//
// Package engine runs it. The records and their state machines are in package webhook.
package deliver

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed-8ee7f392/payments/internal/ssrf"
	"github.com/seed-8ee7f392/payments/webhook"
)

// DB is this package's view of a store.
type DB interface {
	webhook.Reader
	Update(ctx context.Context, f func(ctx context.Context, tx webhook.Tx) error) error
}

// IDs makes the ids of new deliveries and events.
type IDs interface {
	Next() string
	Event() string
}

// Sealer opens secrets that were sealed at rest.
type Sealer interface {
	// Seal encrypts plaintext so that it opens with the same context only.
	Seal(plaintext, context []byte) []byte
	// Open decrypts the result of Seal for the same context, or fails.
	Open(sealed, context []byte) ([]byte, error)
}

// Config configures a Deliverer. DB, IDs and Seal are required.
type Config struct {
	DB  DB
	IDs IDs

	// Seal opens signing secrets.
	Seal Sealer
	HTTP HTTP

	// Process names this process in claims. Defaults to "webhook".
	Process string

	webhook.Policy

	// Backlog counts the due deliveries in the store; may be nil.
	Backlog webhook.BacklogReader

	// Claimed is notified of every claim and of its error; may be nil.
	Claimed func(err error)

	// Poll is how often Run looks for deliveries that became due. Defaults to 1 s.
	Poll time.Duration

	// Retention is how long events and ended deliveries are kept. Defaults to DefaultRetention.
	Retention time.Duration

	// Now returns the time. Defaults to time.Now.
	Now func() time.Time

	// Entropy is the source of jitter. It must be safe for concurrent use. Defaults to crypto/rand.
	Entropy io.Reader

	// Log defaults to slog.Default().
	Log *slog.Logger
}

// Deliverer makes deliveries of events and sends them. It is safe for concurrent use.
type Deliverer struct {
	db          DB
	ids         IDs
	seal        Sealer
	client      *http.Client
	timeout     time.Duration
	process     string
	concurrency int
	perEndpoint int
	maxEndpoint int
	headers     time.Duration
	body        time.Duration
	idle        time.Duration
	claimed     func(err error)
	poll        time.Duration
	retention   time.Duration
	now         func() time.Time
	entropy     io.Reader
	log         *slog.Logger
	wake        chan struct{}
	backlog     atomic.Pointer[backlog]
	count       webhook.BacklogReader
	due         atomic.Pointer[counted]
}

// New returns a Deliverer. It starts nothing.
func New(c Config) *Deliverer {
	d := &Deliverer{
		db:          c.DB,
		ids:         c.IDs,
		seal:        c.Seal,
		client:      newClient(ssrf.New(c.HTTP.Allow), c.HTTP),
		timeout:     DefaultTimeout,
		process:     c.Process,
		concurrency: positive(c.Concurrency, 256),
		perEndpoint: positive(c.PerEndpoint, 4),
		body:        positive(c.BodyTimeout, 5*time.Second),
		idle:        positive(c.IdleTimeout, 2*time.Second),
		claimed:     c.Claimed,
		count:       c.Backlog,
		poll:        positive(c.Poll, time.Second),
		retention:   positive(c.Retention, DefaultRetention),
		now:         c.Now,
		entropy:     c.Entropy,
		log:         c.Log,
		wake:        make(chan struct{}, 1),
	}

	if c.HTTP.Timeout > 0 {
		d.timeout = min(c.HTTP.Timeout, DefaultTimeout)
	}

	if c.Policy.Timeout > 0 {
		d.timeout = min(c.Policy.Timeout, d.timeout)
	}

	d.headers = min(positive(c.HeaderTimeout, d.timeout), d.timeout)
	d.maxEndpoint = max(positive(c.MaxPerEndpoint, 32), d.perEndpoint)

	if d.claimed == nil {
		d.claimed = func(error) {}
	}

	if d.process == "" {
		d.process = "webhook"
	}

	if d.now == nil {
		d.now = time.Now
	}

	if d.entropy == nil {
		d.entropy = rand.Reader
	}

	if d.log == nil {
		d.log = slog.Default()
	}

	return d
}

// Simulate replaces the connections to endpoints, and limits the deliveries in flight to some slots. With one
// slot, Step sends one at a time, so that its order is always the same. Only simulations call it, before the
// first Step: nothing checks where transport connects to.
func (s *Deliverer) Simulate(transport http.RoundTripper, slots int) {
	s.client.Transport, s.concurrency = transport, slots
}

func positive[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}

	return otherwise
}

func (s *Deliverer) stamp() time.Time { return s.now().UTC() }
