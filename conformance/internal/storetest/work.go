package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// Work tests the lists of what is due, what waits on a network and what belongs to an address. Each
// is compared with a plain loop over the same records.
func Work(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, []testCase{
		{"Work/Invoices", testDueInvoices},
		{"Work/Payments", testPaymentWork},
		{"Work/Addresses", testMatchAddresses},
		{"Work/AddressesMade", testAddressesMade},
		{"Work/DueAddresses", testDueAddresses},
		{"Work/Dust", testDust},
		{"Work/Watch", testWatchWork},
		{"Work/Positions", testPositions},
		{"Work/FrozenWallets", testFrozenWallets},
		{"Work/UnrecordedOutgoing", testUnrecordedOutgoing},
		{"Work/OutgoingByHeight", testOutgoingByHeight},
		{"Work/Transactions", testTransactionWork},
		{"Work/Settlements", testSettlementWork},
		{"Work/PayoutsSince", testPayoutsSince},
		{"Work/Nothing", testNothing},
	})
}

// testDueInvoices reads invoices by time and by id.
func testDueInvoices(t *testing.T, st store.Store) {
	var all []invoice.Invoice

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		all = nil

		for n := range 30 {
			inv := invoice.Invoice{ID: recordID(n), Owner: owners[n%3]}
			if n%4 != 0 {
				inv.DueAt = timeAt(n * 7 % 30)
			}

			if err := tx.PutInvoice(ctx, &inv); err != nil {
				return err
			}

			all = append(all, inv)
		}

		return nil
	})

	now := timeAt(15)
	want := pick(
		all, invoiceID,
		func(inv invoice.Invoice) bool { return isDue(inv.DueAt, now) },
		func(inv invoice.Invoice) string { return timeKey(inv.DueAt) },
	)

	got, err := st.DueInvoices(t.Context(), now, 100)
	expectIDs(t, "DueInvoices", got, err, invoiceID, want, false)

	got, err = st.DueInvoices(t.Context(), now, 3)
	expectIDs(t, "DueInvoices, limit 3", got, err, invoiceID, want[:3], false)

	got, err = st.InvoicesByID(t.Context(), []string{recordID(3), "none", recordID(29), recordID(3)})
	expectIDs(t, "InvoicesByID", got, err, invoiceID, []string{recordID(3), recordID(29)}, true)
}

func invoiceID(inv invoice.Invoice) string { return inv.ID }

func paymentID(payment invoice.Payment) string { return payment.ID }

