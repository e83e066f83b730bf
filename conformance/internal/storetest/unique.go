package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
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

// uniqueKey is one row of the table "What is unique" of docs/write-a-store.md.
type uniqueKey struct {
	kind recordKind
	// parts change one part of the key each, and nothing else.
	parts []keyPart
	// beside is a second unique key: the record's own key is another one, and so are its other second keys.
	beside func(record any)
}

type keyPart struct {
	name   string
	change func(record any)
}

// part returns a part of the key of records T.
func part[T any](name string, change func(record *T)) keyPart {
	return keyPart{name, func(record any) { change(record.(*T)) }}
}

// idOf is the key of the kinds that have an id and nothing unique beside it.
func idOf[T any](change func(record *T)) []keyPart { return []keyPart{part("id", change)} }

const (
	otherID = "ffffffffffffffffffffffff"
	another = "another"
)

// uniqueKeys returns the keys of all kinds, and the second keys of those that have one.
func uniqueKeys() []uniqueKey {
	kinds := map[string]recordKind{}
	for _, kind := range recordKinds() {
		kinds[kind.name()] = kind
	}

	var keys []uniqueKey

	for name, parts := range keyParts() {
		keys = append(keys, uniqueKey{kind: kinds[name], parts: parts})
	}

	return append(keys, secondKeys(kinds)...)
}

// keyParts returns the parts of the key of each kind.
func keyParts() map[string][]keyPart {
	parts := merchantKeyParts()
	maps.Copy(parts, walletKeyParts())

	return parts
}

// merchantKeyParts returns the parts of the key of each kind of what merchants see.
func merchantKeyParts() map[string][]keyPart {
	return map[string][]keyPart{
		"Account": idOf(func(a *account.Account) { a.ID, a.Index = otherID, a.Index+1 }),
		"Key":     idOf(func(k *account.Key) { k.ID, k.Hash[31] = otherID, k.Hash[31]+1 }),
		"IdempotencyRecord": {
			part("account", func(r *idempotency.Record) { r.Key.Owner.AccountID = another }),
			part("mode", func(r *idempotency.Record) { r.Key.Owner.Livemode = !r.Key.Owner.Livemode }),
			part("key", func(r *idempotency.Record) { r.Key.Key = another }),
		},
		"Invoice":        idOf(func(i *invoice.Invoice) { i.ID = otherID }),
		"Payment":        idOf(func(p *invoice.Payment) { p.ID, p.TxHash = otherID, another }),
		"DepositAddress": idOf(func(d *invoice.DepositAddress) { d.ID = otherID }),
		"Address": {
			part("space", func(a *invoice.Address) { a.Space.Family = another }),
			part("mode", func(a *invoice.Address) { a.Space.Livemode = !a.Space.Livemode }),
			part("address", func(a *invoice.Address) { a.Address = another }),
		},
		"Dust": {
			part("network", func(d *invoice.Dust) { d.Network = another }),
			part("address", func(d *invoice.Dust) { d.Address = another }),
			part("asset", func(d *invoice.Dust) { d.AssetID = another }),
		},
		"DustTransfer": {
			part("network", func(d *invoice.DustTransfer) { d.Network = another }),
			part("transaction hash", func(d *invoice.DustTransfer) { d.TxHash = another }),
			part("index", func(d *invoice.DustTransfer) { d.TxIndex++ }),
			part("address", func(d *invoice.DustTransfer) { d.Address = another }),
			part("asset", func(d *invoice.DustTransfer) { d.AssetID = another }),
		},

		"Settlement": idOf(func(s *settlement.Settlement) { s.ID = otherID }),
		"Release":    idOf(func(s *settlement.Sweep) { s.ID = otherID }),
		"Carry": {
			part("account", func(c *settlement.CarriedFee) { c.Owner.AccountID = another }),
			part("mode", func(c *settlement.CarriedFee) { c.Owner.Livemode = !c.Owner.Livemode }),
			part("network", func(c *settlement.CarriedFee) { c.Network = another }),
		},
		"Residue": {
			part("network", func(r *settlement.Residue) { r.Network = another }),
			part("address", func(r *settlement.Residue) { r.Address = another }),
		},
		"Payout":   idOf(func(p *payout.Payout) { p.ID = otherID }),
		"Refund":   idOf(func(r *payout.Refund) { r.ID = otherID }),
		"Endpoint": idOf(func(e *webhook.Endpoint) { e.ID = otherID }),
		"Event":    idOf(func(e *event.Event) { e.ID = "evt_" + otherID }),
		"Delivery": idOf(func(d *webhook.Delivery) { d.ID = otherID }),
	}
}

