package settlement

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
)

// Config is what a Service needs. DB, Registry, IDs, Outbox and Process are required.
type Config struct {
	DB       DB
	Registry *chain.Registry
	Outbox   *txmgr.Outbox
	IDs      *id.Source
	// Now tells the time. Defaults to time.Now.
	Now func() time.Time
	// Log defaults to slog.Default().
	Log *slog.Logger
	// Process names this process in leases, for people.
	Process string
	// FeeAddresses receive the platform fee, by network slug. On a network without one the fee is
	// carried until there is one.
	FeeAddresses map[string]chain.Address
	// Outputs returns the outputs that hold payments, by payment id. It is asked on networks that
	// spend outputs only.
	Outputs func(ctx context.Context, r Reader, paymentIDs []string) (map[string]chain.Outpoint, error)
	// SignWithin is how long a release transaction may wait for its signature before it is given up
	// and the release planned again. Defaults to 30 minutes.
	SignWithin time.Duration
	// LeaseFor is how long a network's planning stays taken after a process died in it. Defaults to 1 minute.
	LeaseFor time.Duration
}

// Service releases settlements. It is safe for concurrent use, by any number of processes over one store.
type Service struct {
	config   Config
	db       DB
	registry *chain.Registry
	outbox   *txmgr.Outbox
}

// New returns a service. It starts nothing; the engine calls Step.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}

	if c.Log == nil {
		c.Log = slog.Default()
	}

	if c.SignWithin <= 0 {
		c.SignWithin = 30 * time.Minute
	}

	if c.LeaseFor <= 0 {
		c.LeaseFor = time.Minute
	}

	return &Service{config: c, db: c.DB, registry: c.Registry, outbox: c.Outbox}
}

func (s *Service) now() time.Time { return s.config.Now().UTC().Truncate(time.Millisecond) }

// Opening is a confirmed payment that has a price.
type Opening struct {
	Owner                                  event.Owner
	PaymentID, InvoiceID, DepositAddressID string
	Network                                string // slug
	Asset                                  chain.Asset
	// Deposit holds the money.
	Deposit chain.Party
	// Gross is the payment, in base units of Asset.
	Gross chain.Amount
	// USDValue is what it was worth at confirmation, NativePrice the USD price of one whole native
	// coin in the same snapshot.
	USDValue, NativePrice decimal.Decimal
	ConfirmedAt           time.Time
	Simulated             bool
}

// OpenTx opens the settlement of a payment, in the transaction that confirms it or gives it its
// price. A payment has one settlement: opening it again returns the same one, brought back when the
// payment had left the chain. A simulated one is released at once.
func (s *Service) OpenTx(ctx context.Context, tx Tx, o Opening) (Settlement, error) {
	known, err := tx.SettlementsOfPayments(ctx, []string{o.PaymentID})
	if err != nil {
		return Settlement{}, err
	}

	if len(known) > 0 {
		return s.reopenTx(ctx, tx, known[0])
	}

	settings, err := tx.SettlementSettings(ctx, o.Owner.AccountID)
	if err != nil {
		return Settlement{}, err
	}

	opened, err := s.open(o, settings)
	if err != nil {
		return Settlement{}, err
	}

	if !o.Simulated {
		return opened, tx.PutSettlements(ctx, &opened)
	}

	if err := simulate(&opened, s.now()); err != nil {
		return Settlement{}, err
	}

	return opened, s.putTx(ctx, tx, &opened, event.SettlementReleased)
}

func (s *Service) open(o Opening, settings Settings) (Settlement, error) {
	n, ok := s.registry.Network(o.Network)
	if !ok {
		return Settlement{}, fault.New(
			fault.NotFound, "network_unknown", "network %q is not enabled here",
			o.Network,
		)
	}

	native, _ := n.Native()
	now := s.now()

	out := Settlement{
		ID:               s.config.IDs.Next(),
		Owner:            o.Owner,
		Status:           Pending,
		PaymentID:        o.PaymentID,
		InvoiceID:        o.InvoiceID,
		DepositAddressID: o.DepositAddressID,
		Network:          o.Network,
		Asset:            o.Asset.Symbol,
		AssetID:          o.Asset.ID,
		NativeAsset:      native.Symbol,
		Deposit:          o.Deposit,
		Gross:            o.Gross,
		USDValue:         o.USDValue,
		FeeBPS:           settings.FeeBPS,
		FeeUSD:           FeeUSD(o.USDValue, settings.FeeBPS),
		NativePrice:      o.NativePrice,
		FeeSource:        FromMaster,
		Simulated:        o.Simulated,
		ConfirmedAt:      o.ConfirmedAt,
		CreatedAt:        now,
	}
	if o.Asset.Kind == chain.Native {
		out.FeeSource = FromDeposit
	}

	var err error
	if out.FeeNative, err = FeeNative(out.FeeUSD, o.NativePrice, native.Decimals); err != nil {
		return Settlement{}, err
	}

	out.FeeCarried = out.FeeNative // nothing of it is paid yet
	if settings.AutoRelease {
		out.DueAt = now
	}

	return out, nil
}

