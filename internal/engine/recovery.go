package engine

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/auditor"
	"github.com/seed-8ee7f392/payments/invoice"
)

// Recover moves stray money, which an account holds for an address of ours and no balance shows, to the
// master wallet of the address' owner; see payments.Engine.Recover.
func (e *Engine) Recover(ctx context.Context, network, address, account string) (audit.Recovery, error) {
	driver, err := e.Networks.Driver(network)
	if err != nil {
		return audit.Recovery{}, err
	}

	recoverer, ok := driver.(chain.Recoverer)
	if !ok {
		return audit.Recovery{}, fault.New(
			fault.Unsupported, "recovery_unsupported", "network %s has nothing to recover", network,
		)
	}

	stray, err := findStray(ctx, driver, recoverer, address, account)
	if err != nil {
		return audit.Recovery{}, err
	}

	owner, order, err := e.planRecovery(ctx, driver, recoverer, stray)
	if err != nil {
		return audit.Recovery{}, err
	}

	queued, err := e.Transactions.Recover(ctx, owner, network, order)
	if err != nil {
		return audit.Recovery{}, err
	}

	e.Wake()

	return auditor.RecoveryOf(queued), nil
}

// planRecovery returns the owner of a stray, and the order that moves it. The address' own key must sign, and
// the money must go to its owner.
func (e *Engine) planRecovery(
	ctx context.Context,
	driver chain.Driver,
	recoverer chain.Recoverer,
	stray chain.Stray,
) (event.Owner, chain.Order, error) {
	space := driver.Network().Space()

	found, err := e.config.Store.MatchAddresses(ctx, space, []chain.Address{stray.Address})
	if err != nil {
		return event.Owner{}, chain.Order{}, err
	}

	if len(found) == 0 {
		return event.Owner{}, chain.Order{}, fault.New(
			fault.NotFound, "address_unknown", "%s is no address of this service", stray.Address,
		)
	}

	row := found[0]
	if row.Kind != invoice.ForWallet { // the tags of wallets are those of their accounts
		verified, err := e.Invoices.VerifyAddress(row)
		if err != nil {
			return event.Owner{}, chain.Order{}, err
		}

		row = verified.Address()
	}

	owner := row.Owner
	owner.Livemode = space.Livemode

	merchant, err := e.Accounts.Verify(ctx, owner.AccountID)
	if err != nil {
		return event.Owner{}, chain.Order{}, err
	}

	master, err := e.Transactions.MasterWallet(ctx, driver.Network().Slug, merchant.Index)
	if err != nil {
		return event.Owner{}, chain.Order{}, err
	}

	order, err := recoverer.PlanRecovery(ctx, chain.RecoveryRequest{
		Stray:  stray,
		Owner:  chain.Party{Key: row.Key, Address: row.Address},
		Master: master,
	})

	return owner, order, err
}

// findStray returns the stray of an address that an account holds.
func findStray(
	ctx context.Context,
	driver chain.Driver,
	recoverer chain.Recoverer,
	address, account string,
) (chain.Stray, error) {
	at, err := driver.ParseAddress(address)
	if err != nil {
		return chain.Stray{}, err
	}

	holder, err := driver.ParseAddress(account)
	if err != nil {
		return chain.Stray{}, err
	}

	strays, err := recoverer.Strays(ctx, []chain.Address{at})
	if err != nil {
		return chain.Stray{}, err
	}

	i := slices.IndexFunc(strays, func(s chain.Stray) bool { return s.Address == at && s.Account == holder })
	if i < 0 {
		return chain.Stray{}, fault.New(
			fault.NotFound, "stray_unknown", "%s holds nothing at %s that no balance shows", at, holder,
		)
	}

	return strays[i], nil
}
