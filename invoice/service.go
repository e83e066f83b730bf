package invoice

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/paging"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// ErrUnprepared is returned when a transaction needs a price that was not read before it began. Prepare the
// same batch again: it then reads the missing price.
var ErrUnprepared error = fault.New(
	fault.Unavailable, "price_unprepared", "a price is needed that was not prepared",
)

// keySource returns the public keys that addresses are derived from. Every chain.Signer implements it.
type keySource interface {
	PublicKey(ctx context.Context, key chain.KeyRef) (chain.PublicKey, error)
}

// idSource generates the ids of new records.
type idSource interface{ Next() string }

// Config holds what a Service needs. DB, Registry, Rates, Keys, IDs and Ingester are required.
type Config struct {
	DB       database
	Registry *chain.Registry
	Rates    rate.Source
	Keys     keySource
	IDs      idSource
	Ingester ingester

	// Now returns the current time. Defaults to time.Now.
	Now func() time.Time

	// QuoteFor is how long a quote holds. Defaults to 20 minutes.
	QuoteFor time.Duration // spec D2.2.8

	// Reserve is how many numbers and derivation indexes a process reserves at a time. Unused ones
	// become gaps when it ends. Defaults to 64.
	Reserve int

	// Ahead returns addresses of a network that were derived in advance; ok is false when there is none.
	// Defaults to none: each request derives its own.
	Ahead interface {
		Take(network string) (address chain.Party, ok bool)
	}

	// Deposits is how many deposit addresses an account may make in a mode. Defaults to no limit.
	Deposits int

	// Seal authenticates addresses. Defaults to none: then whoever can write the database decides who owns an
	// address.
	Seal authenticator

	// Entropy is the source of checkout tokens, for tests only. Defaults to crypto/rand.
	Entropy io.Reader
}

// ingester records payments to invoices and deposit addresses. The engine injects it.
type ingester interface {
	// FirstCheck returns when the balances of an address that is new on a network are compared first.
	FirstCheck(ctx context.Context, r scan.CursorReader, network string) (time.Time, error)

	// PrepareHint looks up a transaction that is said to pay an invoice. A network that does not answer is
	// fault.Unavailable unless the transaction was found on another one.
	PrepareHint(ctx context.Context, invoiceID, txHash string) (Commit[HintResult], error)

	// PrepareDepositHint is PrepareHint for an owner's deposit address.
	PrepareDepositHint(
		ctx context.Context,
		owner event.Owner,
		depositID, txHash string,
	) (Commit[HintResult], error)

	// PrepareSimulate prepares a payment without a network transaction. s selects the option that it pays, if
	// that option is not selected yet.
	PrepareSimulate(ctx context.Context, s *Service, p SimulateParams) (Commit[Simulated], error)
}

// Commit stores a prepared change in a transaction.
type Commit[T any] func(ctx context.Context, tx Tx) (T, error)

// Service creates, shows and moves invoices, payments and deposit addresses. It is safe for concurrent use.
type Service struct {
	db       database
	registry *chain.Registry
	rates    rate.Source
	keys     keySource
	ids      idSource
	clock    func() time.Time
	intake   ingester
	quoteFor time.Duration
	deposits int
	seal     authenticator
	entropy  io.Reader
	numbers  *sequences
	ahead    interface {
		Take(network string) (address chain.Party, ok bool)
	}
	verified *verifiedAddresses
	seen     *seenSettings
}

// New returns a service. It starts nothing.
func New(c Config) *Service {
	if c.QuoteFor <= 0 {
		c.QuoteFor = quoteFor
	}

	if c.Reserve <= 0 {
		c.Reserve = 64
	}

	if c.Now == nil {
		c.Now = time.Now
	}

	if c.Entropy == nil {
		c.Entropy = rand.Reader
	}

	return &Service{
		db:       c.DB,
		registry: c.Registry,
		rates:    c.Rates,
		keys:     c.Keys,
		ids:      c.IDs,
		clock:    c.Now,
		intake:   c.Ingester,
		quoteFor: c.QuoteFor,
		deposits: c.Deposits,
		seal:     c.Seal,
		entropy:  c.Entropy,
		ahead:    c.Ahead,
		verified: &verifiedAddresses{},
		seen:     &seenSettings{},
		numbers:  &sequences{db: c.DB, size: c.Reserve, counters: map[string]*sequence{}},
	}
}

// In returns the service with its operations in the caller's transaction: they read and write in it, and
// commit or roll back with it.
func (s *Service) In(tx Tx) *Service {
	in := *s
	in.db, in.seen = joined{tx}, &seenSettings{} // a read there may be rolled back

	return &in
}

// joined is a transaction in place of a database.
type joined struct{ Tx }

func (j joined) Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	return f(ctx, j.Tx)
}

// now returns the time that records carry: UTC, in whole milliseconds, as it is stored and shown.
func (s *Service) now() time.Time { return s.clock().UTC().Truncate(time.Millisecond) }

// Get returns an invoice of an owner, or fault.NotFound.
func (s *Service) Get(ctx context.Context, owner event.Owner, id string) (Invoice, error) {
	return s.read(ctx, s.db, &owner, id)
}

// GetByID returns an invoice to callers without an owner, such as the checkout page, or fault.NotFound.
func (s *Service) GetByID(ctx context.Context, id string) (Invoice, error) {
	return s.read(ctx, s.db, nil, id)
}

// Shown returns an invoice that was read elsewhere, after verifying that its addresses were made for it.
//
// Errors: fault.Unavailable, code invoice_damaged or secret_key_unknown.
func (s *Service) Shown(ctx context.Context, inv Invoice) (Invoice, error) {
	return inv, s.verifyShown(ctx, s.db, inv)
}

// List returns a page of invoices, newest first, and whether there are more.
func (s *Service) List(ctx context.Context, f Filter) ([]Invoice, bool, error) {
	limit := paging.Limit(f.Limit)
	f.Limit = limit + 1

	page, err := s.db.Invoices(ctx, f)
	if err == nil {
		err = s.verifyShown(ctx, s.db, page...)
	}

	return paging.Page(page, limit, err)
}

// Payment returns a payment of an owner, or fault.NotFound. If its address was not made for the object that
// it pays, it is fault.Unavailable, code payment_damaged.
func (s *Service) Payment(ctx context.Context, owner event.Owner, id string) (Payment, error) {
	p, err := s.db.Payment(ctx, owner, id)
	if err == nil {
		err = s.verifyPayments(ctx, s.db, p)
	}

	if err != nil {
		return Payment{}, err
	}

	return p, nil
}

// ListPayments returns a page of payments, newest first, and whether there are more. Errors are those of Payment.
func (s *Service) ListPayments(ctx context.Context, f PaymentFilter) ([]Payment, bool, error) {
	limit := paging.Limit(f.Limit)
	f.Limit = limit + 1

	page, err := s.db.Payments(ctx, f)
	if err == nil {
		err = s.verifyPayments(ctx, s.db, page...)
	}

	return paging.Page(page, limit, err)
}
