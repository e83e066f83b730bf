package invoice

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/counter"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/pricecache"
	"github.com/seed-8ee7f392/payments/internal/wire"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// CreateParams are a merchant's parameters for a new invoice. Bounds are those of decisions 2.1; lengths
// count characters.
type CreateParams struct {
	Owner event.Owner
	// Price makes a fiat invoice; its amount is above 0 with at most 8 places.
	Price *Price
	// Options are at most 20. Without Price they are required, each with an amount. With Price they may be
	// omitted: then every asset that is enabled for the account is offered, with or without a price at that
	// moment.
	Options       []OptionParams
	OrderID       string
	CustomerEmail string
	Description   string
	Metadata      map[string]string
	// ToleranceBPS is 0 to 500; nil: the account's setting.
	ToleranceBPS *int
	// ExpiresIn is 300 to 604,800 s; 0: 86,400 s. PreSelectionExpiresIn is 300 s to ExpiresIn; 0: the smaller
	// of 7,200 s and ExpiresIn.
	ExpiresIn, PreSelectionExpiresIn time.Duration
	SuccessURL, CancelURL            string
	// Joined is set when the host's own transaction stores the invoice. The network may then be read past the
	// new address before that transaction commits.
	Joined bool
}

// OptionParams name one way to pay. Amount is in base units, and only for invoices without a price.
type OptionParams struct {
	Asset, Network string
	Amount         chain.Amount
}

// preparedCreate is an invoice that is ready to be stored.
type preparedCreate struct {
	invoice Invoice
	address *Address
	joined  bool
	// settled is set when the account's settings were read for it, ownTolerance when its tolerance is its
	// own.
	settled, ownTolerance bool
}

// PrepareCreate checks the parameters (fault.Invalid, naming the field), reads prices, takes a number and,
// when there is only one option, derives its address. No fresh price is fault.Unavailable, price_unavailable.
// The returned Commit stores the invoice, and its address if it has one.
func (s *Service) PrepareCreate(ctx context.Context, p CreateParams) (Commit[Invoice], error) {
	prepared, err := s.prepareCreate(ctx, p)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx Tx) (Invoice, error) { return s.create(ctx, tx, prepared) }, nil
}

func (s *Service) prepareCreate(ctx context.Context, p CreateParams) (preparedCreate, error) { // spec D2.2.13
	if err := checkCreate(p); err != nil {
		return preparedCreate{}, err
	}

	ctx = pricecache.For(ctx, p.Owner.AccountID)

	assets, settings, final, err := s.assetsBySettings(ctx, p)
	if err != nil {
		return preparedCreate{}, err
	}

	inv := s.newInvoice(p, settings)
	if p.Price != nil {
		if inv.Price, err = wire.ParseDecimal("price.amount", p.Price.Amount); err != nil {
			return preparedCreate{}, err
		}
	}

	for i, a := range assets {
		o := Option{
			ID:       s.ids.Next(),
			Network:  a.Network,
			Asset:    a.Symbol,
			AssetID:  a.ID,
			Contract: a.Contract,
			Decimals: a.Decimals,
		}
		if p.Price == nil {
			o.AmountDue, o.DisplayDecimals = p.Options[i].Amount, a.Decimals
		}

		if err := s.authenticateOption(&inv, &o); err != nil {
			return preparedCreate{}, err
		}

		inv.Options = append(inv.Options, o)
	}

	prepared := preparedCreate{joined: p.Joined, settled: final, ownTolerance: p.ToleranceBPS != nil}
	if len(inv.Options) == 1 {
		if prepared.address, err = s.selectOnly(ctx, &inv, assets[0]); err != nil {
			return preparedCreate{}, err
		}
	}

	if inv.Number, err = s.numbers.take(ctx, counter.InvoiceNumber(p.Owner), 1); err != nil {
		return preparedCreate{}, err
	}

	inv.Schedule()
	prepared.invoice = inv

	return prepared, nil
}

// newInvoice returns an open invoice without options.
func (s *Service) newInvoice(p CreateParams, settings Settings) Invoice {
	invoiceID, now := s.ids.Next(), s.now()

	life, first := lifetimes(p)

	inv := Invoice{
		ID:                    invoiceID,
		Owner:                 p.Owner,
		Kind:                  Crypto,
		Status:                Open,
		ToleranceBPS:          settings.ToleranceBPS,
		AcceptLate:            settings.AcceptLate,
		OrderID:               p.OrderID,
		CustomerEmail:         p.CustomerEmail,
		Description:           p.Description,
		Metadata:              p.Metadata,
		SuccessURL:            p.SuccessURL,
		CancelURL:             p.CancelURL,
		CreatedAt:             id.CreatedAt(invoiceID),
		ExpiresAt:             now.Add(life),
		PreSelectionExpiresAt: now.Add(first),
	}
	if p.ToleranceBPS != nil {
		inv.ToleranceBPS = *p.ToleranceBPS
	}

	if p.Price != nil {
		inv.Kind, inv.Currency = Fiat, p.Price.Currency
	}

	return inv
}

// assetsFor returns the assets of the options; without options, all assets that are enabled for the account.
// A fiat invoice needs a price for at least one.
func (s *Service) assetsFor(ctx context.Context, p CreateParams, settings Settings) ([]chain.Asset, error) {
	// spec 2.2.9
	var assets []chain.Asset

	for i := range p.Options {
		asset, err := s.optionAsset(p, settings, i, assets)
		if err != nil {
			return nil, err
		}

		assets = append(assets, asset)
	}

	if p.Price == nil {
		return assets, nil
	}

	if p.Options == nil {
		for _, n := range s.registry.Networks(p.Owner.Livemode) {
			for _, a := range n.Assets {
				if settings.enabled(a) {
					assets = append(assets, a)
				}
			}
		}

		if len(assets) == 0 {
			return nil, fault.Param(
				"options", "asset_not_enabled", "no asset is enabled for this account",
			).AsTransient()
		}
	}

	return assets, s.checkPrices(ctx, assets, p.Price.Currency, p.Options == nil)
}

