package ingest

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// preparedSimulate holds a simulation with the selection and the prices that it may need.
type preparedSimulate struct {
	params invoice.SimulateParams
	choose invoice.Commit[invoice.Invoice]
	option string
	prices prices
}

// PrepareSimulate checks the parameters, and prepares the selection of the option when it was not
// selected yet. With a live owner it is fault.Forbidden, test_mode_only.
func (s *Ingester) PrepareSimulate(
	ctx context.Context,
	service *invoice.Service,
	p invoice.SimulateParams,
) (invoice.Commit[invoice.Simulated], error) {
	prepared, err := s.prepareSimulate(ctx, service, p)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx invoice.Tx) (invoice.Simulated, error) {
		return s.simulateTx(ctx, tx, prepared)
	}, nil
}

func (s *Ingester) prepareSimulate(
	ctx context.Context,
	service *invoice.Service,
	p invoice.SimulateParams,
) (preparedSimulate, error) {
	out := preparedSimulate{params: p, prices: prices{}}
	if p.InvoiceID == "" {
		err := s.prepareSimulatedDeposit(ctx, &out)
		return out, err
	}

	inv, err := s.db.Invoice(ctx, p.Owner, p.InvoiceID)
	if err != nil {
		return preparedSimulate{}, err
	}

	o := inv.Option(p.OptionID)
	switch {
	case p.OptionID != "" && o == nil:
		return preparedSimulate{}, fault.Missing("option", p.OptionID)
	case o == nil && inv.SelectedOptionID != "":
		o = inv.Option(inv.SelectedOptionID)
	case o == nil:
		o = &inv.Options[0]
	}

	out.option = o.ID

	asset, native, err := s.registry.AssetByID(o.Network, o.AssetID)
	if err != nil {
		return preparedSimulate{}, err
	}

	if !o.Selected() {
		choose, err := service.PrepareSelect(ctx, &p.Owner, inv.ID, o.ID)
		if err != nil {
			return preparedSimulate{}, err
		}

		out.choose = choose
	}

	out.prices.want(chaindata.PriceSymbol(asset), usd)
	out.prices.want(chaindata.PriceSymbol(native), usd)

	if inv.Kind == invoice.Fiat {
		out.prices.want(chaindata.PriceSymbol(asset), inv.Currency)
	}

	return out, s.fill(ctx, out.prices)
}

func (s *Ingester) prepareSimulatedDeposit(ctx context.Context, out *preparedSimulate) error {
	p := out.params

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
			p.Asset, d.Network,
		)
	}

	out.prices.wantUSD(asset, n)

	return s.fill(ctx, out.prices)
}

// simulateTx makes the payment in tx. The outcomes orphaned and dropped take the latest simulated
// payment that is not there yet; without one, a payment is made first. The outcome late expires an
// invoice that is still open.
func (s *Ingester) simulateTx(
	ctx context.Context,
	tx invoice.Tx,
	p preparedSimulate,
) (invoice.Simulated, error) {
	l := s.newLedger(tx, "", p.prices)

	a, err := s.simulatedEntry(ctx, l, p)
	if err != nil {
		return invoice.Simulated{}, err
	}

	pay, err := s.simulatedPayment(ctx, l, a, p)
	if err != nil {
		return invoice.Simulated{}, err
	}

	if err := l.simulate(a, pay, p.params.Outcome); err != nil {
		return invoice.Simulated{}, err
	}

	l.notifyNew(a)

	if err := l.flush(ctx); err != nil {
		return invoice.Simulated{}, err
	}

	if a.invoice == nil {
		return invoice.Simulated{Payment: *pay}, nil
	}

	return invoice.Simulated{Invoice: *a.invoice, Payment: *pay}, nil
}

// simulatedEntry returns the entry of what is paid, ready for the payment.
func (s *Ingester) simulatedEntry(ctx context.Context, l *ledger, p preparedSimulate) (*entry, error) {
	if p.params.InvoiceID == "" {
		a, err := l.depositEntry(ctx, p.params.Owner, p.params.DepositAddressID)
		if err != nil {
			return nil, err
		}

		// The entry holds unconfirmed payments alone; the outcome may move one of the latest ones.
		filter := invoice.PaymentFilter{
			Owner:            p.params.Owner,
			DepositAddressID: p.params.DepositAddressID,
			Limit:            100,
		}

		latest, err := l.tx.Payments(ctx, filter)
		for _, q := range latest {
			if _, _, err := l.payment(ctx, q); err != nil {
				return nil, err
			}
		}

		return a, err
	}

	inv, err := l.tx.Invoice(ctx, p.params.Owner, p.params.InvoiceID)
	if err != nil {
		return nil, err
	}

	if p.choose != nil && !inv.Option(p.option).Selected() {
		if inv, err = p.choose(ctx, l.tx); err != nil {
			return nil, err
		}
	}

	a, err := l.open(ctx, inv)
	if err != nil {
		return nil, err
	}

	if p.params.Outcome == invoice.SimulateLate {
		return a, l.expireNow(a)
	}

	return a, nil
}

