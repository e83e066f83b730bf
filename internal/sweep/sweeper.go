// Package sweep releases settlements: what was paid goes from deposit addresses to master wallets.
//
// A planning run (worker.go) picks what is eligible, groups it (planner.go, pure), plans its transactions
// and stores them (plan.go). When one of them moves, a release update (release.go) moves the release and
// its settlements, and books who bears which cost (booking.go): everything sums to the base unit.
//
// The records and the state machine of a settlement are package settlement's.
package sweep

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
	"github.com/seed-8ee7f392/payments/settlement"
)

// Config is what a Sweeper needs. DB, Registry, IDs, Outbox and Process are required.
type Config struct {
	DB       settlement.DB
	Registry *chain.Registry
	Outbox   *txmgr.Manager
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
	Outputs func(ctx context.Context, paymentIDs []string) (map[string]chain.Outpoint, error)
	// SignWithin is how long a release transaction may wait for its signature before it is given up
	// and the release planned again. Defaults to 30 minutes.
	SignWithin time.Duration
	// LeaseFor is how long a network's planning stays taken after a process died in it. Defaults to 1 minute.
	LeaseFor time.Duration
}

// Sweeper releases settlements. It is safe for concurrent use, by any number of processes over one store.
type Sweeper struct {
	config   Config
	db       settlement.DB
	registry *chain.Registry
	outbox   *txmgr.Manager
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

	if c.LeaseFor <= 0 {
		c.LeaseFor = time.Minute
	}

	return &Sweeper{config: c, db: c.DB, registry: c.Registry, outbox: c.Outbox}
}

func (s *Sweeper) now() time.Time { return s.config.Now().UTC().Truncate(time.Millisecond) }

