package checkout

// Reading what a page is made from: the invoice costs one query, its payments a second once an
// option was selected, its network's cursor a third while that matters. The cursor is not kept: a
// page that is asked for because a block came must show that block.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/invoice"
)

const (
	// merchantFor is how long a merchant's name and logo are kept.
	merchantFor = 15 * time.Second
	// priceFor bounds how long a page waits for estimates; those that did not come are left out.
	priceFor = 2 * time.Second
)

// merchantCard is what the page keeps of an account.
type merchantCard struct {
	merchant
	logoType string
	logo     []byte
}

// facts reads everything about an invoice but prices.
func (p *pages) facts(ctx context.Context, inv invoice.Invoice) (facts, error) {
	f := facts{
		Invoice:    inv,
		Networks:   p.backend.Registry(),
		Conditions: map[string]condition{},
		Now:        p.backend.Now(),
	}

	card, err := p.merchant(ctx, inv.Owner.AccountID)
	if err != nil {
		return facts{}, err
	}

	f.Merchant = card.merchant

	selected := selectedOption(&f.Invoice)
	if selected == nil {
		return f, nil
	}

	if f.Payments, err = p.backend.Payments(ctx, inv.ID); err != nil {
		return facts{}, err
	}

	matter := map[string]bool{}

	switch inv.Status {
	case invoice.Open, invoice.Pending, invoice.Underpaid:
		matter[selected.Network] = true
	case invoice.Paid, invoice.Expired, invoice.Canceled, invoice.Refunded:
		// Nothing is waited for, but by a payment.
	}

	for _, pay := range f.Payments {
		if pay.Status == invoice.Detected {
			matter[pay.Network] = true
		}
	}

	for slug := range matter {
		if f.Conditions[slug], err = p.backend.Condition(ctx, slug); err != nil {
			return facts{}, err
		}
	}

	return f, nil
}

// merchant returns an account's public side.
func (p *pages) merchant(ctx context.Context, accountID string) (merchantCard, error) {
	return p.merchants.get(accountID, func() (merchantCard, error) {
		a, err := p.backend.Account(ctx, accountID)
		if err != nil {
			return merchantCard{}, err
		}

		card := merchantCard{
			merchant: merchant{
				Name:       a.Settings.Name,
				WebsiteURL: a.Settings.WebsiteURL,
				SuccessURL: a.Settings.SuccessURL,
				CancelURL:  a.Settings.CancelURL,
			},
		}
		switch a.LogoType { // what may be shown; anything else would be sniffed or run
		case "image/png", "image/jpeg", "image/webp":
			if len(a.Logo) > 0 {
				h := sha256.Sum256(a.Logo)
				card.LogoVersion, card.logoType, card.logo = hex.EncodeToString(h[:6]), a.LogoType, a.Logo
			}
		}

		return card, nil
	})
}

// prices returns the prices that are at hand, by asset id. A page can be shown without.
func (p *pages) prices(ctx context.Context, inv invoice.Invoice) map[string]decimal.Decimal {
	ctx, cancel := context.WithTimeout(ctx, priceFor)
	defer cancel()

	out := map[string]decimal.Decimal{}

	for _, o := range inv.Options {
		n, ok := p.backend.Registry().Network(o.Network)
		if !ok {
			continue
		}

		a, ok := n.AssetByID(o.AssetID)
		if !ok {
			continue
		}

		if price, err := p.backend.Price(ctx, a, inv.Currency); err == nil {
			out[o.AssetID] = price
		}
	}

	return out
}
