package webhook

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/seed-8ee7f392/payments/internal/ssrf"
)

// DelivererConfig is what a Deliverer is made of. DB, IDs and Seal are required.
type DelivererConfig struct {
	DB  DB
	IDs IDs

	// Seal opens signing secrets.
	Seal Sealer
	HTTP HTTP

	// Process names this process in claims. Defaults to "webhook".
	Process string

	// Concurrency is how many deliveries are under way at once, in this process. Defaults to 256.
	Concurrency int

	// PerEndpoint is how many of them go to one endpoint. Defaults to 4. An endpoint whose last try
	// failed gets one.
	PerEndpoint int

	// Poll is how often Run looks for deliveries that became due. Defaults to 1 s.
	Poll time.Duration

	// Retention is how long events and ended deliveries are kept. Defaults to 30 days.
	Retention time.Duration

	// Now tells the time. Defaults to time.Now.
	Now func() time.Time

	// Entropy makes jitter; it is read by several goroutines. Defaults to crypto/rand.
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
	poll        time.Duration
	retention   time.Duration
	now         func() time.Time
	entropy     io.Reader
	log         *slog.Logger
	wake        chan struct{}
}

// NewDeliverer returns a Deliverer. It starts nothing.
func NewDeliverer(c DelivererConfig) *Deliverer {
	d := &Deliverer{
		db:          c.DB,
		ids:         c.IDs,
		seal:        c.Seal,
		client:      newClient(ssrf.New(c.HTTP.Allow), c.HTTP),
		timeout:     DefaultTimeout,
		process:     c.Process,
		concurrency: positive(c.Concurrency, 256),
		perEndpoint: positive(c.PerEndpoint, 4),
		poll:        positive(c.Poll, time.Second),
		retention:   positive(c.Retention, 30*24*time.Hour),
		now:         c.Now,
		entropy:     c.Entropy,
		log:         c.Log,
		wake:        make(chan struct{}, 1),
	}

	if c.HTTP.Timeout > 0 {
		d.timeout = min(c.HTTP.Timeout, DefaultTimeout)
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

func positive[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}

	return otherwise
}

func (s *Deliverer) stamp() time.Time { return s.now().UTC() }

// secrets opens the secrets that sign an endpoint's deliveries at a time.
func (s *Deliverer) secrets(e Endpoint, at time.Time) ([]string, error) {
	var out []string

	for _, sealed := range e.sealedSecrets(at) {
		secret, err := s.seal.Open(sealed, secretContext(e.ID))
		if err != nil {
			return nil, fmt.Errorf("open the signing secret of webhook endpoint %s: %w", e.ID, err)
		}

		out = append(out, string(secret))
	}

	return out, nil
}
