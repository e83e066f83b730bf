// Package ingest records what arrives at our addresses. A batch of blocks (internal/follow) becomes payments,
// payments follow their transactions through the chain, invoices follow their payments.
//
// A batch is prepared before its transaction (batch.go: matched, prices read) and applied in it
// (intake.go: recorded, credited in credit.go, confirmed in confirm.go). ledger.go is what one
// transaction reads and changes. hint.go and simulate.go add single payments. balance.go watches the
// balances of all addresses, as often as balance_schedule.go says. unexplained.go records what no
// transfer shows, leftovers.go leaves out what our own transactions moved, attach.go attaches its
// transfer later. retry.go stores what failed with its batch, worker.go does what is due by time.
//
// The records and their state machines are package invoice's.
//
// It is one package because all ways in (block, pool, hint, balance) end in one record, written by one
// transaction.
package ingest

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Tx is one transaction of an Ingester. The records of settlements and wallets separate what our own
// transactions moved from what payments brought.
type Tx interface {
	invoice.Tx
	settlement.Reader
	wallet.Reader
	ResidueForUpdate(
		ctx context.Context,
		network string,
		address chain.Address,
	) (settlement.Residue, bool, error)
}

// DB is the Ingester's view of a store.
type DB interface {
	invoice.Reader
	scan.Reader
	wallet.Reader
	Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
}

// IDs generates the ids of new records.
type IDs interface{ Next() string }

// Config holds what an Ingester needs. All but Log are required.
type Config struct {
	DB       DB
	Registry *chain.Registry
	Rates    rate.Source
	IDs      IDs
	Now      func() time.Time

	// VerifyAddress returns the row of an address that this service wrote.
	VerifyAddress func(a invoice.Address) (invoice.VerifiedAddress, error)

	// Log defaults to none.
	Log *slog.Logger
}

// Ingester records what arrives at our addresses. It is safe for concurrent use.
type Ingester struct {
	db       DB
	registry *chain.Registry
	rates    rate.Source
	ids      IDs
	clock    func() time.Time
	verify   func(a invoice.Address) (invoice.VerifiedAddress, error)
	log      *slog.Logger

	mu sync.Mutex
	// The maps below are hints of this process alone, by network.

	// wanted are prices that a batch turned out to need.
	wanted map[string]map[pair]bool
	// suspects are blocks that are to be read again.
	suspects map[string]map[chain.Ref]rereadBlock
	// uses are what the transactions of payments spend, by hash.
	uses map[string]map[string]*use
	// budgets are what balance watching spent of the current second.
	budgets map[string]balanceBudget
	// unreadable names, by network, what was unreadable when balances were last compared.
	unreadable map[string]string

	// firstReads are the firstRead of networks.
	firstReads sync.Map
}

// New returns an Ingester. It starts nothing.
func New(c Config) *Ingester {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}

	return &Ingester{
		db:       c.DB,
		registry: c.Registry,
		rates:    c.Rates,
		ids:      c.IDs,
		clock:    c.Now,
		verify:   c.VerifyAddress,
		log:      c.Log,
		wanted:   map[string]map[pair]bool{},
		suspects: map[string]map[chain.Ref]rereadBlock{},
		uses:     map[string]map[string]*use{},
		budgets:  map[string]balanceBudget{},

		unreadable: map[string]string{},
	}
}

// now returns the time that records carry: UTC, in whole milliseconds, as it is stored and shown.
func (s *Ingester) now() time.Time { return s.clock().UTC().Truncate(time.Millisecond) }
