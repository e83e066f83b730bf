// Package sweep releases settlements: confirmed payments go from deposit addresses to master wallets.
//
// A planning run (planningrun.go) picks what is eligible and groups it (group.go). It has the driver plan the
// transactions (steps.go) and stores a release with the first of them (start.go) or the next (resume.go).
// When a transaction moves, a release update (sweepupdate.go) moves the release and its settlements.
// fees.go and residue.go split the costs; everything sums to the base unit.
//
// The records and the state machine of a settlement are package settlement's.
//
// It is one package because a release, its settlements and what is left at an address change in one transaction.
package sweep

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/settlement"
)

// DB is this package's view of a store.
type DB interface {
	settlement.Reader
	wallet.Reader
	Update(ctx context.Context, f func(ctx context.Context, tx settlement.Tx) error) error
}

// Config is what a Sweeper needs. DB, Registry, IDs and Outbox are required.
type Config struct {
	DB       DB
	Registry *chain.Registry
	Outbox   *txmgr.Manager
	IDs      *id.Source
	// Now returns the time. Defaults to time.Now.
	Now func() time.Time
	// Log defaults to slog.Default().
	Log *slog.Logger
	// Process names this process in the default of Heartbeat.
	Process string
	// FeeAddresses receive the platform fee, by network slug. On a network without one the fee is
	// carried until there is one.
	FeeAddresses map[string]chain.Address
	// Outputs returns the outputs that hold payments, by payment id. It is asked on networks that
	// spend outputs only.
	Outputs func(ctx context.Context, paymentIDs []string) (map[string]chain.Outpoint, error)
	// Unread returns since when payments to addresses of a network wait for their block or balances to be read. It
	// is asked when settlements are due. Defaults to none.
	Unread func(ctx context.Context, network string) (map[chain.Address]time.Time, error)
	// Price returns the fresh price of an asset in USD. It is asked for what a token's release costs. Without one, the
	// newest price on record with its settlements counts.
	Price func(ctx context.Context, asset chain.Asset) (decimal.Decimal, error)
	// SignWithin is how long a release transaction may wait for its signature before it is given up
	// and the release planned again. Defaults to 30 minutes.
	SignWithin time.Duration
	// Heartbeat owns the leases. Defaults to one of its own, which beats whenever it is asked for an owner.
	Heartbeat *heartbeat.Heartbeat
}

// Sweeper releases settlements. It is safe for concurrent use, by any number of processes over one store.
type Sweeper struct {
	config   Config
	db       DB
	registry *chain.Registry
	outbox   *txmgr.Manager
	// refusals are the times when this process first saw a release refused, by settlement or release id.
	refusals sync.Map
	// persons are the settlements that this process saw wait for a person, by id; see Waiting.
	persons sync.Map
	// disputes are the releases about which nodes disagreed when this process planned them last; see Waiting.
	disputes txmgr.Disputes
	// piling is whether the last look found that transactions pile up, by network.
	piling sync.Map
}

// New returns a sweeper. It starts nothing; the engine calls Step.
func New(c Config) *Sweeper {
	if c.Now == nil {
		c.Now = time.Now
	}

	if c.Log == nil {
		c.Log = slog.Default()
	}

	if c.SignWithin <= 0 {
		c.SignWithin = 30 * time.Minute
	}

	if c.Heartbeat == nil {
		c.Heartbeat = heartbeat.New(heartbeat.Config{
			DB:      heartbeat.Over(c.DB.Update),
			Process: c.Process,
			NewID:   c.IDs.Next,
			Now:     c.Now,
		})
	}

	return &Sweeper{config: c, db: c.DB, registry: c.Registry, outbox: c.Outbox}
}

func (s *Sweeper) now() time.Time { return s.config.Now().UTC().Truncate(time.Millisecond) }

// putSweep stores a release. It is due at once when none of its transactions is under way, unless it was postponed.
// One that is over takes back the stake that it delegated.
func (s *Sweeper) putSweep(ctx context.Context, tx settlement.Tx, r *settlement.Sweep) error {
	if err := s.undelegateAll(ctx, tx, r); err != nil {
		return err
	}

	switch {
	case r.Done || isRunning(r):
		r.DueAt = time.Time{}
	case r.DueAt.IsZero():
		r.DueAt = s.now()
	}

	return tx.PutSweep(ctx, r)
}

// putTx stores a settlement with its next sequence and appends its event.
func (s *Sweeper) putTx(
	ctx context.Context,
	tx settlement.Tx,
	of *settlement.Settlement,
	t event.Type,
) error {
	of.Sequence++
	if err := tx.PutSettlements(ctx, of); err != nil {
		return err
	}

	return tx.AppendEvents(ctx, eventctx.About(*of, t)...)
}
