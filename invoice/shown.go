package invoice

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// verifyShown checks that the addresses of invoices are those that were made for them: a payer pays what is shown.
//
// Errors: fault.Unavailable, code invoice_damaged or secret_key_unknown.
func (s *Service) verifyShown(ctx context.Context, r AddressReader, invoices ...Invoice) error {
	if s.seal == nil {
		return nil
	}

	shown := map[chain.Space][]chain.Address{}

	for _, inv := range invoices {
		for _, o := range inv.Options {
			if n, ok := s.registry.Network(o.Network); ok && o.Selected() {
				shown[n.Space()] = append(shown[n.Space()], o.Address)
			}
		}
	}

	made, err := matched(ctx, r, shown)
	if err != nil {
		return err
	}

	for _, inv := range invoices {
		for _, o := range inv.Options {
			if !o.Selected() {
				continue
			}

			if err := s.verifyOption(made, inv, o); err != nil {
				return err
			}
		}
	}

	return nil
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
	shown map[chain.Space][]chain.Address,
) (map[addressAt]Address, error) {
	made := map[addressAt]Address{}

	for space, addresses := range shown {
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

// verifyOption checks that the address of an option is one that was made for it. A network that is not served any
// more has none that could be checked, and none that is paid.
func (s *Service) verifyOption(made map[addressAt]Address, inv Invoice, o Option) error {
	n, ok := s.registry.Network(o.Network)
	if !ok {
		return nil
	}

	a, ok := made[addressAt{n.Space(), o.Address}]
	damaged := !ok || a.InvoiceID != inv.ID || a.OptionID != o.ID

	if !damaged {
		err := s.VerifyAddress(a)
		if fault.Code(err) == "secret_key_unknown" {
			return err
		}

		damaged = err != nil
	}

	if asset, _, err := s.registry.AssetByID(o.Network, o.AssetID); err == nil && !damaged {
		account, err := s.tokenAccount(o.Address, asset)
		damaged = err != nil || account != o.TokenAccount
	}

	if damaged {
		return fault.New(
			fault.Unavailable, "invoice_damaged",
			"the address of invoice %s was changed outside this service: restore the row", inv.ID,
		)
	}

	return nil
}

// verifyDeposits is verifyShown for deposit addresses.
//
// Errors: fault.Unavailable, code deposit_address_damaged or secret_key_unknown.
func (s *Service) verifyDeposits(ctx context.Context, r AddressReader, deposits ...DepositAddress) error {
	if s.seal == nil {
		return nil
	}

	shown := map[chain.Space][]chain.Address{}

	for _, d := range deposits {
		if n, ok := s.registry.Network(d.Network); ok {
			shown[n.Space()] = append(shown[n.Space()], d.Address)
		}
	}

	made, err := matched(ctx, r, shown)
	if err != nil {
		return err
	}

	for _, d := range deposits {
		n, ok := s.registry.Network(d.Network)
		if !ok {
			continue
		}

		a, ok := made[addressAt{n.Space(), d.Address}]
		damaged := !ok || a.DepositAddressID != d.ID

		if !damaged {
			err := s.VerifyAddress(a)
			if fault.Code(err) == "secret_key_unknown" {
				return err
			}

			damaged = err != nil
		}

		for _, t := range d.TokenAccounts {
			asset, ok := n.Asset(t.Asset)
			if !ok || damaged {
				continue
			}

			account, err := s.tokenAccount(d.Address, asset)
			damaged = err != nil || account != t.TokenAccount
		}

		if damaged {
			return fault.New(
				fault.Unavailable, "deposit_address_damaged",
				"the deposit address %s was changed outside this service: restore the row", d.ID,
			)
		}
	}

	return nil
}
