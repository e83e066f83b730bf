package invoice

import (
	"context"
	"encoding/hex"
	"io"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// linkBytes is the length of a checkout token, in bytes of entropy.
const linkBytes = 16

// CheckoutID returns the last part of the invoice's checkout link: its id, and "-" with a token once the link was
// renewed.
func (inv Invoice) CheckoutID() string {
	if inv.CheckoutToken == "" {
		return inv.ID
	}

	return inv.ID + "-" + inv.CheckoutToken
}

// renewCheckout gives an invoice a new checkout link in tx, in any status. The previous link is void from
// then on. It emits no event: a merchant need not react to it.
//
// Errors: fault.NotFound; fault.Unavailable: entropy failed.
func (s *Service) renewCheckout(ctx context.Context, tx Tx, owner event.Owner, id string) (Invoice, error) {
	var token [linkBytes]byte
	if _, err := io.ReadFull(s.entropy, token[:]); err != nil {
		return Invoice{}, fault.Wrap(
			err, fault.Unavailable, "entropy_unavailable", "invoice %s has no new checkout link", id,
		)
	}

	return s.change(ctx, tx, owner, id, func(inv *Invoice, _ []Payment) ([]event.Type, error) {
		inv.CheckoutToken = hex.EncodeToString(token[:])
		return nil, nil
	})
}

// RenewCheckout gives an invoice a new checkout link, in any status. The previous link ends.
func (s *Service) RenewCheckout(ctx context.Context, owner event.Owner, id string) (Invoice, error) {
	return update(ctx, s, func(ctx context.Context, tx Tx) (Invoice, error) {
		return s.renewCheckout(ctx, tx, owner, id)
	})
}