// walletKeyParts returns the parts of the key of each kind of what the chain shows and what wallets hold.
func walletKeyParts() map[string][]keyPart {
	return map[string][]keyPart{
		"Cursor": {part("network", func(c *scan.Cursor) { c.Network = another })},
		"Position": {
			part("network", func(p *scan.Position) { p.Network = another }),
			part("address", func(p *scan.Position) { p.Address = another }),
		},
		"Range": idOf(func(r *scan.Range) { r.ID = otherID }),
		"Retry": idOf(func(r *scan.Retry) { r.ID = otherID }),
		"Lease": {part("name", func(l *lease.Lease) { l.Name = another })},

		"Transaction": idOf(func(t *wallet.Transaction) { t.ID = otherID }),
		"Wallet": {
			part("network", func(w *wallet.Wallet) { w.Network = another }),
			part("address", func(w *wallet.Wallet) { w.Party.Address = another }),
		},
		"Balance": {
			part("network", func(b *wallet.Balance) { b.Network = another }),
			part("address", func(b *wallet.Balance) { b.Address = another }),
			part("asset", func(b *wallet.Balance) { b.AssetID = another }),
		},
		"Coin": {
			part("network", func(c *wallet.Coin) { c.Network = another }),
			part("transaction hash", func(c *wallet.Coin) { c.Outpoint.TxHash = another }),
			part("output", func(c *wallet.Coin) { c.Outpoint.Vout++ }),
		},
		"Outgoing": {
			part("network", func(o *wallet.Outgoing) { o.Network = another }),
			part("key of the spend", func(o *wallet.Outgoing) { o.Key = another }),
		},
	}
}

// secondKeys returns what is unique beside the keys.
func secondKeys(kinds map[string]recordKind) []uniqueKey {
	return []uniqueKey{
		{
			kind:   kinds["Account"],
			parts:  []keyPart{part("index", func(a *account.Account) { a.Index++ })},
			beside: func(record any) { record.(*account.Account).ID = otherID },
		},
		{
			kind:   kinds["Key"],
			parts:  []keyPart{part("hash", func(k *account.Key) { k.Hash[31]++ })},
			beside: func(record any) { record.(*account.Key).ID = otherID },
		},
		{
			kind: kinds["Payment"],
			parts: []keyPart{
				part("network", func(p *invoice.Payment) { p.Network = another }),
				part("transaction hash", func(p *invoice.Payment) { p.TxHash = another }),
				part("absence of a hash", func(p *invoice.Payment) { p.TxHash = "" }),
				part("index", func(p *invoice.Payment) { p.TxIndex++ }),
				part("address", func(p *invoice.Payment) { p.Address = another }),
				part("asset", func(p *invoice.Payment) { p.AssetID = another }),
			},
			beside: func(record any) { record.(*invoice.Payment).ID = otherID },
		},
	}
}

// uniqueCases are what is unique: a second record is fault.Duplicate, and one that differs in a single part of the
// key is another record, however equal it is.
func uniqueCases() []testCase {
	cases := []testCase{
		{"Unique/Kinds", testUniqueKinds},
		{"Unique/Transfer", testUniqueTransfer},
		{"Unique/KeyHash", testUniqueKeyHash},
		{"Unique/AccountIndex", testUniqueIndex},
		{"Unique/AttemptHash", testUniqueAttempt},
		{"Unique/IdempotencyKey", testUniqueClaim},
	}

	for _, key := range uniqueKeys() {
		for _, part := range key.parts {
			name := fmt.Sprintf("Unique/%s/%s", key.kind.name(), part.name)
			cases = append(cases, testCase{
				name,
				func(t *testing.T, st store.Store) {
					testUniquePart(t, st, key, part)
				},
			})
		}
	}

	return cases
}

// testUniquePart puts two records that are equal but for one part of a key, each with every field filled.
func testUniquePart(t *testing.T, st store.Store, key uniqueKey, part keyPart) {
	record, rival, second := key.kind.new(0, 10), key.kind.new(0, 10), key.kind.new(0, 10)
	if key.beside != nil {
		key.beside(rival)
		key.beside(second)
	}

	part.change(second)
	update(t, st, putOf(key.kind, record))

	if key.kind.unique() {
		expectError(
			t, st, fault.Duplicate, "a second record of one unique key", putOf(key.kind, rival),
		)
	}

	if err := st.Update(t.Context(), putOf(key.kind, second)); err != nil {
		t.Fatalf("two records that differ in the %s cannot both be put: %v", part.name, err)
	}

	expectRead(t, st, key.kind, "beside another one,", record)
	expectRead(t, st, key.kind, "beside another one,", second)
}

// testUniqueKinds checks that the table has a row for each kind of record.
func testUniqueKinds(t *testing.T, _ store.Store) {
	parts := keyParts()

	for _, kind := range recordKinds() {
		if len(parts[kind.name()]) == 0 {
			t.Errorf("the suite does not say what is unique about %s", kind.name())
		}
	}

	if len(parts) != len(recordKinds()) {
		t.Errorf("the suite has keys of %d kinds, and %d kinds", len(parts), len(recordKinds()))
	}
}

