package storetest

// Records of every kind: filled by reflection, so that a field added to a record later is covered
// without a change here, and with the ways to put and read each.

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
	"github.com/seed-8ee7f392/payments/webhook"
)

// epoch is the time that the suite counts from.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// recordID returns the n-th id of the suite: ids sort as their numbers.
func recordID(n int) string { return fmt.Sprintf("%024x", n+1) }

// filler sets every exported field of what v points to, each to a value that no other field has.
// Times are not in UTC, amounts need 256 bits, decimals all their places.
type filler struct{ n int }

func (f *filler) fill(v reflect.Value) {
	f.n++

	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = epoch.Add(time.Duration(f.n) * 1001 * time.Millisecond).
			In(time.FixedZone("elsewhere", 3*3600))

		return
	case *chain.Amount:
		n := new(big.Int).Lsh(big.NewInt(1), 255)
		*p, _ = chain.AmountFromBig(n.Add(n, big.NewInt(int64(f.n))))

		return
	case *decimal.Decimal:
		*p = decimal.RequireFromString(fmt.Sprintf("%d.12345678", f.n))
		return
	case *decimal.NullDecimal:
		*p = decimal.NewNullDecimal(decimal.RequireFromString(fmt.Sprintf("%d.00000009", f.n)))
		return
	case *json.RawMessage:
		*p = json.RawMessage(fmt.Sprintf(`{"b": %d,  "a":1.50, "b": "\u0000é<"}`, f.n))
		return
	}

	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("V%04d é'\"", f.n))
	case reflect.Bool: // differs between fields of a record, and between records
		v.SetBool(uint32(f.n)*2654435761>>16&1 == 1)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.n) % 251)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))

		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key)
			f.fill(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i))
			}
		}
	case reflect.Interface: // Event.Subject, which is not stored
	default:
		panic(fmt.Sprintf("conformance: records have no fields of type %s", v.Type()))
	}
}

// eachTime calls see for every time in v.
func eachTime(v reflect.Value, path string, see func(path string, at time.Time)) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		see(path, v.Interface().(time.Time))
		return
	}

	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachTime(v.Elem(), path, see)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachTime(v.Index(i), fmt.Sprintf("%s[%d]", path, i), see)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				eachTime(v.Field(i), path+"."+f.Name, see)
			}
		}
	}
}

// sameRecord are the options under which a record read equals the record put.
var sameRecord = cmp.Options{
	cmp.Comparer(func(a, b chain.Amount) bool { return a == b }),
	cmpopts.EquateEmpty(),
}

// recordKind is one kind of record with what the suite does to it.
type recordKind interface {
	name() string
	// new returns a record of the n-th key; its other values follow from seed.
	new(n, seed int) any
	// bare returns a record of the first key with nothing else.
	bare() any
	// renew returns another record of the same, n-th key and version.
	renew(record any, n, seed int) any
	copy(record any) any
	put(ctx context.Context, tx store.Tx, record any) error
	// get reads the record with the key of this one; absent is fault.NotFound.
	get(ctx context.Context, tx store.Tx, record any) (any, error)
	// version points at the record's version; nil when it has none.
	version(record any) *int64
	// unique reports whether putting a record of an existing key is fault.Duplicate.
	unique() bool
}

type kindOf[T any] struct {
	kind    string
	key     func(record *T, n int)
	putter  func(ctx context.Context, tx store.Tx, record *T) error
	getter  func(ctx context.Context, tx store.Tx, record *T) (T, error)
	versed  func(*T) *int64
	replace bool // a put of an existing key replaces it
}

func (k kindOf[T]) name() string { return k.kind }

func (k kindOf[T]) new(n, seed int) any {
	record := new(T)
	(&filler{n: seed}).fill(reflect.ValueOf(record).Elem())
	k.key(record, n)

	if k.versed != nil {
		*k.versed(record) = 0
	}

	return record
}

func (k kindOf[T]) bare() any {
	record := new(T)
	k.key(record, 0)

	return record
}

func (k kindOf[T]) renew(record any, n, seed int) any {
	fresh := k.new(n, seed)
	if v := k.version(fresh); v != nil {
		*v = *k.version(record)
	}

	return fresh
}