// optionAsset returns the asset of the option at index i. before are the assets of the options before it.
func (s *Service) optionAsset(
	p CreateParams,
	settings Settings,
	i int,
	before []chain.Asset,
) (chain.Asset, error) {
	o := p.Options[i]

	n, ok := s.registry.Network(o.Network)
	if !ok || n.Livemode != p.Owner.Livemode {
		return chain.Asset{}, fault.Param(
			optionParam(i)+".network", "asset_not_enabled",
			"network %q is not enabled; GET /v1/networks lists those that are",
			o.Network,
		)
	}

	asset, ok := n.Asset(o.Asset)

	switch {
	case !ok:
		return chain.Asset{}, assetNotEnabled(optionParam(i), o.Asset, o.Network)
	case !settings.enabled(asset):
		return chain.Asset{}, assetNotEnabled(optionParam(i), o.Asset, o.Network).AsTransient()
	}

	if slices.ContainsFunc(before, func(other chain.Asset) bool { return other.ID == asset.ID }) {
		return chain.Asset{}, fault.Param(
			optionParam(i), "parameter_invalid", "%s on %s is in the list twice",
			o.Asset, o.Network,
		)
	}

	if p.Price != nil {
		return asset, nil
	}

	return asset, checkAmount(asset, o.Amount, optionParam(i)+".amount")
}

// enabled reports whether an account takes an asset.
func (s Settings) enabled(asset chain.Asset) bool {
	return len(s.Assets) == 0 || slices.Contains(s.Assets, asset.ID)
}

// checkPrices refuses a fiat invoice if none of its assets has a fresh price, or if a named option's asset is
// never priced in the currency. With all, no option was named: assets without a price stay, as a price may
// come.
func (s *Service) checkPrices(
	ctx context.Context,
	assets []chain.Asset,
	currency string,
	all bool,
) error { // spec D12.23
	known := map[string]error{}

	var refused, stale error

	without, fresh := 0, false

	for i, a := range assets {
		base := chaindata.PriceSymbol(a)

		err, asked := known[base]
		if !asked {
			_, err = s.price(ctx, base, currency)
			known[base] = err
		}

		switch {
		case err == nil:
			fresh = true
		case errors.Is(err, fault.Invalid):
			refused, without = err, i
		default:
			stale = err
		}
	}

	switch {
	case refused != nil && !all && (fresh || stale != nil): // the asset lacks a price, the currency does not
		a := assets[without]

		return fault.Wrap(
			refused, fault.Invalid, "asset_not_enabled",
			"%s on %s has no price in %q; leave it out or use another currency",
			a.Symbol, a.Network, currency,
		).WithParam(optionParam(without) + ".asset").AsTransient() // prices changed the answer, and may again
	case refused != nil && !fresh && stale == nil:
		return fault.Wrap(
			refused, fault.Invalid, "parameter_invalid",
			"no asset of the invoice has a price in %q; use another currency or other assets",
			currency,
		).WithParam("price.currency")
	case !fresh:
		return stale
	}

	return nil
}

// selectOnly selects the only option of an invoice that is not stored yet.
func (s *Service) selectOnly(ctx context.Context, inv *Invoice, asset chain.Asset) (*Address, error) {
	// spec D2.2.2
	o := &inv.Options[0]
	if inv.Kind == Fiat {
		r, err := s.priceNow(ctx, asset, inv.Currency)
		if err != nil {
			return nil, err
		}

		if err := inv.quote(o.ID, r, asset.MinAmount, nil, inv.CreatedAt, s.quoteFor); err != nil {
			return nil, err
		}
	}

	a, err := s.optionAddress(ctx, inv, *o, asset)
	if err != nil {
		return nil, err
	}

	a.give(o)

	return &a.Address, inv.selectOption(o.ID, inv.CreatedAt)
}

// create stores the invoice, and its address when it has one, in tx.
func (s *Service) create(ctx context.Context, tx Tx, p preparedCreate) (Invoice, error) {
	inv := p.invoice

	if !p.settled {
		if err := s.settle(ctx, tx, &inv, p.ownTolerance); err != nil {
			return Invoice{}, err
		}
	}

	if p.address != nil {
		if err := s.putAddress(ctx, tx, *p.address, p.joined); err != nil {
			return Invoice{}, err
		}
	}

	events, err := Put(ctx, tx, &inv, "", []event.Type{event.InvoiceCreated}) // spec D2.3.14
	if err != nil {
		return Invoice{}, err
	}

	return inv, tx.AppendEvents(ctx, events...)
}

// Create is PrepareCreate and its commit in a transaction of its own.
func (s *Service) Create(ctx context.Context, p CreateParams) (Invoice, error) {
	return commit(ctx, s, func() (Commit[Invoice], error) { return s.PrepareCreate(ctx, p) })
}

// price returns a fresh price.
func (s *Service) price(ctx context.Context, base, currency string) (decimal.Decimal, error) {
	q, err := s.rates.Quote(ctx, base, currency)
	return q.Rate, err
}

// priceNow returns the price of an asset of a stored option. An asset that is never priced in the currency
// also returns fault.Unavailable, price_unavailable.
func (s *Service) priceNow(ctx context.Context, asset chain.Asset, currency string) (decimal.Decimal, error) {
	base := chaindata.PriceSymbol(asset)

	r, err := s.price(ctx, base, currency)
	if errors.Is(err, fault.Invalid) {
		err = rate.Unavailable(base, currency, err)
	}

	return r, err
}
