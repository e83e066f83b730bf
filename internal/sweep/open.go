package sweep

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

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
	// spec D4.1
	known, err := tx.SettlementsOfPayments(ctx, []string{o.PaymentID})
	if err != nil {
		return settlement.Settlement{}, err
	}

	if len(known) > 0 {
		return s.reopenTx(ctx, tx, known[0], o)
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
	now, settlementID := s.now(), s.config.IDs.Next()

	out := settlement.Settlement{
		ID:               settlementID,
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
		FeeUSD:           settlementstate.FeeUSD(o.USDValue, settings.FeeBPS),
		NativePrice:      o.NativePrice,
		FeeSource:        settlement.FromMaster,
		Simulated:        o.Simulated,
		ConfirmedAt:      o.ConfirmedAt,
		CreatedAt:        id.CreatedAt(settlementID),
	}
	if o.Asset.Kind == chain.Native {
		out.FeeSource = settlement.FromDeposit
	}

	var err error
	if out.FeeNative, err = settlementstate.FeeNative(
		out.FeeUSD,
		o.NativePrice,
		native.Decimals,
	); err != nil {
		return settlement.Settlement{}, err
	}

	out.FeeCarried = out.FeeNative // nothing of it is paid yet
	if settings.AutoRelease {      // spec D4.2
		out.DueAt = now
	}

	return out, nil
}

// simulate releases a settlement without moving anything.
func simulate(s *settlement.Settlement, now time.Time) error { // spec D4.19
	net := s.Gross

	s.SweepID, s.SweepTx = "sim_"+s.ID, "sim_sweep_"+s.ID
	if err := settlementstate.Start(s, chain.Amount{}); err != nil {
		return err
	}

	if fee := s.FeeCarried; !fee.IsZero() {
		s.FeeTx = "sim_fee_" + s.ID
		settlementstate.Pay(s, fee)

		if s.FeeSource == settlement.FromDeposit {
			net = net.SubFloor(fee)
		}
	}

	return settlementstate.Release(s, net, now)
}
