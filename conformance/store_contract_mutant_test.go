package conformance_test

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
	"github.com/seed-8ee7f392/payments/webhook"
)

// allStoreMutants returns the mutants of the whole suite.
func allStoreMutants() map[string]storeMutant {
	all := maps.Clone(storeMutants)
	maps.Copy(all, contractMutants)
	maps.Copy(all, readMutants)
	maps.Copy(all, uniqueMutants)

	return all
}

// wrapTx mutates the transactions of a store.
func wrapTx[T store.Tx](wrap func(tx store.Tx) T) func(store.Store) store.Store {
	return mutateTx(func(_ store.Store, tx store.Tx) store.Tx { return wrap(tx) })
}

// The transactions below embed the real one and break one method.
type (
	zeroCarry        struct{ store.Tx }
	filledCarry      struct{ store.Tx }
	sharedCarry      struct{ store.Tx }
	zeroResidue      struct{ store.Tx }
	zeroBalance      struct{ store.Tx }
	zeroWallet       struct{ store.Tx }
	freeLease        struct{ store.Tx }
	missingClaim     struct{ store.Tx }
	unlockedAccount  struct{ store.Tx }
	versionedLock    struct{ store.Tx }
	lateClaim        struct{ store.Tx }
	lateDue          struct{ store.Tx }
	limitedClaim     struct{ store.Tx }
	eagerPrune       struct{ store.Tx }
	keptPrune        struct{ store.Tx }
	unboundedPrune   struct{ store.Tx }
	carelessPrune    struct{ store.Tx }
	strictDelete     struct{ store.Tx }
	lazyDelete       struct{ store.Tx }
	startedNumbers   struct{ store.Tx }
	forgottenAnswers struct{ store.Tx }
)

func (tx zeroCarry) Carry(ctx context.Context, o event.Owner, n string) (settlement.CarriedFee, bool, error) {
	c, _, err := tx.Tx.Carry(ctx, o, n)
	return c, true, err
}

func (tx filledCarry) Carry(
	ctx context.Context,
	o event.Owner,
	n string,
) (settlement.CarriedFee, bool, error) {
	c, ok, err := tx.Tx.Carry(ctx, o, n)
	c.Owner, c.Network = o, n

	return c, ok, err
}

func (tx sharedCarry) Carry(
	ctx context.Context,
	o event.Owner,
	n string,
) (settlement.CarriedFee, bool, error) {
	o.Livemode = false
	return tx.Tx.Carry(ctx, o, n)
}

func (tx zeroResidue) Residue(
	ctx context.Context,
	n string,
	a chain.Address,
) (settlement.Residue, bool, error) {
	r, _, err := tx.Tx.Residue(ctx, n, a)
	return r, true, err
}

func (tx zeroBalance) BalanceForUpdate(
	ctx context.Context,
	n string,
	a chain.Address,
	asset string,
) (wallet.Balance, bool, error) {
	b, _, err := tx.Tx.BalanceForUpdate(ctx, n, a, asset)
	return b, true, err
}

func (tx zeroWallet) Wallet(ctx context.Context, n string, a chain.Address) (wallet.Wallet, bool, error) {
	w, ok, err := tx.Tx.Wallet(ctx, n, a)
	if err == nil && !ok {
		err = fault.Missing("wallet", string(a))
	}

	return w, ok, err
}

func (tx freeLease) Leases(ctx context.Context, names []string) (map[string]lease.Lease, error) {
	found, err := tx.Tx.Leases(ctx, names)
	for _, name := range names {
		if _, ok := found[name]; !ok && found != nil {
			found[name] = lease.Lease{Name: name}
		}
	}

	return found, err
}

func (tx missingClaim) IdempotencyRecord(
	ctx context.Context,
	k idempotency.Key,
) (idempotency.Record, bool, error) {
	r, ok, err := tx.Tx.IdempotencyRecord(ctx, k)
	if err == nil && !ok {
		err = fault.Missing("record", k.Key)
	}

	return r, ok, err
}

func (unlockedAccount) LockAccount(context.Context, string) error { return nil }

func (tx versionedLock) LockAccount(ctx context.Context, id string) error {
	a, err := tx.Account(ctx, id)
	if err != nil {
		return err
	}

	return tx.PutAccount(ctx, &a)
}

func (tx lateClaim) ClaimDeliveries(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
	c.Until = c.Until.Add(time.Microsecond)
	return tx.Tx.ClaimDeliveries(ctx, c)
}

func (tx lateDue) ClaimDeliveries(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
	c.Now = c.Now.Add(-time.Microsecond)
	return tx.Tx.ClaimDeliveries(ctx, c)
}

func (tx limitedClaim) ClaimDeliveries(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
	if c.Limit <= 0 {
		return nil, nil
	}

	return tx.Tx.ClaimDeliveries(ctx, c)
}

func (tx eagerPrune) PruneDeliveries(ctx context.Context, before time.Time, limit int) (int, error) {
	return tx.Tx.PruneDeliveries(ctx, before.Add(time.Microsecond), limit)
}

func (tx keptPrune) PruneIdempotencyKeys(ctx context.Context, before time.Time, limit int) (int, error) {
	return tx.Tx.PruneIdempotencyKeys(ctx, before.Add(-time.Hour), limit)
}

func (tx unboundedPrune) PruneEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}

	return tx.Tx.PruneEvents(ctx, before, limit)
}