// isDue reports whether work is due at a time. The zero time is never due.
func isDue(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// timeKey returns a string that sorts as its time does.
func timeKey(at time.Time) string { return fmt.Sprintf("%020d", at.UnixMilli()) }

// pick returns the ids of the records that pass, in an order and then in that of their ids.
func pick[T any](all []T, id func(T) string, passes func(T) bool, order func(T) string) []string {
	picked := slices.DeleteFunc(slices.Clone(all), func(r T) bool { return !passes(r) })
	slices.SortStableFunc(picked, func(a, b T) int {
		if order != nil {
			if c := strings.Compare(order(a), order(b)); c != 0 {
				return c
			}
		}

		return strings.Compare(id(a), id(b))
	})

	return idsOf(picked, id)
}

// testPaymentWork reads the payments of an invoice, of a network and of an address.
func testPaymentWork(t *testing.T, st store.Store) {
	ctx, all := t.Context(), putPayments(t, st)

	for _, c := range []struct {
		what     string
		read     func() ([]invoice.Payment, error)
		passes   func(invoice.Payment) bool
		order    func(invoice.Payment) string // of the list; nil for that of ids
		anyOrder bool
	}{
		{
			what:   "PaymentsOfInvoices",
			read:   func() ([]invoice.Payment, error) { return st.PaymentsOfInvoices(ctx, []string{"i2"}) },
			passes: func(payment invoice.Payment) bool { return payment.InvoiceID == "i2" },
		},
		{
			what: "UnminedPayments",
			read: func() ([]invoice.Payment, error) { return st.UnminedPayments(ctx, "b") },
			passes: func(payment invoice.Payment) bool {
				waits := payment.Status == invoice.Detected || payment.Status == invoice.Orphaned
				return payment.Network == "b" && waits && payment.Block.IsZero()
			},
			anyOrder: true,
		},
		{
			what: "PaymentsAbove",
			read: func() ([]invoice.Payment, error) { return st.PaymentsAbove(ctx, "c", 46) },
			passes: func(payment invoice.Payment) bool {
				active := payment.Status == invoice.Detected || payment.Status == invoice.Confirmed
				return payment.Network == "c" && active && !payment.Block.IsZero() && payment.Block.Height > 46
			},
			anyOrder: true,
		},
		{
			what: "BalancePayments",
			read: func() ([]invoice.Payment, error) {
				return st.BalancePayments(ctx, "a", []chain.Address{"addr0"})
			},
			passes: func(payment invoice.Payment) bool {
				return payment.Network == "a" && payment.Address == "addr0" && payment.Status != invoice.Dropped
			},
			anyOrder: true,
		},
		{
			what: "BalancePayments of several",
			read: func() ([]invoice.Payment, error) {
				return st.BalancePayments(ctx, "a", []chain.Address{"addr1", "none", "addr0", "addr1"})
			},
			passes: func(payment invoice.Payment) bool {
				at := payment.Address == "addr0" || payment.Address == "addr1"
				return at && payment.Network == "a" && payment.Status != invoice.Dropped
			},
			anyOrder: true,
		},
		{
			what: "PaymentsOfInvoices of several",
			read: func() ([]invoice.Payment, error) {
				all, err := st.PaymentsOfInvoices(ctx, []string{"i2", "none", "i6", "i2"})
				slices.SortStableFunc(all, func(a, b invoice.Payment) int {
					return strings.Compare(a.InvoiceID, b.InvoiceID)
				})

				return all, err
			},
			passes: func(payment invoice.Payment) bool {
				return payment.InvoiceID == "i2" || payment.InvoiceID == "i6"
			},
			order: func(payment invoice.Payment) string { return payment.InvoiceID },
		},
		{
			what:   "DuePayments",
			read:   func() ([]invoice.Payment, error) { return st.DuePayments(ctx, timeAt(15), 100) },
			passes: func(payment invoice.Payment) bool { return isDue(payment.DueAt, timeAt(15)) },
			order:  func(payment invoice.Payment) string { return timeKey(payment.DueAt) },
		},
		{
			what:     "PaymentsByHash",
			read:     func() ([]invoice.Payment, error) { return st.PaymentsByHash(ctx, "b", transferHashes()) },
			passes:   func(payment invoice.Payment) bool { return payment.Network == "b" && payment.TxHash != "h3" },
			anyOrder: true,
		},
	} {
		got, err := c.read()
		expectIDs(t, c.what, got, err, paymentID, wantPayments(t, c.what, all, c.passes, c.order), c.anyOrder)
	}

	testUnconfirmedPayments(t, st, all)
}

// testUnconfirmedPayments reads the payments that wait for confirmation at a height, lowest first.
func testUnconfirmedPayments(t *testing.T, st store.Store, all []invoice.Payment) {
	t.Helper()

	unconfirmed := func(payment invoice.Payment) bool {
		inBlock := !payment.Block.IsZero() && payment.Block.Height <= 48
		return payment.Network == "a" && payment.Status == invoice.Detected && inBlock
	}
	height := func(payment invoice.Payment) string { return fmt.Sprintf("%020d", payment.Block.Height) }
	want := wantPayments(t, "UnconfirmedPayments", all, unconfirmed, height)

	got, err := st.UnconfirmedPayments(t.Context(), "a", 48, 100)
	expectIDs(t, "UnconfirmedPayments", got, err, paymentID, want, false)

	got, err = st.UnconfirmedPayments(t.Context(), "a", 48, 2)
	expectIDs(t, "UnconfirmedPayments, limit 2", got, err, paymentID, want[:2], false)
}

// wantPayments returns the ids of the payments that pass: at least two, or the case tests nothing.
func wantPayments(
	t *testing.T,
	what string,
	all []invoice.Payment,
	passes func(invoice.Payment) bool,
	order func(invoice.Payment) string,
) []string {
	t.Helper()

	want := pick(all, paymentID, passes, order)
	if len(want) < 2 {
		t.Fatalf("%s: the suite's own records do not try it: %v", what, want)
	}

	return want
}

// putPayments puts payments of all statuses, on three networks, in blocks and in the pool.
func putPayments(t *testing.T, st store.Store) (all []invoice.Payment) {
	t.Helper()

	statuses := invoice.PaymentStatuses()

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		all = nil

		for n := range 96 {
			at := n / 24 % 2 // an address, and an invoice, is of one account

			payment := invoice.Payment{
				ID:        recordID(n),
				Owner:     owners[at],
				Status:    statuses[n%4],
				Network:   []string{"a", "b", "c"}[n/4%3],
				InvoiceID: fmt.Sprint("i", 5*at+n%5),
				Address:   chain.Address(fmt.Sprint("addr", at)),
				AssetID:   fmt.Sprint("s", n/12%2),
				TxHash:    fmt.Sprint("h", n/3),
				TxIndex:   uint32(n % 3),
			}
			if n%32 >= 8 {
				payment.Block = chain.Ref{Height: uint64(50 - n%7), Hash: fmt.Sprint("b", n%7)}
			}

			if n%5 == 0 {
				payment.DueAt = timeAt(n * 7 % 30)
			}

			if err := tx.PutPayments(ctx, &payment); err != nil {
				return err
			}

			all = append(all, payment)
		}

		return nil
	})

	return all
}

