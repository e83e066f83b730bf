package webhook

import (
	"context"
	"crypto/rand"
	"io"
	"net/netip"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/ssrf"
)

// maxOverlap is the longest time that a rotated secret goes on signing, beside the new one.
const maxOverlap = 168 * time.Hour

// sealer encrypts secrets at rest. internal/seal.Sealer implements it.
type sealer interface {
	// Seal encrypts plaintext so that it opens with the same context only.
	Seal(plaintext, context []byte) []byte
	// Open decrypts the result of Seal for the same context, or fails.
	Open(sealed, context []byte) ([]byte, error)
}

// idSource makes the ids of new endpoints, deliveries and events.
type idSource interface {
	Next() string
	Event() string
}

// Config configures a Service. DB, IDs and Seal are required.
type Config struct {
	DB  database
	IDs idSource

	// Seal encrypts signing secrets at rest.
	Seal sealer

	// Allow are address ranges that are otherwise forbidden for endpoints: for tests and intranets.
	Allow []netip.Prefix

	// Now returns the time. Defaults to time.Now.
	Now func() time.Time

	// Entropy is the source of secrets. It must be safe for concurrent use. Defaults to crypto/rand.
	Entropy io.Reader
}

// Service manages endpoints, events and deliveries for merchants. It sends nothing:
// internal/deliver does. It is safe for concurrent use.
type Service struct {
	db      database
	ids     idSource
	seal    sealer
	guard   ssrf.Guard
	now     func() time.Time
	entropy io.Reader
}

// New returns a Service. It starts nothing.
//
// Errors: fault.Invalid without DB, IDs or Seal.
func New(c Config) (*Service, error) {
	if c.DB == nil || c.IDs == nil || c.Seal == nil {
		return nil, fault.New(fault.Invalid, "config_invalid", "webhook.Config needs DB, IDs and Seal")
	}

	s := &Service{
		db:      c.DB,
		ids:     c.IDs,
		seal:    c.Seal,
		guard:   ssrf.New(c.Allow),
		now:     c.Now,
		entropy: c.Entropy,
	}

	if s.now == nil {
		s.now = time.Now
	}

	if s.entropy == nil {
		s.entropy = rand.Reader
	}

	return s, nil
}

// In returns the service with its operations in the caller's transaction: they read and write in it, and
// commit or roll back with it.
func (s *Service) In(tx Tx) *Service {
	in := *s
	in.db = joined{tx}

	return &in
}

// joined is a transaction in place of a database.
type joined struct{ Tx }

func (j joined) Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	return f(ctx, j.Tx)
}

func (s *Service) stamp() time.Time { return s.now().UTC() }