// testUniqueTransfer puts payments of one transfer. Payments without a hash have no transfer.
func testUniqueTransfer(t *testing.T, st store.Store) {
	payment := invoice.Payment{ID: recordID(0), Network: "net", TxHash: "h", TxIndex: 1}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		return tx.PutPayments(ctx, &payment,
			&invoice.Payment{ID: recordID(1), Network: "net", TxHash: "h", TxIndex: 2},
			&invoice.Payment{ID: recordID(2), Network: "other", TxHash: "h", TxIndex: 1},
			&invoice.Payment{ID: recordID(3), Network: "net"},
			&invoice.Payment{ID: recordID(4), Network: "net"},
		)
	})
	expectError(
		t, st, fault.Duplicate, "a second payment of one transfer",
		func(ctx context.Context, tx store.Tx) error {
			return tx.PutPayments(
				ctx, &invoice.Payment{ID: recordID(5), Network: "net", TxHash: "h", TxIndex: 1},
			)
		},
	)
	expectError(
		t, st, fault.Duplicate, "two new payments of one transfer",
		func(ctx context.Context, tx store.Tx) error {
			return tx.PutPayments(
				ctx, &invoice.Payment{ID: recordID(6), Network: "net", TxHash: "new"},
				&invoice.Payment{ID: recordID(7), Network: "net", TxHash: "new"},
			)
		},
	)

	// The transfer may pass from one payment to another.
	payment.TxHash = ""

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.PutPayments(ctx, &payment); err != nil {
			return err
		}

		return tx.PutPayments(ctx, &invoice.Payment{ID: recordID(8), Network: "net", TxHash: "h", TxIndex: 1})
	})
}

// testUniqueKeyHash puts two keys of one hash.
func testUniqueKeyHash(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.PutAccount(ctx, &account.Account{ID: "acc"}); err != nil {
			return err
		}

		key := account.Key{ID: recordID(0), Owner: event.Owner{AccountID: "acc"}, Hash: [32]byte{1}}

		return tx.PutKey(ctx, &key)
	})
	expectError(
		t, st, fault.Duplicate, "a second key of one hash",
		func(ctx context.Context, tx store.Tx) error {
			return tx.PutKey(
				ctx,
				&account.Key{ID: recordID(1), Owner: event.Owner{AccountID: "acc"}, Hash: [32]byte{1}},
			)
		},
	)

	key, of, err := st.KeyByHash(t.Context(), [32]byte{1})

	found := key.ID == recordID(0) && key.Version == 1 && of.ID == "acc" && of.Version == 1
	if err != nil || !found {
		t.Errorf("KeyByHash: %+v %+v %v", key, of, err)
	}

	if _, _, err := st.KeyByHash(t.Context(), [32]byte{2}); !errors.Is(err, fault.NotFound) {
		t.Errorf("KeyByHash of an unknown hash answered %v", err)
	}
}

// testUniqueIndex puts two accounts of one index.
func testUniqueIndex(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		return tx.PutAccount(ctx, &account.Account{ID: "a", Index: 3})
	})

	expectError(
		t, st, fault.Duplicate, "a second account of one index",
		func(ctx context.Context, tx store.Tx) error {
			return tx.PutAccount(ctx, &account.Account{ID: "b", Index: 3})
		},
	)
}

// testUniqueAttempt puts one hash twice on a network, and on another one.
func testUniqueAttempt(t *testing.T, st store.Store) {
	put := func(network, hash string) func(ctx context.Context, tx store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error {
			return tx.PutAttemptHash(ctx, network, hash, "tx", wallet.Payout)
		}
	}

	update(t, st, put("net", "h"))
	update(t, st, put("other", "h"))
	expectError(t, st, fault.Duplicate, "a second attempt of one hash", put("net", "h"))

	got, err := st.OwnTransactions(t.Context(), "net", []string{"h", "x", "h"})
	if err != nil || len(got) != 1 || got["h"] != (wallet.OwnTransaction{ID: "tx", Kind: wallet.Payout}) {
		t.Errorf("OwnTransactions: %v %v", got, err)
	}
}

// testUniqueClaim claims a key twice in a mode, and in the other one.
func testUniqueClaim(t *testing.T, st store.Store) {
	key := idempotency.Key{Owner: event.Owner{AccountID: "acc"}, Key: "k"}
	claim := func(key idempotency.Key) func(ctx context.Context, tx store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error {
			record := idempotency.Record{Key: key, CreatedAt: epoch}
			return tx.ClaimIdempotencyKey(ctx, record, epoch.Add(-time.Hour), time.Second)
		}
	}

	update(t, st, claim(key))
	expectError(t, st, fault.Duplicate, "a second claim of a key", claim(key))

	live := key
	live.Owner.Livemode = true
	update(t, st, claim(live))

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		// A refused claim leaves the transaction usable: the stored answer is read next.
		if err := claim(key)(ctx, tx); !errors.Is(err, fault.Duplicate) {
			t.Errorf("a second claim of a key answered %v", err)
		}

		if _, ok, err := tx.IdempotencyRecord(ctx, key); err != nil || !ok {
			t.Errorf("the record after a refused claim: %v %v", ok, err)
		}

		return nil
	})
}
