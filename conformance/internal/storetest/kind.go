package storetest

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

// recordKind is one kind of record with what the suite does to it. Records are pointers.
type recordKind interface {
	name() string
	// new returns a record of the n-th key; its other values follow from seed.
	new(n, seed int) any
	// bare returns a record of the first key with nothing else.
	bare() any
	// renew returns another record of the n-th key, at the version of record.
	renew(record any, n, seed int) any
	put(ctx context.Context, tx store.Tx, record any) error
	// get reads the record with the key of this one. Absent is fault.NotFound.
	get(ctx context.Context, tx store.Tx, record any) (any, error)
	// version points at the record's version; nil when it has none.
	version(record any) *int64
	// unique reports whether a put of a new record under an existing key is fault.Duplicate.
	unique() bool
}

// recordKinds returns all kinds of records.
func recordKinds() []recordKind {
	return slices.Concat(
		accountKinds, invoiceKinds, scanKinds, walletKinds, settlementKinds, payoutKinds,
		webhookKinds,
	)
}

// kindOf is the kind of records T.
type kindOf[T any] struct {
	kind      string
	setKey    func(record *T, n int)
	store     func(tx store.Tx, ctx context.Context, record *T) error
	read      func(ctx context.Context, tx store.Tx, record *T) (T, error)
	versionOf func(*T) *int64 // nil for records without a version
	replaces  bool            // a put of an existing key replaces the record
}

func (k kindOf[T]) name() string { return k.kind }

func (k kindOf[T]) new(n, seed int) any {
	record := new(T)
	(&filler{n: seed}).fill(reflect.ValueOf(record).Elem())
	k.setKey(record, n)
	setAccount(record, n)

	if k.versionOf != nil {
		*k.versionOf(record) = 0
	}

	return record
}

// setAccount gives a record that belongs to an account the account of the n-th key: it never moves to another one.
func setAccount[T any](record *T, n int) {
	owner := reflect.ValueOf(record).Elem().FieldByName("Owner")
	if owner.IsValid() && owner.Type() == reflect.TypeFor[event.Owner]() {
		owner.FieldByName("AccountID").SetString(fmt.Sprintf("account of %d", n))
	}
}

func (k kindOf[T]) bare() any {
	record := new(T)
	k.setKey(record, 0)

	return record
}

func (k kindOf[T]) renew(record any, n, seed int) any {
	fresh := k.new(n, seed)
	if version := k.version(fresh); version != nil {
		*version = *k.version(record)
	}

	return fresh
}

func (k kindOf[T]) put(ctx context.Context, tx store.Tx, record any) error {
	return k.store(tx, ctx, record.(*T))
}

func (k kindOf[T]) get(ctx context.Context, tx store.Tx, record any) (any, error) {
	got, err := k.read(ctx, tx, record.(*T))
	return &got, err
}

func (k kindOf[T]) version(record any) *int64 {
	if k.versionOf == nil {
		return nil
	}

	return k.versionOf(record.(*T))
}

func (k kindOf[T]) unique() bool { return !k.replaces }

// orMissing returns fault.NotFound for a read that is not ok.
func orMissing[T any](record T, ok bool, err error) (T, error) {
	if err == nil && !ok {
		err = fault.Missing("record", "")
	}

	return record, err
}

// findRecord returns the first record of a list that matches, or fault.NotFound.
func findRecord[T any](all []T, err error, matches func(T) bool) (record T, _ error) {
	if err != nil {
		return record, err
	}

	for _, candidate := range all {
		if matches(candidate) {
			return candidate, nil
		}
	}

	return record, fault.Missing("record", "")
}
