package checkout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/pricecache"
	"github.com/seed-8ee7f392/payments/invoice"
)

const (
	// merchantTTL is how long a merchant's name and logo are cached.
	merchantTTL = 15 * time.Second
	// priceTimeout is how long a page waits for prices; estimates without one are omitted.
	priceTimeout = 2 * time.Second
)

// snapshot is all input from which a State is computed.
type snapshot struct {
	Invoice  invoice.Invoice
	Payments []invoice.Payment // oldest first
	// MaxPayments is how many of them are shown; 0: all.
	MaxPayments int
	Merchant    merchant
	Networks    *chain.Registry
	// NetworkStatuses are the statuses of the networks of the selected option and of detected payments, by
	// slug.
	NetworkStatuses map[string]networkStatus
	// Prices are of one whole unit in the invoice's currency, by asset id; unknown ones are absent.
	Prices map[string]decimal.Decimal
	Now    time.Time
}

// merchant is the part of an account that a State shows.
type merchant struct {
	Name, WebsiteURL, SuccessURL, CancelURL string
	// LogoVersion is a hash of the logo's bytes; "" without a logo.
	LogoVersion string
}

// merchantProfile is the public part of an account.
type merchantProfile struct {
	merchant
	logoType string
	logo     []byte
}

// loadSnapshot reads everything about an invoice but prices. It costs one query for the payments once an
// option is selected, and one for each network whose status matters. Statuses are not cached: a page that is
// loaded because of a block must show that block.
func (p *pages) loadSnapshot(ctx context.Context, inv invoice.Invoice) (snapshot, error) {
	f := snapshot{
		Invoice:         inv,
		Networks:        p.backend.Registry(),
		NetworkStatuses: map[string]networkStatus{},
		MaxPayments:     p.limits.CheckoutPayments,
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

	needed := map[string]bool{}

	switch inv.Status {
	case invoice.Open, invoice.Pending, invoice.Underpaid:
		needed[selected.Network] = true
	case invoice.Paid, invoice.Expired, invoice.Canceled, invoice.Refunded:
		// Only a detected payment needs a status.
	}

	for _, pay := range f.Payments {
		if pay.Status == invoice.Detected {
			needed[pay.Network] = true
		}
	}

	for slug := range needed {
		if f.NetworkStatuses[slug], err = p.backend.NetworkStatus(ctx, slug); err != nil {
			return snapshot{}, err
		}
	}

	return f, nil
}

// merchant returns an account's profile, cached for merchantTTL.
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
		switch a.LogoType { // a browser could sniff or execute other types
		case "image/png", "image/jpeg", "image/webp":
			if len(a.Logo) > 0 {
				h := sha256.Sum256(a.Logo)
				profile.LogoVersion, profile.logoType, profile.logo = hex.EncodeToString(
					h[:6],
				), a.LogoType, a.Logo
			}
		}

		return profile, nil
	})
}

// prices returns the prices that arrive within priceTimeout, by asset id.
func (p *pages) prices(ctx context.Context, inv invoice.Invoice) map[string]decimal.Decimal {
	ctx, cancel := context.WithTimeout(pricecache.For(ctx, inv.Owner.AccountID), priceTimeout)
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

// A network is behind when no block was read for longer than stallAfter and the time of stallBlocks. It is
// also behind when more than behindBlocks blocks, which took longer than stallAfter, are not read yet.
const (
	stallAfter   = 5 * time.Minute
	stallBlocks  = 12
	behindBlocks = 12
)

// networkTrouble returns State.NetworkTrouble for a network.
func networkTrouble(f snapshot, slug string) string {
	c, known := f.NetworkStatuses[slug]

	switch {
	case !known || c.ReadAt.IsZero():
		return ""
	case c.Stopped:
		return "stopped"
	case f.Now.Sub(c.ReadAt) > max(stallAfter, stallBlocks*c.Pace):
		return "behind"
	case c.Lags:
		return "behind"
	}

	return ""
}

// cache keeps values for a short time. It is safe for concurrent use.
type cache[T any] struct {
	now func() time.Time
	ttl time.Duration

	mu      sync.Mutex
	entries map[string]cacheEntry[T]
}

type cacheEntry[T any] struct {
	value   T
	expires time.Time
}

// maxCached is the number of entries at which a cache is cleared.
const maxCached = 1000

// get returns the value of a key, or calls fetch when it is absent or expired. Errors are not cached.
func (c *cache[T]) get(key string, fetch func() (T, error)) (T, error) {
	now := c.now()

	c.mu.Lock()
	hit, ok := c.entries[key]
	c.mu.Unlock()

	if ok && now.Before(hit.expires) {
		return hit.value, nil
	}

	value, err := fetch()
	if err != nil {
		return value, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.entries == nil || len(c.entries) >= maxCached {
		c.entries = map[string]cacheEntry[T]{}
	}

	c.entries[key] = cacheEntry[T]{value, now.Add(c.ttl)}

	return value, nil
}
