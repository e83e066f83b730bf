package invoice

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/pricecache"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
)

// optionAddress is a fresh address for an option.
type optionAddress struct {
	Address
	tokenAccount chain.Address
}

func (a optionAddress) give(o *Option) { // spec D2.2.1
	o.Address, o.TokenAccount, o.Key = a.Address.Address, a.tokenAccount, a.Key
}

func (s *Service) optionAddress(
	ctx context.Context,
	inv *Invoice,
	o Option,
	asset chain.Asset,
) (optionAddress, error) {
	d, err := s.derive(ctx, o.Network)
	if err != nil {
		return optionAddress{}, err
	}

	account, err := s.tokenAccount(d.party.Address, asset)
	if err != nil {
		return optionAddress{}, err
	}

	firstCheck, err := s.intake.FirstCheck(ctx, s.db, o.Network)

	return optionAddress{
		tokenAccount: account,
		Address: Address{
			Space:     d.network.Space(),
			Address:   d.party.Address,
			Kind:      ForOption,
			Owner:     inv.Owner,
			InvoiceID: inv.ID,
			OptionID:  o.ID,
			Network:   o.Network,
			Key:       d.party.Key,
			CreatedAt: s.now(),
			NextCheck: firstCheck,
			Urgent:    true,
		},
	}, err
}

// joinedFor is how long a host's own transaction may take to commit.
const joinedFor = 10 * time.Minute

// putAddress authenticates an address and stores it. In a host's own transaction, the network may be read
// past the address before the transaction commits. Therefore the blocks from here to the latest possible
// commit are read again.
func (s *Service) putAddress(ctx context.Context, tx Tx, a Address, joined bool) error {
	if err := s.authenticate(&a); err != nil {
		return err
	}

	if err := tx.PutAddress(ctx, a); err != nil {
		return err
	}

	if !joined {
		return nil
	}

	cursor, ok, err := tx.Cursor(ctx, a.Network)
	if err != nil || !ok {
		return err
	}

	return tx.PutRange(ctx, &scan.Range{
		ID:        s.ids.Next(),
		Network:   a.Network,
		Addresses: []chain.Address{a.Address},
		Next:      cursor.At.Height + 1,
		To:        cursor.At.Height + max(10, scanstate.BlocksIn(cursor, joinedFor)),
		CreatedAt: s.now(),
	})
}

// preparedSelect is a selection with the fresh rate and the fresh address that it may need.
type preparedSelect struct {
	owner               *event.Owner
	invoiceID, optionID string
	rate                decimal.Decimal
	asset               chain.Asset
	address             *optionAddress
}

// PrepareSelect reads what selecting an option needs. owner is nil on the checkout page. An option that
// cannot be selected now is fault.State; no fresh price is fault.Unavailable.
//
// The returned Commit selects the option. A quote that has not run out is kept, and so is an address that
// another selection derived meanwhile. The remaining amount is computed from the payments at the time of the
// commit.
func (s *Service) PrepareSelect(
	ctx context.Context,
	owner *event.Owner,
	invoiceID, optionID string,
) (Commit[Invoice], error) {
	inv, err := s.read(ctx, s.db, owner, invoiceID)
	if err != nil {
		return nil, err
	}

	prepared, err := s.prepareSelect(ctx, owner, inv, optionID)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx Tx) (Invoice, error) { return s.choose(ctx, tx, prepared) }, nil
}

func (s *Service) prepareSelect(
	ctx context.Context,
	owner *event.Owner,
	inv Invoice,
	optionID string,
) (preparedSelect, error) {
	now, ctx := s.now(), pricecache.For(ctx, inv.Owner.AccountID)

	o, err := inv.selectable(optionID, now)
	if err != nil {
		return preparedSelect{}, err
	}

	p := preparedSelect{owner: owner, invoiceID: inv.ID, optionID: optionID}
	if p.asset, _, err = s.registry.AssetByID(o.Network, o.AssetID); err != nil {
		return preparedSelect{}, err
	}

	if !o.quoted(now) {
		if p.rate, err = s.priceNow(ctx, p.asset, inv.Currency); err != nil {
			return preparedSelect{}, err
		}
	}

	if !o.Selected() {
		a, err := s.optionAddress(ctx, &inv, *o, p.asset)
		if err != nil {
			return preparedSelect{}, err
		}

		p.address = &a
	}

	return p, nil
}

// read returns an invoice of an owner, or of anybody when owner is nil. Its shown addresses are verified.
func (s *Service) read(ctx context.Context, r Reader, owner *event.Owner, id string) (Invoice, error) {
	var (
		inv Invoice
		err error
	)

	if owner == nil {
		inv, err = r.InvoiceByID(ctx, id)
	} else {
		inv, err = r.Invoice(ctx, *owner, id)
	}

	if err == nil {
		err = s.verifyShown(ctx, r, inv)
	}

	return inv, err
}

// choose makes the prepared selection in tx.
func (s *Service) choose(ctx context.Context, tx Tx, p preparedSelect) (Invoice, error) {
	inv, err := s.read(ctx, tx, p.owner, p.invoiceID)
	if err != nil {
		return Invoice{}, err
	}

	now := s.now()

	o, err := inv.selectable(p.optionID, now)
	if err != nil {
		return Invoice{}, err
	}

	if o.quoted(now) && o.Selected() && inv.SelectedOptionID == o.ID {
		return inv, nil
	}

	return Change(ctx, tx, inv, now, func(inv *Invoice, payments []Payment) ([]event.Type, error) {
		if err := s.selectOption(ctx, tx, inv, payments, p, now); err != nil {
			return nil, err
		}

		return inv.Recompute(payments, now), nil
	})
}

// selectOption selects the option, at the address and the quote that were prepared if it has none.
func (s *Service) selectOption(
	ctx context.Context,
	tx Tx,
	inv *Invoice,
	payments []Payment,
	p preparedSelect,
	now time.Time,
) error {
	o, err := inv.selectable(p.optionID, now)
	if err != nil {
		return err
	}

	if !o.quoted(now) {
		if p.rate.IsZero() { // it ran out after it was prepared
			return fault.New(
				fault.Conflict, "quote_expired",
				"the quote of invoice %s ran out just now; select the option again",
				inv.ID,
			)
		}

		if err := inv.quote(o.ID, p.rate, p.asset.MinAmount, payments, now, s.quoteFor); err != nil {
			return err
		}
	}

	if !o.Selected() {
		if p.address == nil {
			return fault.New(
				fault.Conflict, "option_changed", "option %s changed meanwhile; select it again",
				o.ID,
			)
		}

		if err := s.putAddress(ctx, tx, p.address.Address, false); err != nil {
			return err
		}

		p.address.give(o)
	}

	return inv.selectOption(o.ID, now)
}

// Select is PrepareSelect and its commit in a transaction of its own.
func (s *Service) Select(
	ctx context.Context,
	owner *event.Owner,
	invoiceID, optionID string,
) (Invoice, error) {
	return commit(ctx, s, func() (Commit[Invoice], error) {
		return s.PrepareSelect(ctx, owner, invoiceID, optionID)
	})
}
