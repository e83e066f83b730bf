package invoice

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// Outcome is what a simulated payment shall lead to.
type Outcome string

// The outcomes: of invoices detected, paid, underpaid, overpaid, late, orphaned and dropped; of
// deposit addresses detected, confirmed, orphaned and dropped.
const (
	SimulateDetected  Outcome = "detected"
	SimulateConfirmed Outcome = "confirmed"
	SimulatePaid      Outcome = "paid"
	SimulateUnderpaid Outcome = "underpaid"
	SimulateOverpaid  Outcome = "overpaid"
	SimulateLate      Outcome = "late"
	SimulateOrphaned  Outcome = "orphaned"
	SimulateDropped   Outcome = "dropped"
)

var (
	invoiceOutcomes = []Outcome{
		SimulateDetected,
		SimulatePaid,
		SimulateUnderpaid,
		SimulateOverpaid,
		SimulateLate,
		SimulateOrphaned,
		SimulateDropped,
	}
	depositOutcomes = []Outcome{SimulateDetected, SimulateConfirmed, SimulateOrphaned, SimulateDropped}
)

// SimulateParams ask for a payment without a network transaction, in test mode.
type SimulateParams struct {
	Owner event.Owner
	// InvoiceID or DepositAddressID names what is paid.
	InvoiceID, DepositAddressID string
	// OptionID is the option that is paid; empty: the selected one, else the first.
	OptionID string
	// Asset is a symbol on the deposit address's network; deposit addresses only.
	Asset string
	// Amount is in base units; 0: what leads to the outcome. Deposit addresses need one for a new payment.
	Amount  chain.Amount
	Outcome Outcome
}

// PreparedSimulate is a simulation with what it may need.
type PreparedSimulate struct {
	params SimulateParams
	choose *PreparedSelect
	option string
	prices prices
}

// PrepareSimulate checks the parameters, and prepares the selection of the option when it was not
// selected yet. With a live owner it is fault.Forbidden, test_mode_only.
func (s *Service) PrepareSimulate(ctx context.Context, p SimulateParams) (PreparedSimulate, error) {
	if p.Owner.Livemode {
		return PreparedSimulate{}, fault.New(
			fault.Forbidden, "test_mode_only", "payments can only be simulated with a test key",
		)
	}

	if chain.MaxTransfer.Less(p.Amount) {
		return PreparedSimulate{}, invalid("amount", "the amount is more than one transfer can move")
	}

	out := PreparedSimulate{params: p, prices: prices{}}
	if p.InvoiceID == "" {
		err := s.prepareSimulatedDeposit(ctx, &out)
		return out, err
	}

	if !slices.Contains(invoiceOutcomes, p.Outcome) {
		return PreparedSimulate{}, invalid(
			"outcome", "the outcome %q is none of %v", clip(string(p.Outcome)), invoiceOutcomes,
		)
	}

	inv, err := s.db.Invoice(ctx, p.Owner, p.InvoiceID)
	if err != nil {
		return PreparedSimulate{}, err
	}

	o := inv.Option(p.OptionID)
	switch {
	case p.OptionID != "" && o == nil:
		return PreparedSimulate{}, fault.Missing("option", p.OptionID)
	case o == nil && inv.SelectedOptionID != "":
		o = inv.Option(inv.SelectedOptionID)
	case o == nil:
		o = &inv.Options[0]
	}

	out.option = o.ID

	asset, native, err := s.assets(o.Network, o.AssetID)
	if err != nil {
		return PreparedSimulate{}, err
	}

	if !o.Selected() {
		choose, err := s.prepareSelect(ctx, &p.Owner, inv, o.ID)
		if err != nil {
			return PreparedSimulate{}, err
		}

		out.choose = &choose
	}

	out.prices.want(priceOf(asset), usd)
	out.prices.want(priceOf(native), usd)

	if inv.Kind == Fiat {
		out.prices.want(priceOf(asset), inv.Currency)
	}

	return out, s.fill(ctx, out.prices)
}

