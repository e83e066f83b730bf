package engine

import (
	"context"
	"reflect"
	"sync"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// This file gives the domains the settings of accounts. They come from the one read of an account that was
// verified. So nobody who can write the database can change them between the check and the use.

// records is the store as the domains and handlers read it.
type records struct {
	store.Store
	engine *Engine
}

// records returns the store for reading.
func (e *Engine) records() records { return records{e.config.Store, e} }

// InvoiceSettings returns verified settings.
func (r records) InvoiceSettings(ctx context.Context, accountID string) (invoice.Settings, error) {
	a, err := r.engine.verifiedAccount(ctx, r.Store, accountID)
	return store.InvoiceSettings(a), err
}

// SettlementSettings returns verified settings.
func (r records) SettlementSettings(ctx context.Context, accountID string) (settlement.Settings, error) {
	a, err := r.engine.verifiedAccount(ctx, r.Store, accountID)
	return store.SettlementSettings(a), err
}

// PayoutSettings returns verified settings.
func (r records) PayoutSettings(ctx context.Context, accountID string) (payout.Settings, error) {
	a, err := r.engine.verifiedAccount(ctx, r.Store, accountID)
	return store.PayoutSettings(a), err
}

// InvoiceSettings returns verified settings that hold at the commit. If the store's settings equal those that
// were verified last, the account is not read again: so a creation reads no account.
func (t *transaction) InvoiceSettings(ctx context.Context, accountID string) (invoice.Settings, error) {
	answered, err := t.Tx.InvoiceSettings(ctx, accountID)
	if err != nil || t.engine.settings.wereVerified(accountID, answered) {
		return answered, err
	}

	a, err := t.engine.verifiedAccount(ctx, t.Tx, accountID)

	return store.InvoiceSettings(a), err
}

// SettlementSettings returns the verified settings that open settlements of an account. It reads them only
// once.
func (t *transaction) SettlementSettings(ctx context.Context, accountID string) (settlement.Settings, error) {
	if settings, read := t.reads.settings[accountID]; read {
		return settings, nil
	}

	a, err := t.engine.verifiedAccount(ctx, t.Tx, accountID)
	if err != nil {
		return settlement.Settings{}, err
	}

	if t.reads.settings == nil {
		t.reads.settings = map[string]settlement.Settings{}
	}

	t.reads.settings[accountID] = store.SettlementSettings(a)

	return t.reads.settings[accountID], nil
}

// PayoutSettings returns verified settings.
func (t *transaction) PayoutSettings(ctx context.Context, accountID string) (payout.Settings, error) {
	a, err := t.engine.verifiedAccount(ctx, t.Tx, accountID)
	return store.PayoutSettings(a), err
}

// verifiedAccount reads and verifies an account.
func (e *Engine) verifiedAccount(ctx context.Context, r store.Reader, id string) (account.Account, error) {
	a, err := e.Accounts.VerifyIn(ctx, r, id)
	if err == nil {
		e.settings.verified(a)
	}

	return a, err
}

// maxVerifiedSettings bounds the accounts whose settings are remembered.
const maxVerifiedSettings = 4096

// verifiedSettings remembers the invoice settings of the accounts that were verified last. Equal settings
// need no new check of the tag.
type verifiedSettings struct {
	mu  sync.Mutex
	all map[string]invoice.Settings
}

// verified remembers the settings of a verified account.
func (v *verifiedSettings) verified(a account.Account) {
	v.mu.Lock()
	defer v.mu.Unlock()

	if v.all == nil || len(v.all) >= maxVerifiedSettings {
		v.all = map[string]invoice.Settings{}
	}

	v.all[a.ID] = store.InvoiceSettings(a)
}

// wereVerified reports whether settings equal those of the account when it was last verified.
func (v *verifiedSettings) wereVerified(accountID string, s invoice.Settings) bool {
	v.mu.Lock()
	defer v.mu.Unlock()

	known, ok := v.all[accountID]

	return ok && reflect.DeepEqual(known, s)
}
