package payout

import (
	"context"
	"log/slog"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/paging"
)

// Config configures a Service. DB, Registry, Sender and IDs are required.
type Config struct {
	DB       database
	Registry *chain.Registry
	Sender   sender
	IDs      idSource

	// Price returns the fresh price of one unit of an asset in USD, for approvals above a sum. Defaults to
	// none: then every payout of an account with such a sum waits for approval.
	Price func(ctx context.Context, asset chain.Asset) (decimal.Decimal, error)

	// MaxFeeShare is a share of a payout's amount. A payout whose maximum network fee exceeds it needs a
	// person's approval, unless that fee is at most 5 USD or the request names it. Defaults to 0.5.
	MaxFeeShare decimal.Decimal

	// Seal authenticates payouts. Defaults to none: then whoever can write the database can have money sent.
	Seal authenticator

	// Spends returns what the bytes of a just signed transaction use up (keys of chain.Spend). Defaults to
	// nothing: no payout records it.
	Spends func(t wallet.Transaction) []string

	// Now returns the time. Defaults to time.Now.
	Now func() time.Time

	// Log defaults to slog.Default().
	Log *slog.Logger
}

// idSource makes the ids of new objects.
type idSource interface{ Next() string }

// Received is a confirmed payment in the form that refunds need.
type Received struct {
	PaymentID, InvoiceID string
	Network, AssetID     string
	Amount               chain.Amount
	Simulated            bool
}

// Service accepts payouts and refunds, and follows the transactions that pay them.
type Service struct {
	config   Config
	db       database
	registry *chain.Registry
	sender   sender
}

// New returns a Service. It starts nothing: the Sender does the work.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}

	if c.Log == nil {
		c.Log = slog.Default()
	}

	if c.MaxFeeShare.IsZero() {
		c.MaxFeeShare = decimal.RequireFromString("0.5")
	}

	return &Service{config: c, db: c.DB, registry: c.Registry, sender: c.Sender}
}

func (s *Service) now() time.Time { return s.config.Now().UTC().Truncate(time.Millisecond) }

// TransactionTx moves a payout, and the refund that it pays, to the status of their transaction.
func (s *Service) TransactionTx(ctx context.Context, tx Tx, t wallet.Transaction) error {
	if t.Kind != wallet.Payout {
		return nil
	}

	p, err := tx.PayoutByID(ctx, t.ObjectID)
	if err != nil {
		return err
	}

	before := p

	events, err := p.Follow(t, s.now())
	if err != nil {
		return err
	}

	spent := false
	if s.config.Spends != nil {
		if spent, err = s.spend(&p, s.config.Spends(t)); err != nil {
			return err
		}
	}

	if !spent && len(events) == 0 && p.Status == before.Status && p.TxHash == before.TxHash &&
		p.ReasonMessage == before.ReasonMessage && sameAmount(p.NetworkFee, before.NetworkFee) &&
		sameAmount(p.AmountDelivered, before.AmountDelivered) {
		return nil
	}

	if p.Status == Failed {
		if err := s.unreserveTx(ctx, tx, p, t); err != nil {
			return err
		}
	}

	if err := s.save(ctx, tx, &p, events...); err != nil {
		return err
	}

	if p.RefundID == "" {
		return nil
	}

	r, err := tx.RefundByID(ctx, p.RefundID)
	if err != nil {
		return err
	}

	return s.followTx(ctx, tx, r, p)
}

// unreserveTx ends the reservations of a failed payout, even if its network or asset is no longer served. A
// reverted payout's spending was deducted with its block, so its reservation ends once the balance at that
// block is read.
func (s *Service) unreserveTx(ctx context.Context, tx Tx, p Payout, t wallet.Transaction) error {
	balances, err := tx.Balances(ctx, p.Owner)
	if err != nil {
		return err
	}

	for _, b := range balances { // by asset, the order of locks
		if b.Network != p.Network || b.Address != t.Order.From.Address {
			continue
		}

		if err := s.sender.UnreserveTx(ctx, tx, b.Network, b.Address, b.AssetID, p.ID); err != nil {
			return err
		}
	}

	return nil
}

func sameAmount(a, b *chain.Amount) bool {
	if a == nil || b == nil {
		return a == b
	}

	return *a == *b
}

// save stores a payout with its events.
func (s *Service) save(ctx context.Context, tx Tx, p *Payout, types ...event.Type) error {
	p.Sequence += int64(len(types))
	if err := tx.PutPayout(ctx, p); err != nil {
		return err
	}

	return tx.AppendEvents(ctx, eventctx.About(*p, types...)...)
}

// Get returns a payout, or fault.NotFound.
func (s *Service) Get(ctx context.Context, owner event.Owner, id string) (Payout, error) {
	return s.db.Payout(ctx, owner, id)
}

// List returns a page of payouts, newest first, and whether there are more.
func (s *Service) List(ctx context.Context, f Filter) ([]Payout, bool, error) {
	limit := paging.Limit(f.Limit)
	f.Limit = limit + 1

	page, err := s.db.Payouts(ctx, f)

	return paging.Page(page, limit, err)
}
