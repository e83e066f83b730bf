package checkout

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/wire"
	"github.com/seed-8ee7f392/payments/invoice"
)

// choice returns an option as a Choice; choosing is whether the payer may select it.
func (f snapshot) choice(o invoice.Option, choosing bool) choice {
	n, a := f.names(o.Network, o.AssetID)

	c := choice{
		ID:          o.ID,
		Network:     o.Network,
		NetworkName: n.DisplayName,
		Asset:       o.Asset,
		AssetName:   a.Name,
		Selected:    o.ID == f.Invoice.SelectedOptionID,
	}
	switch due := missing(&o); {
	case !choosing:
	case !due.IsZero() && !quoteExpired(&f.Invoice, &o, f.Now):
		c.AmountText = formatUnits(due, o.Decimals)
	case f.Invoice.Kind == invoice.Fiat:
		owed := outstanding(&f.Invoice, f.Payments)
		c.EstimateText, _ = estimate(owed, f.Prices[o.AssetID], o.Decimals)
	}

	return c
}

// names returns the network and asset of an option. If one is no longer enabled, its slug serves as name.
func (f snapshot) names(slug, assetID string) (chain.Network, chain.Asset) {
	n, ok := f.Networks.Network(slug)
	if !ok {
		n = chain.Network{Slug: slug}
	}

	n.DisplayName = cmp.Or(n.DisplayName, slug)
	a, _ := n.AssetByID(assetID)

	return n, a
}

// details returns the payment details of the option.
func (f snapshot) details(o *invoice.Option) *paymentDetails {
	n, a := f.names(o.Network, o.AssetID)
	due, received := missing(o), o.AmountPaid.Add(o.AmountDetected)

	d := &paymentDetails{
		OptionID:         o.ID,
		Network:          o.Network,
		NetworkName:      n.DisplayName,
		Asset:            o.Asset,
		AssetName:        a.Name,
		Contract:         o.Contract,
		Decimals:         o.Decimals,
		DisplayDecimals:  o.DisplayDecimals,
		Address:          o.Address,
		AmountDue:        o.AmountDue.String(),
		AmountPaid:       o.AmountPaid.String(),
		AmountDetected:   o.AmountDetected.String(),
		AmountMissing:    due.String(),
		DueText:          formatUnits(o.AmountDue, o.Decimals),
		MissingText:      formatUnits(due, o.Decimals),
		ReceivedText:     formatUnits(received, o.Decimals),
		QuoteExpiresAt:   wire.Time(o.QuoteExpiresAt),
		QuoteExpired:     quoteExpired(&f.Invoice, o, f.Now),
		ConfirmationRule: n.Rule,
		UsuallySeconds:   int64(n.EstimatedConfirmation / time.Second),
	}
	if !o.Rate.IsZero() {
		d.Rate = wire.Decimal(o.Rate)
	}

	if f.Invoice.Has(invoice.Overpaid) && o.AmountDue.Less(received) && f.paidOnlyTo(o.ID) {
		d.ExcessText = formatUnits(received.Sub(o.AmountDue), o.Decimals)
	}

	if driver, err := f.Networks.Driver(o.Network); err == nil && !due.IsZero() && !d.QuoteExpired {
		d.URI = f.paymentURI(driver, o.Address, a, due)
	}

	return d
}

// maxRequestText is the number of characters of a request's text in a payment URI. A longer text makes a QR
// code that cameras cannot read.
const maxRequestText = 40

// paymentURI returns the URI that a QR code shows, or "".
func (f snapshot) paymentURI(
	driver chain.Driver,
	to chain.Address,
	asset chain.Asset,
	due chain.Amount,
) string {
	switch builder := driver.(type) {
	case chain.RequestURIBuilder:
		return builder.RequestURI(to, asset, due, chain.PaymentRequest{
			ID:      f.Invoice.ID,
			Label:   shorten(f.Merchant.Name),
			Message: shorten(f.Invoice.Description),
		})
	case chain.URIBuilder:
		return builder.PaymentURI(to, asset, due)
	}

	return ""
}

// shorten returns at most maxRequestText characters of a text; a shortened text ends with an ellipsis.
func shorten(text string) string {
	if characters := []rune(text); len(characters) > maxRequestText {
		return string(characters[:maxRequestText-1]) + "…"
	}

	return text
}

// paidOnlyTo reports whether every payment that counts went to one option, so that its amounts show
// the excess.
func (f snapshot) paidOnlyTo(optionID string) bool {
	return !slices.ContainsFunc(
		f.Payments, func(p invoice.Payment) bool { return counts(p) && p.OptionID != optionID },
	)
}

// transaction returns a payment as a Transaction.
func (f snapshot) transaction(p invoice.Payment) transaction {
	n, _ := f.names(p.Network, p.AssetID)

	t := transaction{
		TxHash:                p.TxHash,
		Status:                p.Status,
		Network:               p.Network,
		NetworkName:           n.DisplayName,
		Asset:                 p.Asset,
		Amount:                p.Amount.String(),
		AmountText:            formatUnits(p.Amount, p.Decimals),
		Confirmations:         f.confirmations(p),
		ConfirmationsRequired: p.Required,
		ConfirmationRule:      n.Rule,
		InBlock:               !p.Block.IsZero(),
		Late:                  p.Late,
		Counts:                p.OptionID != "",
		Simulated:             p.Simulated,
		DetectedAt:            wire.Time(p.DetectedAt),
		ConfirmedAt:           wire.Time(p.ConfirmedAt),
	}
	if p.Status == invoice.Confirmed {
		// A constant, so that a confirmed payment does not change the revision with every block.
		t.Confirmations = p.Required
	}

	if p.TxHash != "" && !p.Simulated && n.ExplorerTxURL != "" {
		t.ExplorerURL = webURL(strings.ReplaceAll(n.ExplorerTxURL, "{txHash}", url.PathEscape(p.TxHash)))
	}

	return t
}

// missing returns an option's due amount minus its received amount, in base units; never below zero.
func missing(o *invoice.Option) chain.Amount {
	return o.AmountDue.SubFloor(o.AmountPaid.Add(o.AmountDetected))
}
