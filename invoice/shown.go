package invoice

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// verifyShown checks that the addresses of invoices are those that were made for them: a payer pays to the
// address that is shown. It checks networks that are no longer served too: the row of the address names its
// network. An option without an address that may still get one is checked to be this invoice's, because its
// owner will own that address.
//
// Errors: fault.Unavailable, code invoice_damaged or secret_key_unknown.
func (s *Service) verifyShown(ctx context.Context, r AddressReader, invoices ...Invoice) error {
	if s.seal == nil {
		return nil
	}

	shown := make([]shownAddress, 0, 4) // most invoices have fewer options: it stays on the stack

	for _, inv := range invoices {
		for i := range inv.Options {
			o := &inv.Options[i]
			switch {
			case o.Selected() && !s.checkAsset(o):
				return damagedInvoice(inv.ID)
			case o.Selected():
				shown = append(shown, shownOption(inv, *o))
			case inv.selectableLater():
				if err := s.verifyOption(&inv, o); err != nil {
					return err
				}
			}
		}
	}

	damaged, err := s.damaged(ctx, r, shown)
	if err == nil && damaged != nil {
		err = damagedInvoice(damaged.invoiceID)
	}

	return err
}

// verifyDeposits is verifyShown for deposit addresses.
//
// Errors: fault.Unavailable, code deposit_address_damaged or secret_key_unknown.
func (s *Service) verifyDeposits(ctx context.Context, r AddressReader, deposits ...DepositAddress) error {
	if s.seal == nil {
		return nil
	}

	shown := make([]shownAddress, 0, len(deposits))

	for _, d := range deposits {
		shown = append(shown, shownDeposit(d))
	}

	damaged, err := s.damaged(ctx, r, shown)
	if err == nil && damaged != nil {
		err = damagedDeposit(damaged.depositID)
	}

	return err
}

// verifyPayments checks that the address of each payment was made for the object that it pays.
//
// Errors: fault.Unavailable, code payment_damaged or secret_key_unknown.
func (s *Service) verifyPayments(ctx context.Context, r AddressReader, payments ...Payment) error {
	if s.seal == nil || len(payments) == 0 {
		return nil
	}

	shown := make([]shownAddress, len(payments))
	for i, p := range payments {
		shown[i] = shownAddress{address: p.Address, key: p.Key}
	}

	made, err := matched(ctx, r, shown)
	if err != nil {
		return err
	}

	for i, p := range payments {
		v, err := s.VerifyAddress(made[addressAt{shown[i].space(), p.Address}])
		switch {
		case fault.Code(err) == "secret_key_unknown":
			return err
		case err != nil, !v.received(p):
			return damagedPayment(p.ID)
		}
	}

	return nil
}

// checkAsset reports whether an option's contract and token account are those of its asset. If the asset is
// no longer enabled, its token account cannot be checked: it is cleared.
func (s *Service) checkAsset(o *Option) bool {
	n, served := s.registry.Network(o.Network)

	asset, known := n.AssetByID(o.AssetID)
	if !known {
		o.TokenAccount = ""
	}

	return (!served || chain.AssetID(n.CAIP2, o.Contract) == o.AssetID) &&
		(o.TokenAccount == "" || s.hasTokenAccount(o.Address, asset, o.TokenAccount))
}

// hasTokenAccount reports whether account is where an address holds an asset.
func (s *Service) hasTokenAccount(at chain.Address, asset chain.Asset, account chain.Address) bool {
	made, err := s.tokenAccount(at, asset)
	return err == nil && made == account
}

// shownAddress is an address as an object shows it. The row of the address must have the same values.
type shownAddress struct {
	kind    AddressKind
	owner   event.Owner
	network string
	address chain.Address
	key     chain.KeyRef

	invoiceID, optionID string // of an option
	depositID           string // of a deposit address
}

// shownOption returns the address as an option of an invoice shows it.
func shownOption(inv Invoice, o Option) shownAddress {
	return shownAddress{
		kind:      ForOption,
		owner:     inv.Owner,
		network:   o.Network,
		address:   o.Address,
		key:       o.Key,
		invoiceID: inv.ID,
		optionID:  o.ID,
	}
}

// shownDeposit returns the address as a deposit address shows it.
func shownDeposit(d DepositAddress) shownAddress {
	return shownAddress{
		kind:      ForDeposit,
		owner:     d.Owner,
		network:   d.Network,
		address:   d.Address,
		key:       d.Key,
		depositID: d.ID,
	}
}

// space returns the key space of the address. The tag of its row covers it.
func (x shownAddress) space() chain.Space {
	return chain.Space{Family: x.key.Family, Livemode: x.key.Livemode}
}

// shown returns the address as the object for which it was made must show it.
func (v VerifiedAddress) shown() shownAddress {
	a := v.row

	return shownAddress{
		kind:      a.Kind,
		owner:     a.Owner,
		network:   a.Network,
		address:   a.Address,
		key:       a.Key,
		invoiceID: a.InvoiceID,
		optionID:  a.OptionID,
		depositID: a.DepositAddressID,
	}
}

// damaged returns the first shown address that was not made for its object as shown, or nil. A row that was
// verified within verifiedFor is not read again.
//
// Errors: fault.Unavailable, code secret_key_unknown.
func (s *Service) damaged(
	ctx context.Context,
	r AddressReader,
	shown []shownAddress,
) (*shownAddress, error) {
	unknown := s.verified.without(shown, s.clock())
	if len(unknown) == 0 {
		return nil, nil
	}

	made, err := matched(ctx, r, unknown)
	if err != nil {
		return nil, err
	}

	for _, x := range unknown {
		a, ok := made[addressAt{x.space(), x.address}]
		if !ok {
			return &x, nil
		}

		switch v, err := s.VerifyAddress(a); {
		case fault.Code(err) == "secret_key_unknown":
			return nil, err
		case err != nil, v.shown() != x:
			return &x, nil
		}
	}

	s.verified.add(unknown, s.clock())

	return nil, nil
}

// addressAt is the primary key of an address.
type addressAt struct {
	space   chain.Space
	address chain.Address
}

// matched returns the rows of addresses.
func matched(
	ctx context.Context,
	r AddressReader,
	shown []shownAddress,
) (map[addressAt]Address, error) {
	made, bySpace := map[addressAt]Address{}, map[chain.Space][]chain.Address{}

	for _, x := range shown {
		bySpace[x.space()] = append(bySpace[x.space()], x.address)
	}

	for space, addresses := range bySpace {
		found, err := r.MatchAddresses(ctx, space, addresses)
		if err != nil {
			return nil, err
		}

		for _, a := range found {
			made[addressAt{space, a.Address}] = a
		}
	}

	return made, nil
}

func damagedInvoice(id string) error {
	return fault.New(
		fault.Unavailable, "invoice_damaged",
		"the row of invoice %s was changed outside this service: restore the row", id,
	)
}

func damagedDeposit(id string) error {
	return fault.New(
		fault.Unavailable, "deposit_address_damaged",
		"the deposit address %s was changed outside this service: restore the row", id,
	)
}

func damagedPayment(id string) error {
	return fault.New(
		fault.Unavailable, "payment_damaged",
		"the row of payment %s, or of its address, was changed outside this service: restore the rows", id,
	)
}
