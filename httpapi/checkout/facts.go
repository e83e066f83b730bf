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
	// merchantTTL is how long a merchant's name and logo are kept.
	merchantTTL = 15 * time.Second
	// priceTimeout bounds how long a page waits for estimates; those that did not come are left out.
	priceTimeout = 2 * time.Second
)

// merchantProfile is what the page keeps of an account.
type merchantProfile struct {
	merchant
	logoType string
	logo     []byte
}

// facts reads everything about an invoice but prices.
func (p *pages) loadSnapshot(ctx context.Context, inv invoice.Invoice) (snapshot, error) {
	f := snapshot{
		Invoice:         inv,
		Networks:        p.backend.Registry(),
		NetworkStatuses: map[string]networkStatus{},
		Now:             p.backend.Now(),
	}

	profile, err := p.merchant(ctx, inv.Owner.AccountID)
	if err != nil {
		return snapshot{}, err
	}

	f.Merchant = profile.merchant

	selected := selectedOption(&f.Invoice)
	if selected == nil {
		return f, nil
	}

	if f.Payments, err = p.backend.Payments(ctx, inv.ID); err != nil {
		return snapshot{}, err
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
		if f.NetworkStatuses[slug], err = p.backend.NetworkStatus(ctx, slug); err != nil {
			return snapshot{}, err
		}
	}

	return f, nil
}

// merchant returns an account's public side.
func (p *pages) merchant(ctx context.Context, accountID string) (merchantProfile, error) {
	return p.merchants.get(accountID, func() (merchantProfile, error) {
		a, err := p.backend.Account(ctx, accountID)
		if err != nil {
			return merchantProfile{}, err
		}

		profile := merchantProfile{
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
				profile.LogoVersion, profile.logoType, profile.logo = hex.EncodeToString(h[:6]), a.LogoType, a.Logo
			}
		}

		return profile, nil
	})
}

// prices returns the prices that are at hand, by asset id. A page can be shown without.
func (p *pages) prices(ctx context.Context, inv invoice.Invoice) map[string]decimal.Decimal {
	ctx, cancel := context.WithTimeout(ctx, priceTimeout)
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
