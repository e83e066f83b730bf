package invoice

import (
	"context"
	"sync"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// seenMost bounds how many accounts' settings a service remembers.
const seenMost = 4096

// seenSettings holds the settings of accounts as the last creation found them. They only prepare an invoice:
// the settings that its transaction reads decide.
type seenSettings struct {
	mu  sync.Mutex
	all map[string]Settings
}

// get returns the settings that were found last.
func (c *seenSettings) get(accountID string) (s Settings, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	s, ok = c.all[accountID]

	return s, ok
}

// put remembers settings.
func (c *seenSettings) put(accountID string, s Settings) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.all == nil || len(c.all) >= seenMost {
		c.all = map[string]Settings{}
	}

	c.all[accountID] = s
}

// assetsBySettings returns the assets of the options, and the settings that selected them. final reports that
// the settings were read for this invoice; otherwise the settings that its transaction reads decide.
func (s *Service) assetsBySettings(
	ctx context.Context,
	p CreateParams,
) (assets []chain.Asset, settings Settings, final bool, err error) {
	account := p.Owner.AccountID
	settings, seen := s.seen.get(account)

	if seen && p.Options != nil && !p.Joined {
		if assets, err = s.assetsFor(ctx, p, settings); err == nil {
			return assets, settings, false, nil
		}
	}

	if settings, err = s.db.InvoiceSettings(ctx, account); err != nil {
		return nil, settings, false, err
	}

	s.seen.put(account, settings)
	assets, err = s.assetsFor(ctx, p, settings)

	return assets, settings, true, err
}

// settle gives an invoice the settings that its transaction reads. An option whose asset is no longer enabled
// is fault.Invalid, asset_not_enabled.
func (s *Service) settle(ctx context.Context, tx Tx, inv *Invoice, ownTolerance bool) error {
	settings, err := tx.InvoiceSettings(ctx, inv.Owner.AccountID)
	if err != nil {
		return err
	}

	s.seen.put(inv.Owner.AccountID, settings)

	for i, o := range inv.Options {
		if !settings.enabled(chain.Asset{ID: o.AssetID}) {
			return assetNotEnabled(optionParam(i), o.Asset, o.Network).AsTransient()
		}
	}

	inv.AcceptLate = settings.AcceptLate
	if !ownTolerance {
		inv.ToleranceBPS = settings.ToleranceBPS
	}

	return nil
}

// assetNotEnabled returns the error for an option, given as a parameter name, whose asset the account does
// not take.
func assetNotEnabled(option, asset, network string) *fault.Error {
	return fault.Param(
		option+".asset", "asset_not_enabled",
		"asset %q is not enabled on network %s; GET /v1/assets lists those that are",
		asset, network,
	)
}