func (s *Service) prepareSimulatedDeposit(ctx context.Context, out *PreparedSimulate) error {
	p := out.params
	if !slices.Contains(depositOutcomes, p.Outcome) {
		return invalid("outcome", "the outcome %q is none of %v", clip(string(p.Outcome)), depositOutcomes)
	}

	d, err := s.db.DepositAddress(ctx, p.Owner, p.DepositAddressID)
	if err != nil {
		return err
	}

	n, ok := s.registry.Network(d.Network)
	if !ok {
		return fault.New(fault.NotFound, "network_unknown", "network %q is not enabled here", d.Network)
	}

	asset, ok := n.Asset(p.Asset)
	if !ok {
		return fault.Param(
			"asset", "asset_not_enabled", "asset %q is not enabled on network %s",
			clip(p.Asset), d.Network,
		)
	}

	out.prices.wantUSD(asset, n)

	return s.fill(ctx, out.prices)
}

// SimulateTx makes the payment in tx. The outcomes orphaned and dropped take the latest simulated
// payment that is not there yet; without one, a payment is made first. The outcome late expires an
// invoice that is still open.
func (s *Service) SimulateTx(ctx context.Context, tx Tx, p PreparedSimulate) (Invoice, Payment, error) {
	l := s.newLedger(tx, "", p.prices)

	a, err := s.simulated(ctx, l, p)
	if err != nil {
		return Invoice{}, Payment{}, err
	}

	pay, err := s.simulatedPayment(ctx, l, a, p)
	if err != nil {
		return Invoice{}, Payment{}, err
	}

	if err := l.simulate(a, pay, p.params.Outcome); err != nil {
		return Invoice{}, Payment{}, err
	}

	l.tellNew(a)

	if err := l.flush(ctx); err != nil {
		return Invoice{}, Payment{}, err
	}

	if a.invoice == nil {
		return Invoice{}, *pay, nil
	}

	return *a.invoice, *pay, nil
}

// simulated opens what is paid, ready for the payment.
func (s *Service) simulated(ctx context.Context, l *ledger, p PreparedSimulate) (*account, error) {
	if p.params.InvoiceID == "" {
		a, err := l.depositAccount(ctx, p.params.Owner, p.params.DepositAddressID)
		if err != nil {
			return nil, err
		}
		// The account holds unconfirmed payments alone; the latest ones may be meant.
		latest, err := l.tx.Payments(
			ctx,
			PaymentFilter{Owner: p.params.Owner, DepositAddressID: p.params.DepositAddressID, Limit: 100},
		)
		for _, q := range latest {
			if _, _, err := l.of(ctx, q); err != nil {
				return nil, err
			}
		}

		return a, err
	}

	inv, err := l.tx.Invoice(ctx, p.params.Owner, p.params.InvoiceID)
	if err != nil {
		return nil, err
	}

	a, err := l.open(ctx, inv)
	if err != nil {
		return nil, err
	}

	if p.choose != nil && !a.invoice.Option(p.option).Selected() {
		if err := s.choosing(ctx, l, a, *p.choose); err != nil {
			return nil, err
		}
	}

	if p.params.Outcome == SimulateLate {
		return a, l.expireNow(a)
	}

	return a, nil
}

// expireNow ends an open or underpaid invoice before its time.
func (l *ledger) expireNow(a *account) error {
	inv := a.invoice
	if inv.Closed() {
		return nil
	}

	if inv.Status != Open && inv.Status != Underpaid {
		return inv.refuseClosing("expire")
	}

	if err := inv.waiting(a.values()); err != nil {
		return err
	}

	before := inv.Status
	for _, t := range inv.close(Expired, a.values(), l.now) {
		inv.Sequence++
		a.events = append(a.events, event.Event{
			Owner:     inv.Owner,
			Type:      t,
			ObjectID:  inv.ID,
			InvoiceID: inv.ID,
			Sequence:  inv.Sequence,
			Subject:   *inv,
			Previous:  map[string]any{"status": before},
			CreatedAt: l.now,
		})
	}

	a.touched = true

	return nil
}