// transferHashes returns the hashes of 40 transactions but one, each twice.
func transferHashes() []string {
	var hashes []string

	for n := range 40 {
		if n != 3 {
			hashes = append(hashes, fmt.Sprint("h", n), fmt.Sprint("h", n))
		}
	}

	return hashes
}

// testMatchAddresses matches batches of recipients far longer than what databases take as arguments.
func testMatchAddresses(t *testing.T, st store.Store) {
	evm, live := chain.Space{Family: chain.EVM}, chain.Space{Family: chain.EVM, Livemode: true}
	address := func(n int) chain.Address { return chain.Address(fmt.Sprintf("0x%040d", n)) }

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 300 {
			a := invoice.Address{
				Space:     evm,
				Address:   address(n * 100),
				Owner:     owners[n%3],
				InvoiceID: fmt.Sprint(n),
			}
			if err := tx.PutAddress(ctx, a); err != nil {
				return err
			}
		}

		// The same address in another space is another one.
		return tx.PutAddress(ctx, invoice.Address{Space: live, Address: address(100), InvoiceID: "live"})
	})

	batch := make([]chain.Address, 40_000)
	for n := range batch {
		batch[n] = address(n)
	}

	got, err := st.MatchAddresses(t.Context(), evm, append(batch, batch[100]))
	if err != nil || len(got) != 300 {
		t.Fatalf("%d addresses of 300 are ours (%v)", len(got), err)
	}

	for _, a := range got {
		if a.Address == address(100) && a.InvoiceID != "1" || a.Space != evm {
			t.Errorf("an address of another space: %+v", a)
		}
	}

	got, err = st.MatchAddresses(t.Context(), live, []chain.Address{address(0), address(100)})
	if err != nil || len(got) != 1 || got[0].InvoiceID != "live" {
		t.Errorf("the live space: %+v %v", got, err)
	}
}

// testAddressesMade lists addresses by network, kind and age.
func testAddressesMade(t *testing.T, st store.Store) {
	kinds := []invoice.AddressKind{invoice.ForOption, invoice.ForDeposit, invoice.ForWallet}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 24 {
			address := invoice.Address{
				Space:     chain.Space{Family: chain.Solana},
				Address:   chain.Address(fmt.Sprintf("address%02d", n)),
				Kind:      kinds[n%3],
				Network:   []string{"a", "b"}[n/3%2],
				CreatedAt: timeAt(n),
			}
			if err := tx.PutAddress(ctx, address); err != nil {
				return err
			}
		}

		return nil
	})

	for _, c := range []struct {
		kind  invoice.AddressKind
		since time.Time
		want  string
	}{
		{invoice.ForOption, time.Time{}, "[address18 address12 address06 address00]"},
		{invoice.ForOption, timeAt(12), "[address18 address12]"},
		{invoice.ForOption, timeAt(13), "[address18]"},
		{invoice.ForOption, timeAt(19), "[]"},
		{invoice.ForDeposit, timeAt(7), "[address19 address13 address07]"},
	} {
		got, err := st.AddressesSince(t.Context(), "a", c.kind, c.since)

		ids := idsOf(got, func(address invoice.Address) string { return string(address.Address) })
		if err != nil || fmt.Sprint(ids) != c.want {
			t.Errorf("%s addresses made since %s: %v, %v; want %s", c.kind, c.since, ids, err, c.want)
		}
	}
}
