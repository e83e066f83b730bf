package invoice

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// authenticator makes and verifies authentication tags of addresses. internal/seal.Sealer implements it.
type authenticator interface {
	// MAC returns a tag that VerifyMAC accepts for the same message and context only.
	MAC(message, context []byte) []byte
	// VerifyMAC checks that MAC made the tag for the message and the context. A tag of a key that is not
	// configured is fault.Unavailable, a wrong one fault.Forbidden.
	VerifyMAC(message, context, tag []byte) error
}

// addressMessage is what the tag of an address covers: its owner and its key.
type addressMessage struct {
	Kind             AddressKind
	AccountID        string
	Livemode         bool
	InvoiceID        string
	OptionID         string
	DepositAddressID string
	Network          string
	Key              chain.KeyRef
}

func (a Address) toAuthenticate() (text, context []byte, err error) {
	text, err = json.Marshal(addressMessage{
		Kind:             a.Kind,
		AccountID:        a.Owner.AccountID,
		Livemode:         a.Owner.Livemode,
		InvoiceID:        a.InvoiceID,
		OptionID:         a.OptionID,
		DepositAddressID: a.DepositAddressID,
		Network:          a.Network,
		Key:              a.Key,
	})

	return text, []byte("addresses/" + a.Space.String() + "/" + string(a.Address)), err
}

// authenticate sets the tag of an address.
func (s *Service) authenticate(a *Address) error {
	text, context, err := a.toAuthenticate()
	if err == nil && s.seal != nil {
		a.MAC = s.seal.MAC(text, context)
	}

	return err
}

// optionMessage is what the tag of an option covers: its owner and its asset.
type optionMessage struct {
	AccountID string
	Livemode  bool
	Network   string
	Asset     string
	AssetID   string
	Contract  chain.Address
	Decimals  uint8
}

func (o Option) toAuthenticate(inv *Invoice) (text, context []byte, err error) {
	text, err = json.Marshal(optionMessage{
		AccountID: inv.Owner.AccountID,
		Livemode:  inv.Owner.Livemode,
		Network:   o.Network,
		Asset:     o.Asset,
		AssetID:   o.AssetID,
		Contract:  o.Contract,
		Decimals:  o.Decimals,
	})

	return text, []byte("options/" + inv.ID + "/" + o.ID), err
}

// authenticateOption sets the tag of an option of an invoice.
func (s *Service) authenticateOption(inv *Invoice, o *Option) error {
	text, context, err := o.toAuthenticate(inv)
	if err == nil && s.seal != nil {
		o.MAC = s.seal.MAC(text, context)
	}

	return err
}

// verifyOption checks that this service made an option without an address, and made it for this invoice.
//
// Errors: fault.Unavailable, code invoice_damaged or secret_key_unknown.
func (s *Service) verifyOption(inv *Invoice, o *Option) error {
	text, context, err := o.toAuthenticate(inv)
	if err != nil {
		return err
	}

	if o.TokenAccount != "" {
		return damagedInvoice(inv.ID)
	}

	err = s.seal.VerifyMAC(text, context, o.MAC)
	if errors.Is(err, fault.Forbidden) {
		err = damagedInvoice(inv.ID)
	}

	return err
}

// VerifiedAddress is the row of an address as this service wrote it. Only Service.VerifyAddress makes one, so
// that its owner comes from the read that was verified.
type VerifiedAddress struct{ row Address }

// Address returns the row.
func (v VerifiedAddress) Address() Address { return v.row }

// Pays reports whether the address received a payment for an invoice: all three have the same owner, and the
// invoice's option shows the address. A payment without an option may be on another network of the key space.
func (v VerifiedAddress) Pays(p Payment, inv Invoice) bool {
	o := inv.Option(v.row.OptionID)

	return o != nil && v.received(p) && v.shown() == shownOption(inv, *o) &&
		(p.OptionID == "" || p.OptionID == o.ID)
}

// PaysDeposit reports whether the address received a payment for a deposit address of the same owner.
func (v VerifiedAddress) PaysDeposit(p Payment, d DepositAddress) bool {
	return v.received(p) && v.shown() == shownDeposit(d)
}

// received reports whether a payment was sent to the address, with the same owner and key.
func (v VerifiedAddress) received(p Payment) bool {
	a := v.row

	return a.Address == p.Address && a.Key == p.Key && a.Owner == p.Owner &&
		a.InvoiceID == p.InvoiceID && a.DepositAddressID == p.DepositAddressID
}

// VerifyAddress returns the row of an address that was made for its owner through this service.
//
// Errors: fault.Unavailable, code address_damaged or secret_key_unknown.
func (s *Service) VerifyAddress(a Address) (VerifiedAddress, error) {
	text, context, err := a.toAuthenticate()
	if err != nil || s.seal == nil {
		return VerifiedAddress{a}, err
	}

	if err = s.seal.VerifyMAC(text, context, a.MAC); errors.Is(err, fault.Forbidden) {
		err = fault.Wrap(
			err, fault.Unavailable, "address_damaged",
			"the row of address %s was changed outside this service", a.Address,
		)
	}

	if err != nil {
		return VerifiedAddress{}, err
	}

	return VerifiedAddress{a}, nil
}

// resealBatch is the number of addresses that one transaction authenticates anew.
const resealBatch = 500

// ResealAddresses authenticates the addresses of a space with payments.Config.SecretKey if an older key did.
// It returns how many rows it changed. A row whose tag is wrong stays as it is; the first such row is the
// error.
func (s *Service) ResealAddresses(ctx context.Context, space chain.Space) (done int, err error) {
	if s.seal == nil {
		return 0, nil
	}

	var (
		damaged error
		after   chain.Address
	)

	for {
		var (
			page    []Address
			changed []Address
			wrong   error
		)

		err := s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
			if page, err = tx.AddressesAfter(ctx, space, after, resealBatch); err != nil {
				return err
			}

			changed, wrong, err = s.resealed(page)
			if err != nil || len(changed) == 0 {
				return err
			}

			return tx.UpdateAddresses(ctx, changed...)
		})
		if err != nil {
			return done, errors.Join(err, damaged)
		}

		if done += len(changed); damaged == nil {
			damaged = wrong
		}

		if len(page) < resealBatch {
			return done, damaged
		}

		after = page[len(page)-1].Address
	}
}

// resealed returns the addresses of a page whose tag changes, and the error of the first one whose tag is
// wrong. Wallets have no tag.
func (s *Service) resealed(page []Address) (changed []Address, wrong, err error) {
	for _, a := range page {
		if a.Kind == ForWallet {
			continue
		}

		if _, err := s.VerifyAddress(a); err != nil {
			if wrong == nil {
				wrong = err
			}

			continue
		}

		before := string(a.MAC)
		if err := s.authenticate(&a); err != nil {
			return nil, nil, err
		}

		if string(a.MAC) != before {
			changed = append(changed, a)
		}
	}

	return changed, wrong, nil
}
