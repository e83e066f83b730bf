package invoice

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// verifyShown checks that the addresses of invoices are those that were made for them: a payer pays what is shown.
// A network that is not served any more has none that could be checked, and none that is paid. The token account of
// an asset that is not enabled any more cannot be checked: it is not shown.
//
// Errors: fault.Unavailable, code invoice_damaged or secret_key_unknown.
func (s *Service) verifyShown(ctx context.Context, r AddressReader, invoices ...Invoice) error {
	if s.seal == nil {
		return nil
	}

	shown := make([]shownAddress, 0, 4) // more than one invoice has in most cases: it stays on the stack

	for _, inv := range invoices {
		for i := range inv.Options {
			o := &inv.Options[i]

			n, ok := s.registry.Network(o.Network)
			if !ok || !o.Selected() {
				continue
			}

			if asset, known := n.AssetByID(o.AssetID); !known {
				o.TokenAccount = ""
			} else if o.TokenAccount != "" && !s.hasTokenAccount(o.Address, asset, o.TokenAccount) {
				return damagedInvoice(inv.ID)
			}

			shown = append(shown, shownAddress{
				space:     n.Space(),
				address:   o.Address,
				invoiceID: inv.ID,
				optionID:  o.ID,
			})
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

	var shown []shownAddress

	for _, d := range deposits {
		n, ok := s.registry.Network(d.Network)
		if !ok {
			continue
		}

		shown = append(shown, shownAddress{space: n.Space(), address: d.Address, depositID: d.ID})
	}

	damaged, err := s.damaged(ctx, r, shown)
	if err == nil && damaged != nil {
		err = damagedDeposit(damaged.depositID)
	}

	return err
}

// hasTokenAccount reports whether account is where an address holds an asset.
func (s *Service) hasTokenAccount(at chain.Address, asset chain.Asset, account chain.Address) bool {
	made, err := s.tokenAccount(at, asset)
	return err == nil && made == account
}

// shownAddress is an address that an object shows, and the object that its row must name.
type shownAddress struct {
	space   chain.Space
	address chain.Address

	invoiceID, optionID string // of an option
	depositID           string // of a deposit address
}

// damaged returns the first of the shown addresses whose row does not say that it was made for its object, or nil.
// A row that was verified within verifiedFor is not read again.
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
		a, ok := made[addressAt{x.space, x.address}]
		if !ok || a.InvoiceID != x.invoiceID || a.OptionID != x.optionID ||
			a.DepositAddressID != x.depositID {
			return &x, nil
		}

		switch err := s.VerifyAddress(a); {
		case fault.Code(err) == "secret_key_unknown":
			return nil, err
		case err != nil:
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
		bySpace[x.space] = append(bySpace[x.space], x.address)
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
		"the address of invoice %s was changed outside this service: restore the row", id,
	)
}

func damagedDeposit(id string) error {
	return fault.New(
		fault.Unavailable, "deposit_address_damaged",
		"the deposit address %s was changed outside this service: restore the row", id,
	)
}
