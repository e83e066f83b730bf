package auditor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// This file finds reservations of balances for objects that ended.

// reservations reports reservations for objects that ended. It returns the reserved amounts in base units.
func (a *auditor) reservations(ctx context.Context) (map[chain.Holding]chain.Amount, error) {
	rows, err := a.store.BalancesOf(ctx, a.network.Slug)
	if err != nil {
		return nil, err
	}

	reserved := map[chain.Holding]chain.Amount{}
	for _, b := range rows {
		reserved[chain.Holding{Address: b.Address, AssetID: b.AssetID}] = b.Reserved
		for _, r := range b.Reservations {
			if r.Unreserved || r.SpentAt != 0 {
				continue // it ends when the next balance is read
			}

			object, over, err := a.ended(ctx, r.ObjectID)
			if err == nil && over {
				over, err = a.stillReserved(ctx, b, r)
			}

			if err != nil {
				return nil, err
			}

			if over {
				a.report(audit.Difference{
					Kind:    audit.ReservationLeft,
					Address: b.Address,
					AssetID: b.AssetID,
					Found:   r.Amount,
					Message: fmt.Sprintf(
						"%s base units are still reserved for %s %s, which is over",
						r.Amount, object, r.ObjectID,
					),
					Records: []audit.Record{{Object: object, ID: r.ObjectID}},
				})
			}
		}
	}

	return reserved, nil
}

// stillReserved re-reads a balance to rule out a race: a reservation ends in the same transaction
// as its object.
func (a *auditor) stillReserved(ctx context.Context, b wallet.Balance, r wallet.Reservation) (bool, error) {
	now, _, err := a.store.Balance(ctx, b.Network, b.Address, b.AssetID)
	return err == nil && slices.Contains(now.Reservations, r), err
}

// ended reports whether the object of a reservation has ended, and names its kind.
func (a *auditor) ended(ctx context.Context, objectID string) (object string, over bool, err error) {
	if t, err := a.store.Transaction(ctx, objectID); err == nil {
		return "transaction", !walletstate.Live(t), nil
	} else if !errors.Is(err, fault.NotFound) {
		return "", false, err
	}

	if p, err := a.store.PayoutByID(ctx, objectID); err == nil {
		t, err := a.store.Transaction(ctx, p.TransactionID)
		return "payout", err == nil && !walletstate.Live(t), err
	} else if !errors.Is(err, fault.NotFound) {
		return "", false, err
	}

	r, err := a.store.Sweep(ctx, objectID)
	if errors.Is(err, fault.NotFound) {
		return "object", true, nil
	}

	return "release", r.Done, err
}