// PruneEvents ends the deliveries that it should have kept the events for.
func (tx carelessPrune) PruneEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	pending, err := tx.Deliveries(ctx, webhook.DeliveryFilter{Owner: event.Owner{AccountID: "one"}})
	for i := range pending {
		pending[i].Status = webhook.DeliveryFailed
		err = errors.Join(err, tx.PutDeliveries(ctx, &pending[i]))
	}

	n, pruneErr := tx.Tx.PruneEvents(ctx, before, limit)

	return n, errors.Join(err, pruneErr)
}

func (tx strictDelete) DeleteRange(ctx context.Context, id string) error {
	if found, err := tx.Ranges(ctx, "net", 0); err != nil || len(found) == 0 {
		return fault.Missing("range", id)
	}

	return tx.Tx.DeleteRange(ctx, id)
}

func (lazyDelete) DeleteCoin(context.Context, string, chain.Outpoint) error { return nil }

func (tx startedNumbers) ReserveNumbers(ctx context.Context, c string, n int, _ int64) (int64, error) {
	return tx.Tx.ReserveNumbers(ctx, c, n, 1)
}

func (forgottenAnswers) PutIdempotencyAnswer(context.Context, idempotency.Record) error { return nil }

var contractMutants = map[string]storeMutant{
	"zero structs are carried fees": {
		"Contract/AbsentCarries",
		wrapTx(func(tx store.Tx) zeroCarry { return zeroCarry{tx} }),
	},
	"what is absent is filled in": {
		"Contract/Absent",
		wrapTx(func(tx store.Tx) filledCarry { return filledCarry{tx} }),
	},
	"modes share a carried fee": {
		"Contract/AbsentCarries",
		wrapTx(func(tx store.Tx) sharedCarry { return sharedCarry{tx} }),
	},
	"zero structs are residues": {
		"Contract/AbsentResidues",
		wrapTx(func(tx store.Tx) zeroResidue { return zeroResidue{tx} }),
	},
	"zero structs are balances": {
		"Contract/Absent",
		wrapTx(func(tx store.Tx) zeroBalance { return zeroBalance{tx} }),
	},
	"an absent wallet is an error": {
		"Contract/Absent",
		wrapTx(func(tx store.Tx) zeroWallet { return zeroWallet{tx} }),
	},
	"an absent lease has a name": {
		"Contract/Absent",
		wrapTx(func(tx store.Tx) freeLease { return freeLease{tx} }),
	},
	"an absent answer is an error": {
		"Contract/Absent",
		wrapTx(func(tx store.Tx) missingClaim { return missingClaim{tx} }),
	},
	"unknown accounts are locked": {
		"Concurrent/Account",
		wrapTx(func(tx store.Tx) unlockedAccount { return unlockedAccount{tx} }),
	},
	"a lock changes the account": {
		"Contract/LockAccount",
		wrapTx(func(tx store.Tx) versionedLock { return versionedLock{tx} }),
	},
	"a claim outlives its end": {
		"Contract/Deadline",
		wrapTx(func(tx store.Tx) lateClaim { return lateClaim{tx} }),
	},
	"a delivery is due too late": {
		"Contract/Deadline",
		wrapTx(func(tx store.Tx) lateDue { return lateDue{tx} }),
	},
	"a claim without a limit takes nothing": {
		"Limit/Claim",
		wrapTx(func(tx store.Tx) limitedClaim { return limitedClaim{tx} }),
	},
	"what was made at the time is pruned": {
		"Contract/PruneKeeps",
		wrapTx(func(tx store.Tx) eagerPrune { return eagerPrune{tx} }),
	},
	"too little is pruned": {
		"Contract/PruneKeeps",
		wrapTx(func(tx store.Tx) keptPrune { return keptPrune{tx} }),
	},
	"a prune without a limit does nothing": {
		"Limit/Prune",
		wrapTx(func(tx store.Tx) unboundedPrune { return unboundedPrune{tx} }),
	},
	"pending events are pruned": {
		"Events/Prune",
		wrapTx(func(tx store.Tx) carelessPrune { return carelessPrune{tx} }),
	},
	"a delete of nothing fails": {
		"Contract/Deletes",
		wrapTx(func(tx store.Tx) strictDelete { return strictDelete{tx} }),
	},
	"spent coins are not deleted": {
		"Contract/Deletes",
		wrapTx(func(tx store.Tx) lazyDelete { return lazyDelete{tx} }),
	},
	"all counters start at 1": {
		"Numbers",
		wrapTx(func(tx store.Tx) startedNumbers { return startedNumbers{tx} }),
	},
	"answers are not stored": {
		"Idempotency/Answer",
		wrapTx(func(tx store.Tx) forgottenAnswers { return forgottenAnswers{tx} }),
	},
	"an update runs inside an update": {
		"Contract/NestedUpdate",
		mutateUpdate(func(st store.Store, ctx context.Context, f closure) error {
			err := st.Update(ctx, f)
			if fault.Code(err) == "update_nested" {
				return f(ctx, nil)
			}

			return err
		}),
	},
	"the closure's own conflict ends it": {
		"Contract/OwnConflict",
		mutateUpdate(func(st store.Store, ctx context.Context, f closure) error {
			var own error

			err := st.Update(ctx, func(ctx context.Context, tx store.Tx) error {
				if err := f(ctx, tx); errors.Is(err, fault.Conflict) {
					own = err
					return errOnlyOnce
				} else if err != nil {
					return err
				}

				return nil
			})
			if errors.Is(err, errOnlyOnce) {
				return own
			}

			return err
		}),
	},
	"every error runs again": {
		"Contract/OtherErrors",
		mutateUpdate(func(st store.Store, ctx context.Context, f closure) (err error) {
			for range 3 {
				if err = st.Update(ctx, f); err == nil {
					return nil
				}
			}

			return err
		}),
	},
}
