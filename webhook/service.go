package webhook

import (
	"crypto/rand"
	"io"
	"net/netip"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/ssrf"
)

const (
	// MaxOverlap is the longest time that a rotated secret goes on signing, beside the new one.
	MaxOverlap = 168 * time.Hour
)

// Sealer encrypts secrets at rest. internal/seal.Sealer implements it.
type Sealer interface {
	// Seal encrypts plaintext so that it opens with the same context only.
	Seal(plaintext, context []byte) []byte
	// Open decrypts what Seal returned for the same context, or fails.
	Open(sealed, context []byte) ([]byte, error)
}

// IDs makes the ids of new endpoints, deliveries and events.
type IDs interface {
	Next() string
	Event() string
}

// Config configures a Service. DB, IDs and Seal are required.
type Config struct {
	DB  DB
	IDs IDs

	// Seal encrypts signing secrets at rest.
	Seal Sealer

	// Allow are otherwise forbidden address ranges that endpoints may be at: for tests and intranets.
	Allow []netip.Prefix

	// Now returns the time. Defaults to time.Now.
	Now func() time.Time

	// Entropy is the source of secrets. It must be safe for concurrent use. Defaults to crypto/rand.
	Entropy io.Reader
}

// Service manages endpoints, events and deliveries for merchants. It sends nothing:
// internal/deliver does. It is safe for concurrent use.
type Service struct {
	db      DB
	ids     IDs
	seal    Sealer
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

func (s *Service) stamp() time.Time { return s.now().UTC() }