// simulate takes a settlement through its release without moving anything.
func simulate(s *Settlement, now time.Time) error {
	net := s.Gross

	s.ReleaseID, s.SweepTx = "sim_"+s.ID, "sim_sweep_"+s.ID
	if err := s.Start(chain.Amount{}); err != nil {
		return err
	}

	if fee := s.FeeCarried; !fee.IsZero() {
		s.FeeTx = "sim_fee_" + s.ID
		s.Pay(fee)

		if s.FeeSource == FromDeposit {
			net = net.SubFloor(fee)
		}
	}

	return s.Release(net, now)
}

// reopenTx brings back a settlement whose payment confirmed again.
func (s *Service) reopenTx(ctx context.Context, tx Tx, old Settlement) (Settlement, error) {
	if old.Status != Reverted && (old.Status != Failed || old.Reason != PaymentOrphaned) {
		return old, nil
	}

	if old.Simulated {
		if err := old.Return(false, false, time.Time{}); err != nil {
			return Settlement{}, err
		}

		old.Unpay(old.FeePaid)

		if err := simulate(&old, s.now()); err != nil {
			return Settlement{}, err
		}

		return old, s.putTx(ctx, tx, &old, event.SettlementReleased)
	}

	r, running, err := s.releaseTx(ctx, tx, old)
	if err != nil {
		return Settlement{}, err
	}
	// A release that still runs, or whose sweep stands after all, has moved or will move this
	// deposit: it must not be planned a second time.
	keep := running && (!r.Done || r.swept())

	due := s.now()
	if keep {
		due = time.Time{}
	}

	if err := old.Return(false, keep, due); err != nil {
		return Settlement{}, err
	}

	if !keep {
		return old, tx.PutSettlements(ctx, &old)
	}

	if err := old.Start(chain.Amount{}); err != nil {
		return Settlement{}, err
	}

	if !r.swept() {
		r.DueAt = s.now() // it waited for this payment
		if err := tx.PutRelease(ctx, &r); err != nil {
			return Settlement{}, err
		}

		return old, tx.PutSettlements(ctx, &old)
	}

	net, err := netAgain(ctx, tx, &r, old.ID)
	if err != nil {
		return Settlement{}, err
	}

	if err := old.Release(net, s.now()); err != nil {
		return Settlement{}, err
	}

	return old, s.putTx(ctx, tx, &old, event.SettlementReleased)
}

// netAgain is what a settlement brought whose sweep stood while its payment was thought lost.
func netAgain(ctx context.Context, tx Tx, r *Release, settlementID string) (chain.Amount, error) {
	sweep, err := tx.Transaction(ctx, r.last().TransactionID)
	if err != nil {
		return chain.Amount{}, err
	}

	g, err := tx.SettlementsByID(ctx, r.SettlementIDs)
	if err != nil {
		return chain.Amount{}, err
	}

	net := group(g).net(r.arrived(sweep))

	return net[slices.IndexFunc(g, func(s Settlement) bool { return s.ID == settlementID })], nil
}

// releaseTx returns the release that a settlement is or was in; ok is false without one.
func (s *Service) releaseTx(ctx context.Context, tx Tx, of Settlement) (r Release, ok bool, err error) {
	if of.ReleaseID == "" {
		return Release{}, false, nil
	}

	r, err = tx.Release(ctx, of.ReleaseID)
	if err != nil {
		return Release{}, false, err
	}

	return r, slices.Contains(r.SettlementIDs, of.ID), nil
}

// PaymentLostTx says that a payment left the chain, in the transaction that records it. What was
// not released yet fails as payment_orphaned, what was is reverted; both come back when the payment
// confirms again.
func (s *Service) PaymentLostTx(ctx context.Context, tx Tx, paymentID string) error {
	found, err := tx.SettlementsOfPayments(ctx, []string{paymentID})
	if err != nil || len(found) == 0 {
		return err
	}

	lost := found[0]
	switch lost.Status {
	case Released:
		if err := lost.Revert(PaymentOrphaned); err != nil {
			return err
		}

		return s.putTx(ctx, tx, &lost, event.SettlementReverted)
	case Reverted:
		if err := lost.Revert(PaymentOrphaned); err != nil {
			return err
		}

		return tx.PutSettlements(ctx, &lost)
	case Pending, Held, Releasing:
	default:
		return nil
	}

	r, in, err := s.releaseTx(ctx, tx, lost)
	if err != nil {
		return err
	}

	if err := lost.Fail(PaymentOrphaned, s.now(), time.Time{}); err != nil {
		return err
	}
	// Alone in a release of which something is signed, it stays in it: those bytes may be included
	// when the payment is, and what they take belongs to this settlement.
	alone := len(r.SettlementIDs) == 1 && r.started()
	if in && !r.Done && !r.sweeps() && !alone {
		return s.detachTx(ctx, tx, r, lost)
	}

	return s.putTx(ctx, tx, &lost, event.SettlementFailed)
}

