package storetest

import (
	"context"
	"reflect"
	"testing"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// testAbsent reads rows that nobody stored: ok is false, the record zero, and there is no error.
func testAbsent(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for what, read := range map[string]func() (any, any, bool, error){
			"Carry": func() (any, any, bool, error) {
				got, ok, err := tx.Carry(ctx, owners[0], "net")
				return got, settlement.CarriedFee{}, ok, err
			},
			"CarryForUpdate": func() (any, any, bool, error) {
				got, ok, err := tx.CarryForUpdate(ctx, owners[0], "net")
				return got, settlement.CarriedFee{}, ok, err
			},
			"ResidueForUpdate": func() (any, any, bool, error) {
				got, ok, err := tx.ResidueForUpdate(ctx, "net", "address")
				return got, settlement.Residue{}, ok, err
			},
			"Residue": func() (any, any, bool, error) {
				got, ok, err := tx.Residue(ctx, "net", "address")
				return got, settlement.Residue{}, ok, err
			},
			"BalanceForUpdate": func() (any, any, bool, error) {
				got, ok, err := tx.BalanceForUpdate(ctx, "net", "address", "asset")
				return got.Reservations == nil && got.Version == 0 && got.Network == "", true, ok, err
			},
			"Balance": func() (any, any, bool, error) {
				got, ok, err := tx.Balance(ctx, "net", "address", "asset")
				return got.Reservations == nil && got.Version == 0 && got.Network == "", true, ok, err
			},
			"Wallet": func() (any, any, bool, error) {
				got, ok, err := tx.Wallet(ctx, "net", "address")
				return got.Network == "" && got.Version == 0, true, ok, err
			},
			"Cursor": func() (any, any, bool, error) {
				got, ok, err := tx.Cursor(ctx, "net")
				return got.Network == "" && got.Version == 0, true, ok, err
			},
			"Leases": func() (any, any, bool, error) {
				got, ok, err := oneLease(ctx, tx, "name")
				return got.Name == "" && got.Fence == 0, true, ok, err
			},
			"IdempotencyRecord": func() (any, any, bool, error) {
				got, ok, err := tx.IdempotencyRecord(ctx, idempotency.Key{Owner: owners[0], Key: "k"})
				return got.KeyID == "" && got.Status == 0, true, ok, err
			},
		} {
			if got, want, ok, err := read(); err != nil || ok || !reflect.DeepEqual(got, want) {
				t.Errorf("%s of what is absent: %+v %t (%v)", what, got, ok, err)
			}
		}

		return nil
	})
}

// testAbsentCarries makes the carried fees of several owners on several networks.
func testAbsentCarries(t *testing.T, st store.Store) {
	for n, owner := range owners {
		for _, network := range []string{"a", "b"} {
			update(t, st, func(ctx context.Context, tx store.Tx) error {
				for _, read := range []func(
					context.Context, event.Owner, string,
				) (settlement.CarriedFee, bool, error){tx.Carry, tx.CarryForUpdate} {
					if _, ok, err := read(ctx, owner, network); err != nil || ok {
						t.Errorf("the carry of %v on %s before it was put: %t (%v)", owner, network, ok, err)
					}
				}

				fee := settlement.CarriedFee{
					Owner:   owner,
					Network: network,
					Amount:  chain.Units(uint64(n + 1)),
				}

				return tx.PutCarry(ctx, &fee)
			})
		}
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n, owner := range owners {
			locked, _, _ := tx.CarryForUpdate(ctx, owner, "b")

			got, ok, err := tx.Carry(ctx, owner, "b")
			if locked != got {
				t.Errorf("the carry of %v is %+v, and %+v when it is locked", owner, got, locked)
			}

			if err != nil || !ok || got.Owner != owner || got.Amount != chain.Units(uint64(n+1)) ||
				got.Version != 1 {
				t.Errorf("the carry of %v: %+v %t (%v)", owner, got, ok, err)
			}
		}

		return nil
	})
}

// testAbsentResidues makes the residues of several addresses.
func testAbsentResidues(t *testing.T, st store.Store) {
	for n, at := range []chain.Address{"one", "two"} {
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			for _, read := range []func(
				context.Context, string, chain.Address,
			) (settlement.Residue, bool, error){tx.Residue, tx.ResidueForUpdate} {
				if _, ok, err := read(ctx, "net", at); err != nil || ok {
					t.Errorf("the residue at %s before it was put: %t (%v)", at, ok, err)
				}
			}

			residue := settlement.Residue{Network: "net", Address: at, Owed: chain.Units(uint64(n + 1))}

			return tx.PutResidue(ctx, &residue)
		})
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		locked, _, _ := tx.ResidueForUpdate(ctx, "net", "two")

		got, ok, err := tx.Residue(ctx, "net", "two")
		if !reflect.DeepEqual(locked, got) {
			t.Errorf("the residue at two is %+v, and %+v when it is locked", got, locked)
		}

		if err != nil || !ok || got.Address != "two" || got.Owed != chain.Units(2) {
			t.Errorf("the residue at two: %+v %t (%v)", got, ok, err)
		}

		return nil
	})
}