// OpenParams is a confirmed payment that has a price.
type OpenParams struct {
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
func (s *Sweeper) OpenTx(ctx context.Context, tx settlement.Tx, o OpenParams) (settlement.Settlement, error) {
	known, err := tx.SettlementsOfPayments(ctx, []string{o.PaymentID})
	if err != nil {
		return settlement.Settlement{}, err
	}

	if len(known) > 0 {
		return s.reopenTx(ctx, tx, known[0])
	}

	settings, err := tx.SettlementSettings(ctx, o.Owner.AccountID)
	if err != nil {
		return settlement.Settlement{}, err
	}

	opened, err := s.open(o, settings)
	if err != nil {
		return settlement.Settlement{}, err
	}

	if !o.Simulated {
		return opened, tx.PutSettlements(ctx, &opened)
	}

	if err := simulate(&opened, s.now()); err != nil {
		return settlement.Settlement{}, err
	}

	return opened, s.putTx(ctx, tx, &opened, event.SettlementReleased)
}

func (s *Sweeper) open(o OpenParams, settings settlement.Settings) (settlement.Settlement, error) {
	n, ok := s.registry.Network(o.Network)
	if !ok {
		return settlement.Settlement{}, fault.New(
			fault.NotFound, "network_unknown", "network %q is not enabled here",
			o.Network,
		)
	}

	native, _ := n.Native()
	now := s.now()

	out := settlement.Settlement{
		ID:               s.config.IDs.Next(),
		Owner:            o.Owner,
		Status:           settlement.Pending,
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
		FeeUSD:           settlement.FeeUSD(o.USDValue, settings.FeeBPS),
		NativePrice:      o.NativePrice,
		FeeSource:        settlement.FromMaster,
		Simulated:        o.Simulated,
		ConfirmedAt:      o.ConfirmedAt,
		CreatedAt:        now,
	}
	if o.Asset.Kind == chain.Native {
		out.FeeSource = settlement.FromDeposit
	}

	var err error
	if out.FeeNative, err = settlement.FeeNative(out.FeeUSD, o.NativePrice, native.Decimals); err != nil {
		return settlement.Settlement{}, err
	}

	out.FeeCarried = out.FeeNative // nothing of it is paid yet
	if settings.AutoRelease {
		out.DueAt = now
	}

	return out, nil
}

// simulate takes a settlement through its release without moving anything.
func simulate(s *settlement.Settlement, now time.Time) error {
	net := s.Gross

	s.ReleaseID, s.SweepTx = "sim_"+s.ID, "sim_sweep_"+s.ID
	if err := s.Start(chain.Amount{}); err != nil {
		return err
	}

	if fee := s.FeeCarried; !fee.IsZero() {
		s.FeeTx = "sim_fee_" + s.ID
		s.Pay(fee)

		if s.FeeSource == settlement.FromDeposit {
			net = net.SubFloor(fee)
		}
	}

	return s.Release(net, now)
}

// reopenTx brings back a settlement whose payment confirmed again.
func (s *Sweeper) reopenTx(
	ctx context.Context,
	tx settlement.Tx,
	old settlement.Settlement,
) (settlement.Settlement, error) {
	if old.Status != settlement.Reverted &&
		(old.Status != settlement.Failed || old.Reason != settlement.PaymentOrphaned) {
		return old, nil
	}

	if old.Simulated {
		if err := old.Return(false, false, time.Time{}); err != nil {
			return settlement.Settlement{}, err
		}

		old.Unpay(old.FeePaid)

		if err := simulate(&old, s.now()); err != nil {
			return settlement.Settlement{}, err
		}

		return old, s.putTx(ctx, tx, &old, event.SettlementReleased)
	}

	r, running, err := releaseOf(ctx, tx, old)
	if err != nil {
		return settlement.Settlement{}, err
	}
	// A release that still runs, or whose sweep stands after all, has moved or will move this
	// deposit: it must not be planned a second time.
	keep := running && (!r.Done || isSwept(&r))

	due := s.now()
	if keep {
		due = time.Time{}
	}

	if err := old.Return(false, keep, due); err != nil {
		return settlement.Settlement{}, err
	}

	if !keep {
		return old, tx.PutSettlements(ctx, &old)
	}

	if err := old.Start(chain.Amount{}); err != nil {
		return settlement.Settlement{}, err
	}

	if !isSwept(&r) {
		r.DueAt = s.now() // it waited for this payment
		if err := tx.PutRelease(ctx, &r); err != nil {
			return settlement.Settlement{}, err
		}

		return old, tx.PutSettlements(ctx, &old)
	}

	net, err := recomputeNet(ctx, tx, &r, old.ID)
	if err != nil {
		return settlement.Settlement{}, err
	}

	if err := old.Release(net, s.now()); err != nil {
		return settlement.Settlement{}, err
	}

	return old, s.putTx(ctx, tx, &old, event.SettlementReleased)
}

// recomputeNet is what a settlement brought whose sweep stood while its payment was thought lost.
func recomputeNet(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Release,
	settlementID string,
) (chain.Amount, error) {
	sweep, err := tx.Transaction(ctx, lastStep(r).TransactionID)
	if err != nil {
		return chain.Amount{}, err
	}

	g, err := tx.SettlementsByID(ctx, r.SettlementIDs)
	if err != nil {
		return chain.Amount{}, err
	}

	net := group(g).net(arrivedBy(r, sweep))

	return net[slices.IndexFunc(g, func(s settlement.Settlement) bool { return s.ID == settlementID })], nil
}

// releaseOf returns the release that a settlement is or was in; ok is false without one.
func releaseOf(
	ctx context.Context,
	tx settlement.Tx,
	of settlement.Settlement,
) (r settlement.Release, ok bool, err error) {
	if of.ReleaseID == "" {
		return settlement.Release{}, false, nil
	}

	r, err = tx.Release(ctx, of.ReleaseID)
	if err != nil {
		return settlement.Release{}, false, err
	}

	return r, slices.Contains(r.SettlementIDs, of.ID), nil
}

// PaymentLostTx says that a payment left the chain, in the transaction that records it. What was
// not released yet fails as payment_orphaned, what was is reverted; both come back when the payment
// confirms again.
func (s *Sweeper) PaymentLostTx(ctx context.Context, tx settlement.Tx, paymentID string) error {
	found, err := tx.SettlementsOfPayments(ctx, []string{paymentID})
	if err != nil || len(found) == 0 {
		return err
	}

	lost := found[0]
	switch lost.Status {
	case settlement.Released:
		if err := lost.Revert(settlement.PaymentOrphaned); err != nil {
			return err
		}

		return s.putTx(ctx, tx, &lost, event.SettlementReverted)
	case settlement.Reverted:
		if err := lost.Revert(settlement.PaymentOrphaned); err != nil {
			return err
		}

		return tx.PutSettlements(ctx, &lost)
	case settlement.Pending, settlement.Held, settlement.Releasing:
	default:
		return nil
	}

	r, in, err := releaseOf(ctx, tx, lost)
	if err != nil {
		return err
	}

	if err := lost.Fail(settlement.PaymentOrphaned, s.now(), time.Time{}); err != nil {
		return err
	}
	// Alone in a release of which something is signed, it stays in it: those bytes may be included
	// when the payment is, and what they take belongs to this settlement.
	alone := len(r.SettlementIDs) == 1 && isStarted(&r)
	if in && !r.Done && !hasLiveSweep(&r) && !alone {
		return s.detachTx(ctx, tx, r, lost)
	}

	return s.putTx(ctx, tx, &lost, event.SettlementFailed)
}

// detachTx takes a lost settlement out of a release that has not made its sweep yet. The others go
// on; when there are none, so does the release: what is queued is canceled.
func (s *Sweeper) detachTx(
	ctx context.Context,
	tx settlement.Tx,
	r settlement.Release,
	lost settlement.Settlement,
) error {
	carried := lost.CarryOut()
	payDetached(&r, &lost)

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

		if !r.Fee.IsZero() && !hasLiveFee(&r) {
			r.Fee = group(rest).fee()
			if !isStarted(&r) {
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
	if step := lastStep(&r); step != nil && step.State == wallet.Queued {
		_, err := s.outbox.CancelTx(ctx, tx, step.TransactionID)
		return err
	}
	// What is signed goes on: a top-up is booked as residue, and the worker ends a release that
	// nobody is left in.
	return nil
}

// putTx stores a settlement and tells of it.
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