func (k kindOf[T]) copy(record any) any {
	c := *record.(*T)
	return &c
}

func (k kindOf[T]) put(ctx context.Context, tx store.Tx, record any) error {
	return k.putter(ctx, tx, record.(*T))
}

func (k kindOf[T]) get(ctx context.Context, tx store.Tx, record any) (any, error) {
	got, err := k.getter(ctx, tx, record.(*T))
	return &got, err
}

func (k kindOf[T]) version(record any) *int64 {
	if k.versed == nil {
		return nil
	}

	return k.versed(record.(*T))
}

func (k kindOf[T]) unique() bool { return !k.replace }

// orMissing turns the answer of a read with ok into one with an error.
func orMissing[T any](record T, ok bool, err error) (T, error) {
	if err == nil && !ok {
		err = fault.Missing("record", "")
	}

	return record, err
}

// findRecord returns the one record of a list, or fault.NotFound.
func findRecord[T any](all []T, err error, is func(T) bool) (record T, _ error) {
	if err != nil {
		return record, err
	}

	for _, r := range all {
		if is(r) {
			return r, nil
		}
	}

	return record, fault.Missing("record", "")
}

// recordKinds are all kinds of records.
func recordKinds() []recordKind {
	return []recordKind{
		kindOf[account.Account]{
			kind:   "Account",
			key:    func(a *account.Account, n int) { a.ID, a.Index = recordID(n), uint32(n) },
			putter: func(ctx context.Context, tx store.Tx, a *account.Account) error { return tx.PutAccount(ctx, a) },
			getter: func(ctx context.Context, tx store.Tx, a *account.Account) (account.Account, error) {
				return tx.Account(ctx, a.ID)
			},
			versed: func(a *account.Account) *int64 { return &a.Version },
		},
		kindOf[account.Key]{
			kind: "Key",
			key: func(k *account.Key, n int) {
				k.ID, k.Owner.AccountID = recordID(n), "acc"
				k.Hash = [32]byte{byte(n), byte(n >> 8), 7}
			},
			putter: func(ctx context.Context, tx store.Tx, k *account.Key) error { return tx.PutKey(ctx, k) },
			getter: func(ctx context.Context, tx store.Tx, k *account.Key) (account.Key, error) {
				all, err := tx.Keys(ctx, k.Owner.AccountID)
				return findRecord(all, err, func(x account.Key) bool { return x.ID == k.ID })
			},
			versed: func(k *account.Key) *int64 { return &k.Version },
		},
		kindOf[idempotency.Record]{
			kind: "IdempotencyRecord",
			key: func(r *idempotency.Record, n int) {
				r.Key = idempotency.Key{Owner: event.Owner{AccountID: "acc", Livemode: true}, Key: recordID(n)}
			},
			putter: func(ctx context.Context, tx store.Tx, r *idempotency.Record) error {
				claim := *r

				claim.Status, claim.SealedBody = 0, nil
				if err := tx.ClaimIdempotencyKey(ctx, claim, time.Time{}, time.Second); err != nil {
					return err
				}

				return tx.PutIdempotencyAnswer(ctx, *r)
			},
			getter: func(ctx context.Context, tx store.Tx, r *idempotency.Record) (idempotency.Record, error) {
				return orMissing(tx.IdempotencyRecord(ctx, r.Key))
			},
		},
		kindOf[invoice.Invoice]{
			kind:   "Invoice",
			key:    func(i *invoice.Invoice, n int) { i.ID = recordID(n) },
			putter: func(ctx context.Context, tx store.Tx, i *invoice.Invoice) error { return tx.PutInvoice(ctx, i) },
			getter: func(ctx context.Context, tx store.Tx, i *invoice.Invoice) (invoice.Invoice, error) {
				return tx.InvoiceByID(ctx, i.ID)
			},
			versed: func(i *invoice.Invoice) *int64 { return &i.Version },
		},
		kindOf[invoice.Payment]{
			kind:   "Payment",
			key:    func(p *invoice.Payment, n int) { p.ID = recordID(n) },
			putter: func(ctx context.Context, tx store.Tx, p *invoice.Payment) error { return tx.PutPayments(ctx, p) },
			getter: func(ctx context.Context, tx store.Tx, p *invoice.Payment) (invoice.Payment, error) {
				return tx.PaymentByID(ctx, p.ID)
			},
			versed: func(p *invoice.Payment) *int64 { return &p.Version },
		},
		kindOf[invoice.Address]{
			kind: "Address",
			key: func(a *invoice.Address, n int) {
				a.Space, a.Address = chain.Space{Family: "fam", Livemode: false}, chain.Address(recordID(n))
			},
			putter: func(ctx context.Context, tx store.Tx, a *invoice.Address) error { return tx.PutAddress(ctx, *a) },
			getter: func(ctx context.Context, tx store.Tx, a *invoice.Address) (invoice.Address, error) {
				all, err := tx.MatchAddresses(ctx, a.Space, []chain.Address{a.Address})
				return findRecord(all, err, func(invoice.Address) bool { return true })
			},
		},
		kindOf[invoice.DepositAddress]{
			kind: "DepositAddress",
			key:  func(d *invoice.DepositAddress, n int) { d.ID, d.Owner.AccountID = recordID(n), "acc" },
			putter: func(ctx context.Context, tx store.Tx, d *invoice.DepositAddress) error {
				return tx.PutDepositAddress(ctx, d)
			},
			getter: func(ctx context.Context, tx store.Tx, d *invoice.DepositAddress) (invoice.DepositAddress, error) {
				return tx.DepositAddress(ctx, d.Owner, d.ID)
			},
			versed: func(d *invoice.DepositAddress) *int64 { return &d.Version },
		},
		kindOf[scan.Cursor]{
			kind:   "Cursor",
			key:    func(c *scan.Cursor, n int) { c.Network = recordID(n) },
			putter: func(ctx context.Context, tx store.Tx, c *scan.Cursor) error { return tx.PutCursor(ctx, c) },
			getter: func(ctx context.Context, tx store.Tx, c *scan.Cursor) (scan.Cursor, error) {
				return orMissing(tx.Cursor(ctx, c.Network))
			},
			versed: func(c *scan.Cursor) *int64 { return &c.Version },
		},
		kindOf[scan.Range]{
			kind:   "Range",
			key:    func(r *scan.Range, n int) { r.ID, r.Network = recordID(n), "net" },
			putter: func(ctx context.Context, tx store.Tx, r *scan.Range) error { return tx.PutRange(ctx, r) },
			getter: func(ctx context.Context, tx store.Tx, r *scan.Range) (scan.Range, error) {
				all, err := tx.Ranges(ctx, r.Network, 1000)
				return findRecord(all, err, func(x scan.Range) bool { return x.ID == r.ID })
			},
			versed: func(r *scan.Range) *int64 { return &r.Version },
		},
		kindOf[scan.Retry]{
			kind:   "Retry",
			key:    func(r *scan.Retry, n int) { r.ID, r.Network = recordID(n), "net" },
			putter: func(ctx context.Context, tx store.Tx, r *scan.Retry) error { return tx.PutRetry(ctx, r) },
			getter: func(ctx context.Context, tx store.Tx, r *scan.Retry) (scan.Retry, error) {
				all, err := tx.Retries(ctx, r.Network, epoch.AddDate(1, 0, 0), 1000)
				return findRecord(all, err, func(x scan.Retry) bool { return x.ID == r.ID })
			},
			versed: func(r *scan.Retry) *int64 { return &r.Version },
		},
		kindOf[lease.Lease]{
			kind:    "Lease",
			key:     func(l *lease.Lease, n int) { l.Name, l.Fence = recordID(n), max(l.Fence, 1) },
			replace: true,
			putter:  func(ctx context.Context, tx store.Tx, l *lease.Lease) error { return tx.PutLease(ctx, *l) },
			getter: func(ctx context.Context, tx store.Tx, l *lease.Lease) (lease.Lease, error) {
				return orMissing(tx.Lease(ctx, l.Name))
			},
		},
		kindOf[wallet.Transaction]{
			kind: "Transaction",
			key:  func(x *wallet.Transaction, n int) { x.ID = recordID(n) },
			putter: func(ctx context.Context, tx store.Tx, x *wallet.Transaction) error {
				return tx.PutTransaction(ctx, x)
			},
			getter: func(ctx context.Context, tx store.Tx, x *wallet.Transaction) (wallet.Transaction, error) {
				return tx.Transaction(ctx, x.ID)
			},
			versed: func(x *wallet.Transaction) *int64 { return &x.Version },
		},
		kindOf[wallet.Wallet]{
			kind:   "Wallet",
			key:    func(w *wallet.Wallet, n int) { w.Network, w.Party.Address = "net", chain.Address(recordID(n)) },
			putter: func(ctx context.Context, tx store.Tx, w *wallet.Wallet) error { return tx.PutWallet(ctx, w) },
			getter: func(ctx context.Context, tx store.Tx, w *wallet.Wallet) (wallet.Wallet, error) {
				return orMissing(tx.Wallet(ctx, w.Network, w.Party.Address))
			},
			versed: func(w *wallet.Wallet) *int64 { return &w.Version },
		},
		kindOf[wallet.Balance]{
			kind: "Balance",
			key: func(b *wallet.Balance, n int) {
				b.Network, b.Address, b.AssetID = "net", chain.Address(recordID(n)), "asset"
			},
			putter: func(ctx context.Context, tx store.Tx, b *wallet.Balance) error { return tx.PutBalance(ctx, b) },
			getter: func(ctx context.Context, tx store.Tx, b *wallet.Balance) (wallet.Balance, error) {
				return orMissing(tx.BalanceForUpdate(ctx, b.Network, b.Address, b.AssetID))
			},
			versed: func(b *wallet.Balance) *int64 { return &b.Version },
		},
		kindOf[wallet.Coin]{
			kind: "Coin",
			key: func(c *wallet.Coin, n int) {
				// A coin that was spent is in no list: the field has a test of its own.
				c.Network, c.Outpoint, c.Owner.Address, c.SpentBy = "net", chain.Outpoint{
					TxHash: recordID(n),
					Vout:   3,
				}, "wallet", ""
			},
			putter: func(ctx context.Context, tx store.Tx, c *wallet.Coin) error { return tx.PutCoin(ctx, c) },
			getter: func(ctx context.Context, tx store.Tx, c *wallet.Coin) (wallet.Coin, error) {
				all, err := tx.Coins(ctx, c.Network, c.Owner.Address)
				return findRecord(all, err, func(x wallet.Coin) bool { return x.Outpoint == c.Outpoint })
			},
			versed: func(c *wallet.Coin) *int64 { return &c.Version },
		},
		kindOf[settlement.Settlement]{
			kind: "Settlement",
			key:  func(s *settlement.Settlement, n int) { s.ID = recordID(n) },
			putter: func(ctx context.Context, tx store.Tx, s *settlement.Settlement) error {
				return tx.PutSettlements(ctx, s)
			},
			getter: func(ctx context.Context, tx store.Tx, s *settlement.Settlement) (settlement.Settlement, error) {
				all, err := tx.SettlementsByID(ctx, []string{s.ID})
				return findRecord(all, err, func(settlement.Settlement) bool { return true })
			},
			versed: func(s *settlement.Settlement) *int64 { return &s.Version },
		},
		kindOf[settlement.Release]{
			kind: "Release",
			key:  func(r *settlement.Release, n int) { r.ID = recordID(n) },
			putter: func(ctx context.Context, tx store.Tx, r *settlement.Release) error {
				return tx.PutRelease(ctx, r)
			},
			getter: func(ctx context.Context, tx store.Tx, r *settlement.Release) (settlement.Release, error) {
				return tx.Release(ctx, r.ID)
			},
			versed: func(r *settlement.Release) *int64 { return &r.Version },
		},
		kindOf[settlement.Carry]{
			kind: "Carry",
			key: func(c *settlement.Carry, n int) {
				c.Owner, c.Network = event.Owner{AccountID: "acc", Livemode: true}, recordID(n)
			},
			putter: func(ctx context.Context, tx store.Tx, c *settlement.Carry) error { return tx.PutCarry(ctx, c) },
			getter: func(ctx context.Context, tx store.Tx, c *settlement.Carry) (settlement.Carry, error) {
				got, err := tx.Carry(ctx, c.Owner, c.Network)
				return orMissing(got, got.Version != 0, err)
			},
			versed: func(c *settlement.Carry) *int64 { return &c.Version },
		},
		kindOf[settlement.Residue]{
			kind: "Residue",
			key:  func(r *settlement.Residue, n int) { r.Network, r.Address = "net", chain.Address(recordID(n)) },
			putter: func(ctx context.Context, tx store.Tx, r *settlement.Residue) error {
				return tx.PutResidue(ctx, r)
			},
			getter: func(ctx context.Context, tx store.Tx, r *settlement.Residue) (settlement.Residue, error) {
				got, err := tx.Residue(ctx, r.Network, r.Address)
				return orMissing(got, got.Version != 0, err)
			},
			versed: func(r *settlement.Residue) *int64 { return &r.Version },
		},
		kindOf[payout.Payout]{
			kind:   "Payout",
			key:    func(p *payout.Payout, n int) { p.ID = recordID(n) },
			putter: func(ctx context.Context, tx store.Tx, p *payout.Payout) error { return tx.PutPayout(ctx, p) },
			getter: func(ctx context.Context, tx store.Tx, p *payout.Payout) (payout.Payout, error) {
				return tx.PayoutByID(ctx, p.ID)
			},
			versed: func(p *payout.Payout) *int64 { return &p.Version },
		},
		kindOf[payout.Refund]{
			kind:   "Refund",
			key:    func(r *payout.Refund, n int) { r.ID = recordID(n) },
			putter: func(ctx context.Context, tx store.Tx, r *payout.Refund) error { return tx.PutRefund(ctx, r) },
			getter: func(ctx context.Context, tx store.Tx, r *payout.Refund) (payout.Refund, error) {
				return tx.RefundByID(ctx, r.ID)
			},
			versed: func(r *payout.Refund) *int64 { return &r.Version },
		},
		kindOf[webhook.Endpoint]{
			kind:   "Endpoint",
			key:    func(e *webhook.Endpoint, n int) { e.ID, e.Owner.AccountID = recordID(n), "acc" },
			putter: func(ctx context.Context, tx store.Tx, e *webhook.Endpoint) error { return tx.PutEndpoint(ctx, e) },
			getter: func(ctx context.Context, tx store.Tx, e *webhook.Endpoint) (webhook.Endpoint, error) {
				return tx.WebhookEndpoint(ctx, e.Owner, e.ID)
			},
			versed: func(e *webhook.Endpoint) *int64 { return &e.Version },
		},
		kindOf[event.Event]{
			kind: "Event",
			key: func(e *event.Event, n int) {
				// Subject and Previous are for reactions and rendering; neither is stored.
				e.ID, e.Subject, e.Previous = "evt_"+recordID(n), nil, nil
			},
			putter: func(ctx context.Context, tx store.Tx, e *event.Event) error { return tx.PutEvents(ctx, *e) },
			getter: func(ctx context.Context, tx store.Tx, e *event.Event) (event.Event, error) {
				return tx.Event(ctx, e.Owner, e.ID)
			},
		},
		kindOf[webhook.Delivery]{
			kind: "Delivery",
			key:  func(d *webhook.Delivery, n int) { d.ID, d.Owner.AccountID = recordID(n), "acc" },
			putter: func(ctx context.Context, tx store.Tx, d *webhook.Delivery) error {
				return tx.PutDeliveries(ctx, d)
			},
			getter: func(ctx context.Context, tx store.Tx, d *webhook.Delivery) (webhook.Delivery, error) {
				return tx.Delivery(ctx, d.Owner, d.ID)
			},
			versed: func(d *webhook.Delivery) *int64 { return &d.Version },
		},
	}
}