// simulatedPayment returns the payment that is meant, or makes a new one.
func (s *Service) simulatedPayment(
	ctx context.Context,
	l *ledger,
	a *account,
	p PreparedSimulate,
) (*Payment, error) {
	if p.params.Outcome == SimulateOrphaned || p.params.Outcome == SimulateDropped {
		var latest *Payment

		for _, q := range a.payments {
			movable := q.Status == Detected || q.Status == Confirmed ||
				q.Status == Orphaned && p.params.Outcome == SimulateDropped
			if q.Simulated && movable && (latest == nil || latest.ID < q.ID) {
				latest = q
			}
		}

		if latest != nil {
			return latest, nil
		}
	}

	id := s.ids.Next()
	pay := Payment{
		ID:         id,
		Owner:      p.params.Owner,
		Status:     Detected,
		TxHash:     "sim_" + id,
		Amount:     p.params.Amount,
		Simulated:  true,
		DetectedBy: BySimulated,
		DetectedAt: l.now,
	}

	var (
		asset chain.Asset
		err   error
	)

	if a.invoice != nil {
		a.invoice.Simulated = true

		o := a.invoice.Option(p.option)
		if asset, _, err = s.assets(o.Network, o.AssetID); err != nil {
			return nil, err
		}

		pay.InvoiceID, pay.Network, pay.Address, pay.Key = a.invoice.ID, o.Network, o.Address, o.Key
		if pay.Amount.IsZero() {
			pay.Amount = simulatedAmount(*a.invoice, *o, p.params.Outcome)
		}
	} else {
		d := a.deposit
		n, _ := s.registry.Network(d.Network)
		asset, _ = n.Asset(p.params.Asset)

		pay.DepositAddressID, pay.Network, pay.Address, pay.Key = d.ID, d.Network, d.Address, d.Key
		if pay.Amount.IsZero() {
			return nil, fault.Param("amount", "parameter_missing", "name the amount in base units, above 0")
		}
	}

	n, _ := s.registry.Network(pay.Network)
	pay.Asset, pay.AssetID, pay.Contract = asset.Symbol, asset.ID, asset.Contract
	pay.Decimals, pay.Required = asset.Decimals, n.Confirmations
	_, made, err := l.enter(ctx, pay, p.option, asset)

	return made, err
}

// simulatedAmount is what leads to an outcome: all that is missing, half of it (rounded up, at
// least a base unit less than all), or all and a tenth of the amount due, which is more than any
// tolerance.
func simulatedAmount(inv Invoice, o Option, outcome Outcome) chain.Amount {
	rest := o.AmountDue.SubFloor(o.AmountPaid.Add(o.AmountDetected))
	if inv.Status == Paid || rest.IsZero() {
		rest = o.AmountDue
	}

	switch outcome {
	case SimulateUnderpaid:
		return chain.Max(rest.BPS(5000), chain.Units(1))
	case SimulateOverpaid:
		return rest.Add(o.AmountDue.BPS(1000)).Add(o.step()).Add(o.step())
	default:
		return rest
	}
}

// simulate moves a simulated payment to where the outcome wants it.
func (l *ledger) simulate(a *account, p *Payment, outcome Outcome) error {
	switch outcome {
	case SimulateDetected:
		return nil
	case SimulateOrphaned:
		return l.move(a, p, func(p *Payment) ([]event.Type, error) { return p.Orphan(l.now) })
	case SimulateDropped:
		return l.move(a, p, func(p *Payment) ([]event.Type, error) {
			var types []event.Type

			if p.Status == Confirmed {
				var err error
				if types, err = p.Orphan(l.now); err != nil {
					return nil, err
				}
			}

			dropped, err := p.Drop()
			p.LostAt, p.DueAt = time.Time{}, time.Time{}

			return append(types, dropped...), err
		})
	default:
		return l.confirm(a, p)
	}
}

// Simulate is PrepareSimulate and SimulateTx in a transaction of its own.
func (s *Service) Simulate(ctx context.Context, p SimulateParams) (Invoice, Payment, error) {
	type both struct {
		invoice Invoice
		payment Payment
	}

	out, err := again(func() (both, error) {
		prepared, err := s.PrepareSimulate(ctx, p)
		if err != nil {
			return both{}, err
		}

		return update(ctx, s, func(ctx context.Context, tx Tx) (both, error) {
			inv, pay, err := s.SimulateTx(ctx, tx, prepared)
			return both{inv, pay}, err
		})
	})

	return out.invoice, out.payment, err
}
