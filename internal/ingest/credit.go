package ingest

// This file sets what payments are worth: the credit at detection, the price at confirmation, and how many
// confirmations a value needs.

import (
	"context"
	"errors"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// priceRetry is how long a confirmed payment without a price waits for the next attempt.
const priceRetry = 30 * time.Second

// enter credits a new payment and adds it to what it pays.
func (l *ledger) enter(
	ctx context.Context,
	p invoice.Payment,
	optionID string,
	asset chain.Asset,
) (*entry, *invoice.Payment, error) {
	var (
		a   *entry
		err error
	)
	if p.InvoiceID != "" {
		if a, err = l.invoiceEntry(ctx, p.InvoiceID); err != nil {
			return nil, nil, err
		}

		p.InvoiceNumber = a.invoice.Number
		if err := l.credit(a.invoice, &p, optionID, asset); err != nil {
			return nil, nil, err
		}
	} else {
		if a, err = l.depositEntry(ctx, p.Owner, p.DepositAddressID); err != nil {
			return nil, nil, err
		}

		p.DepositAddressName = a.deposit.Name
	}

	return a, l.add(a, p), nil
}

// credit sets what a payment pays and at which rate. Money in another asset or on another network than the option's
// pays nothing.
func (l *ledger) credit(inv *invoice.Invoice, p *invoice.Payment, optionID string, asset chain.Asset) error {
	o := inv.Option(optionID)
	if o == nil || !invoicestate.Accepts(*o, p.Network, p.AssetID) {
		return nil
	}

	p.OptionID = o.ID

	if inv.Kind != invoice.Fiat {
		return nil
	}

	rate, err := l.creditRate(inv, *o, madeAt(p.DetectedAt, p.Block), asset)
	if err != nil {
		return err
	}

	p.Rate = rate
	p.Credit = invoicestate.CreditOf(p.Amount, p.Decimals, p.Rate)

	return nil
}

// creditRate returns the rate of a payment to a fiat invoice that was made at a time: the quote's, or a fresh one when
// the quote had expired (the quote's when there is no fresh one).
func (l *ledger) creditRate(
	inv *invoice.Invoice,
	o invoice.Option,
	made time.Time,
	asset chain.Asset,
) (decimal.Decimal, error) { // spec D2.2.9
	if !made.After(o.QuoteExpiresAt) {
		return o.Rate, nil
	}

	fresh, ok, err := l.price(chaindata.PriceSymbol(asset), inv.Currency)
	if err != nil || !ok {
		return o.Rate, err
	}

	return fresh, nil
}

// confirm confirms a payment and sets its price when there is one, in one move: its event shows usd_value. Without
// a fresh price of the asset or of the native coin it is tried again after priceRetry. Where it was the asset's,
// payment.priced follows.
func (l *ledger) confirm(a *entry, p *invoice.Payment) error {
	if p.Status == invoice.Confirmed {
		return nil
	}

	late := a.invoice != nil && a.invoice.Closed()

	set, err := l.pricer(p)
	if err != nil {
		return err
	}

	return l.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
		confirmed, err := invoicestate.Confirm(p, late, l.now)
		if err != nil {
			return nil, err
		}

		priced, err := set(p)

		return append(confirmed, priced...), err
	})
}

// value sets the prices of a payment that confirmed without them.
func (l *ledger) value(a *entry, p *invoice.Payment) error {
	set, err := l.pricer(p)
	if err != nil {
		return err
	}

	return l.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
		had := p.USDValue.Valid

		types, err := set(p)
		if !had && p.USDValue.Valid {
			types = append(types, event.PaymentPriced) // spec D11.22
		}

		return types, err
	})
}

// pricer returns the transition that sets a payment's prices, and where one is not fresh makes it due after
// priceRetry.
func (l *ledger) pricer(p *invoice.Payment) (func(p *invoice.Payment) ([]event.Type, error), error) {
	asset, native, err := l.s.registry.AssetByID(p.Network, p.AssetID)
	if err != nil {
		return nil, err
	}

	inUSD, err := l.priceUSD(asset)

	nativeUSD, nativeErr := l.priceUSD(native)
	if err := errors.Join(err, nativeErr); err != nil {
		return nil, err
	}

	return func(p *invoice.Payment) ([]event.Type, error) {
		types, err := invoicestate.Price(p, inUSD, nativeUSD)
		if !p.NativeUSD.Valid {
			p.DueAt = l.now.Add(priceRetry)
		}

		return types, err
	}, nil
}
