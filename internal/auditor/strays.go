package auditor

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// This file lists money at addresses of ours that no balance shows, and its recoveries.

// maxStrayOwners is the number of addresses whose strays are read at once.
const maxStrayOwners = 100

// strays lists the strays of the master wallets and of all addresses.
func (a *auditor) strays(ctx context.Context) error {
	lister, ok := a.driver.(chain.StrayLister)
	if !ok {
		return nil
	}

	err := a.straysOf(ctx, lister, a.masters)
	if err == nil {
		err = a.straysOfAddresses(ctx, lister)
	}

	if errors.Is(err, fault.Unsupported) {
		a.out.Strays, a.out.StraysUnchecked = nil, err.Error()
		return nil
	}

	return err
}

func (a *auditor) straysOfAddresses(ctx context.Context, lister chain.StrayLister) error {
	after := chain.Address("")
	for {
		page, err := a.store.AddressesAfter(ctx, a.network.Space(), after, pageSize)
		if err != nil || len(page) == 0 {
			return err
		}

		owners := map[chain.Address]event.Owner{}

		for _, address := range page {
			if _, isMaster := a.masters[address.Address]; !isMaster {
				owners[address.Address] = address.Owner
			}
		}

		if err := a.straysOf(ctx, lister, owners); err != nil {
			return err
		}

		after = page[len(page)-1].Address
	}
}

// straysOf adds the strays of addresses to the report.
func (a *auditor) straysOf(
	ctx context.Context,
	lister chain.StrayLister,
	owners map[chain.Address]event.Owner,
) error {
	for part := range slices.Chunk(slices.Sorted(maps.Keys(owners)), maxStrayOwners) {
		found, err := lister.Strays(ctx, part)
		if err != nil {
			return err
		}

		for _, stray := range found {
			a.out.Strays = append(a.out.Strays, audit.Stray{Owner: owners[stray.Address], Stray: stray})
		}
	}

	return nil
}

// recovery adds a recovery to the report.
func (a *auditor) recovery(t wallet.Transaction) {
	if t.Kind == wallet.Recovery {
		a.out.Recoveries = append(a.out.Recoveries, RecoveryOf(t))
	}
}

// RecoveryOf returns a transaction of kind wallet.Recovery in the form of the report.
func RecoveryOf(t wallet.Transaction) audit.Recovery {
	out := audit.Recovery{
		ID:      t.ID,
		Owner:   t.Owner,
		State:   t.State,
		TxHash:  t.TxHash,
		Failure: t.Failure,
		Waits:   t.Waits,
	}

	if t.Order.Recovers != nil {
		out.Stray = *t.Order.Recovers
	}

	if len(t.Order.Outputs) > 0 {
		out.Output = t.Order.Outputs[0]
	}

	return out
}
