package checkout

// Reading what a page is made from: the invoice costs one query, its payments a second once it was selected; what
// many pages share is kept for a short time.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/invoice"
)

// How long shared facts are kept: a merchant's name and logo, and the state of a network.
const (
	merchantFor  = 15 * time.Second
	conditionFor = time.Second
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
	f := facts{Invoice: inv, Networks: p.backend.Registry(), Conditions: map[string]condition{}, Now: p.backend.Now()}
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
	slugs := map[string]bool{}
	for _, pay := range f.Payments {
		slugs[pay.Network] = pay.Status == invoice.Detected || slugs[pay.Network]
	}
	slugs[selected.Network] = true
	for slug, matters := range slugs {
		if !matters {
			continue
		}
		c, err := p.conditions.get(slug, func() (condition, error) { return p.backend.Condition(ctx, slug) })
		if err != nil {
			return facts{}, err
		}
		f.Conditions[slug] = c
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
		card := merchantCard{merchant: merchant{
			Name: a.Settings.Name, WebsiteURL: a.Settings.WebsiteURL, SuccessURL: a.Settings.SuccessURL, CancelURL: a.Settings.CancelURL,
		}}
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