// detachTx takes a lost settlement out of a release that has not made its sweep yet. The others go
// on; when there are none, so does the release: what is queued is canceled.
func (s *Service) detachTx(ctx context.Context, tx Tx, r Release, lost Settlement) error {
	carried := lost.CarryOut()
	r.leave(&lost)

	lost.ReleaseID = ""
	if err := s.putTx(ctx, tx, &lost, event.SettlementFailed); err != nil {
		return err
	}

	r.SettlementIDs = slices.DeleteFunc(
		slices.Clone(r.SettlementIDs), func(id string) bool { return id == lost.ID },
	)
	r.Amount = r.Amount.Sub(lost.Gross)

	last := len(r.SettlementIDs) == 0
	if !last {
		rest, err := tx.SettlementsByID(ctx, r.SettlementIDs)
		if err != nil {
			return err
		}

		if !carried.IsZero() {
			rest[0].CarryIn(carried)

			if err := tx.PutSettlements(ctx, &rest[0]); err != nil {
				return err
			}
		}

		if !r.Fee.IsZero() && !r.paysFee() {
			r.Fee = group(rest).fee()
			if !r.started() {
				r.Fee = r.Fee.Add(r.CarryIn)
			}
		}
	}

	if last && !carried.IsZero() {
		row, err := tx.Carry(ctx, r.Owner, r.Network)
		if err != nil {
			return err
		}

		row.Amount = row.Amount.Add(carried)
		if err := tx.PutCarry(ctx, &row); err != nil {
			return err
		}
	}

	if err := tx.PutRelease(ctx, &r); err != nil {
		return err
	}
	// What is queued was planned for more than is left now. The fact of its cancellation ends the release.
	if step := r.last(); step != nil && step.State == wallet.Queued {
		_, err := s.outbox.CancelTx(ctx, tx, step.TransactionID)
		return err
	}
	// What is signed goes on: a top-up is booked as residue, and the worker ends a release that
	// nobody is left in.
	return nil
}

// putTx stores a settlement and tells of it.
func (s *Service) putTx(ctx context.Context, tx Tx, of *Settlement, t event.Type) error {
	of.Sequence++
	if err := tx.PutSettlements(ctx, of); err != nil {
		return err
	}

	return tx.AppendEvents(ctx, event.Event{
		Owner:     of.Owner,
		Type:      t,
		ObjectID:  of.ID,
		InvoiceID: of.InvoiceID,
		PaymentID: of.PaymentID,
		Sequence:  of.Sequence,
		Subject:   *of,
	})
}

// Get returns a settlement, or fault.NotFound with code resource_missing.
func (s *Service) Get(ctx context.Context, owner event.Owner, settlementID string) (Settlement, error) {
	return s.db.Settlement(ctx, owner, settlementID)
}

// List returns a page, newest first, and whether there is more.
func (s *Service) List(ctx context.Context, f Filter) (page []Settlement, more bool, err error) {
	limit := f.Limit
	f.Limit = limit + 1

	page, err = s.db.Settlements(ctx, f)
	if err != nil {
		return nil, false, err
	}

	if len(page) > limit {
		return page[:limit], true, nil
	}

	return page, false, nil
}

// OfPayments returns the settlements of payments, in any order.
func (s *Service) OfPayments(ctx context.Context, paymentIDs []string) ([]Settlement, error) {
	return s.db.SettlementsOfPayments(ctx, paymentIDs)
}

// ReleaseNow puts settlements that wait for an operator (account setting auto_release false) or for
// a later planning run into the next one. One in another status is fault.State with code
// settlement_state, and none is touched.
func (s *Service) ReleaseNow(ctx context.Context, owner event.Owner, settlementIDs ...string) error {
	settlementIDs = slices.Sorted(slices.Values(settlementIDs))

	return s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		for _, settlementID := range settlementIDs {
			found, err := tx.Settlement(ctx, owner, settlementID)
			if err != nil {
				return err
			}

			if found.Status != Pending && found.Status != Held {
				return found.refuse("be put into the next planning run")
			}

			if found.ReleaseID != "" {
				continue // is on its way
			}

			found.DueAt = s.now()
			if err := tx.PutSettlements(ctx, &found); err != nil {
				return err
			}
		}

		return nil
	})
}

// Retry puts a failed settlement back into the queue, for an operator. What was paid is not paid again.
func (s *Service) Retry(ctx context.Context, owner event.Owner, settlementID string) (Settlement, error) {
	var out Settlement

	err := s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		found, err := tx.Settlement(ctx, owner, settlementID)
		if err != nil {
			return err
		}

		if found.Status != Failed || found.Reason == PaymentOrphaned {
			// An orphaned payment has no money to release; it comes back when it confirms.
			return found.refuse("be retried")
		}

		r, in, err := s.releaseTx(ctx, tx, found)
		if err != nil {
			return err
		}

		if in && !r.Done {
			return found.refuse("be retried while transactions of its release may still be included")
		}

		if err := found.Return(true, false, s.now()); err != nil {
			return err
		}

		if err := tx.PutSettlements(ctx, &found); err != nil {
			return err
		}

		out = found

		return nil
	})

	return out, err
}