// expireNow expires an open or underpaid invoice before its deadline.
func (l *ledger) expireNow(a *entry) error {
	before := a.invoice.Status

	types, err := a.invoice.ExpireNow(a.values(), l.now)
	if err != nil {
		return err
	}

	a.events = append(a.events, a.invoice.Events(before, types)...)
	a.touched = true

	return nil
}

// simulatedPayment returns the payment that the outcome moves, or makes a new one.
func (s *Ingester) simulatedPayment(
	ctx context.Context,
	l *ledger,
	a *entry,
	p preparedSimulate,
) (*invoice.Payment, error) {
	if latest := latestSimulated(a, p.params); latest != nil {
		return latest, nil
	}

	id := s.ids.Next()
	pay := invoice.Payment{
		ID:         id,
		Owner:      p.params.Owner,
		Status:     invoice.Detected,
		TxHash:     "sim_" + id, // spec 2.7.8
		Amount:     p.params.Amount,
		Simulated:  true,
		DetectedBy: invoice.BySimulated,
		DetectedAt: l.now,
	}

	asset, err := s.setRecipient(&pay, l, a, p)
	if err != nil {
		return nil, err
	}

	n, _ := s.registry.Network(pay.Network)
	pay.Asset, pay.AssetID, pay.Contract = asset.Symbol, asset.ID, asset.Contract
	pay.Decimals, pay.Required = asset.Decimals, n.Confirmations
	_, made, err := l.enter(ctx, pay, p.option, asset)

	return made, err
}

// latestSimulated returns the latest simulated payment that the outcome orphaned or dropped can move, or nil: of the
// option or the asset that was named.
func latestSimulated(a *entry, p invoice.SimulateParams) *invoice.Payment {
	if p.Outcome != invoice.SimulateOrphaned && p.Outcome != invoice.SimulateDropped {
		return nil
	}

	var latest *invoice.Payment

	for _, q := range a.payments {
		movable := q.Status == invoice.Detected || q.Status == invoice.Confirmed ||
			q.Status == invoice.Orphaned && p.Outcome == invoice.SimulateDropped
		named := (p.OptionID == "" || p.OptionID == q.OptionID) && (p.Asset == "" || p.Asset == q.Asset)

		if q.Simulated && movable && named && (latest == nil || latest.ID < q.ID) {
			latest = q
		}
	}

	return latest
}

// setRecipient sets what a payment pays, its address, and the amount where none was given. It returns the
// payment's asset.
func (s *Ingester) setRecipient(
	pay *invoice.Payment,
	l *ledger,
	a *entry,
	p preparedSimulate,
) (chain.Asset, error) {
	if a.invoice == nil {
		d := a.deposit
		n, _ := s.registry.Network(d.Network)
		asset, _ := n.Asset(p.params.Asset)

		pay.DepositAddressID, pay.Network, pay.Address, pay.Key = d.ID, d.Network, d.Address, d.Key
		if pay.Amount.IsZero() {
			return asset, fault.Param("amount", "parameter_missing", "name the amount in base units, above 0")
		}

		return asset, nil
	}

	a.invoice.Simulated = true

	o := a.invoice.Option(p.option)

	asset, _, err := s.registry.AssetByID(o.Network, o.AssetID)
	if err != nil {
		return asset, err
	}

	pay.InvoiceID, pay.Network, pay.Address, pay.Key = a.invoice.ID, o.Network, o.Address, o.Key
	if pay.Amount.IsZero() {
		pay.Amount, err = l.simulatedAmount(a, *o, asset, p.params.Outcome)
	}

	return asset, err
}

// simulate moves a simulated payment to the status of the outcome.
func (l *ledger) simulate(a *entry, p *invoice.Payment, outcome invoice.Outcome) error {
	switch outcome {
	case invoice.SimulateDetected:
		return nil
	case invoice.SimulateOrphaned:
		return l.move(
			a,
			p,
			func(p *invoice.Payment) ([]event.Type, error) { return invoicestate.Orphan(p, l.now) },
		)
	case invoice.SimulateDropped:
		return l.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
			var types []event.Type

			if p.Status == invoice.Confirmed {
				var err error
				if types, err = invoicestate.Orphan(p, l.now); err != nil {
					return nil, err
				}
			}

			dropped, err := invoicestate.Drop(p)
			p.LostAt, p.DueAt = time.Time{}, time.Time{}

			return append(types, dropped...), err
		})
	default:
		return l.confirm(a, p)
	}
}
