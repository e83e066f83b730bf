package storetest

// Work lists: what is due, what waits on a network, what belongs to an address, each against a plain loop.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// Work tests the lists of what is due and what waits.
func Work(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, workTests())
}

func workTests() []testCase {
	return []testCase{
		{"Work/Invoices", testDueInvoices},
		{"Work/Payments", testPaymentWork},
		{"Work/Addresses", testMatchAddresses},
		{"Work/AddressesMade", testAddressesMade},
		{"Work/Watch", testWatchWork},
		{"Work/Transactions", testTransactionWork},
		{"Work/Settlements", testSettlementWork},
		{"Work/PayoutsSince", testPayoutsSince},
		{"Work/Nothing", testNothing},
	}
}

// pick are the ids of the records that pass, in the order of less, or of their ids.
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

func timeKey(at time.Time) string { return fmt.Sprintf("%020d", at.UnixMilli()) }

func invoiceID(i invoice.Invoice) string { return i.ID }

func testDueInvoices(t *testing.T, st store.Store) {
	var all []invoice.Invoice

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		all = nil

		for n := range 30 {
			i := invoice.Invoice{ID: recordID(n), Owner: owners[n%3]}
			if n%4 != 0 {
				i.DueAt = timeAt(n * 7 % 30)
			}

			if err := tx.PutInvoice(ctx, &i); err != nil {
				return err
			}

			all = append(all, i)
		}

		return nil
	})

	now := timeAt(15)
	want := pick(
		all, invoiceID,
		func(i invoice.Invoice) bool { return !i.DueAt.IsZero() && !i.DueAt.After(now) },
		func(i invoice.Invoice) string { return timeKey(i.DueAt) },
	)
	got, err := st.DueInvoices(t.Context(), now, 100)
	expectIDs(t, "DueInvoices", got, err, invoiceID, want, false)
	got, err = st.DueInvoices(t.Context(), now, 3)
	expectIDs(t, "DueInvoices, limit 3", got, err, invoiceID, want[:3], false)

	got, err = st.InvoicesByID(t.Context(), []string{recordID(3), "none", recordID(29), recordID(3)})
	expectIDs(t, "InvoicesByID", got, err, invoiceID, []string{recordID(3), recordID(29)}, true)
}

func testPaymentWork(t *testing.T, st store.Store) {
	var all []invoice.Payment

	statuses := invoice.PaymentStatuses()

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		all = nil

		for n := range 96 {
			p := invoice.Payment{
				ID:        recordID(n),
				Owner:     owners[n%3],
				Status:    statuses[n%4],
				Network:   []string{"a", "b", "c"}[n/4%3],
				InvoiceID: fmt.Sprint("i", n%5),
				Address:   chain.Address(fmt.Sprint("addr", n/24%2)),
				AssetID:   fmt.Sprint("s", n/12%2),
				TxHash:    fmt.Sprint("h", n/3),
				TxIndex:   uint32(n % 3),
			}
			if n%32 >= 8 {
				p.Block = chain.Ref{Height: uint64(50 - n%7), Hash: fmt.Sprint("b", n%7)}
			}

			if n%5 == 0 {
				p.DueAt = timeAt(n * 7 % 30)
			}

			if err := tx.PutPayments(ctx, &p); err != nil {
				return err
			}

			all = append(all, p)
		}

		return nil
	})
	ctx := t.Context()
	id := func(p invoice.Payment) string { return p.ID }
	height := func(p invoice.Payment) string { return fmt.Sprintf("%020d", p.Block.Height) }
	expect := func(
		what string,
		got []invoice.Payment,
		err error,
		anyOrder bool,
		order func(invoice.Payment) string,
		passes func(invoice.Payment) bool,
	) []string {
		t.Helper()

		want := pick(all, id, passes, order)
		if len(want) < 2 {
			t.Fatalf("%s: the suite's own records do not try it: %v", what, want)
		}

		expectIDs(t, what, got, err, id, want, anyOrder)

		return want
	}
	got, err := st.PaymentsOfInvoice(ctx, "i2")
	expect(
		"PaymentsOfInvoice", got, err, false, nil,
		func(p invoice.Payment) bool { return p.InvoiceID == "i2" },
	)
	unconfirmed := func(p invoice.Payment) bool {
		return p.Network == "a" && p.Status == invoice.Detected && !p.Block.IsZero() && p.Block.Height <= 48
	}
	got, err = st.UnconfirmedPayments(ctx, "a", 48, 100)
	want := expect("UnconfirmedPayments", got, err, false, height, unconfirmed)
	got, err = st.UnconfirmedPayments(ctx, "a", 48, 2)
	expectIDs(t, "UnconfirmedPayments, limit 2", got, err, id, want[:2], false)
	got, err = st.PoolPayments(ctx, "b")
	expect("PoolPayments", got, err, true, nil, func(p invoice.Payment) bool {
		return p.Network == "b" && p.Status == invoice.Detected && p.Block.IsZero()
	})
	got, err = st.PaymentsAbove(ctx, "c", 46)
	expect("PaymentsAbove", got, err, true, nil, func(p invoice.Payment) bool {
		return p.Network == "c" && (p.Status == invoice.Detected || p.Status == invoice.Confirmed) &&
			!p.Block.IsZero() &&
			p.Block.Height > 46
	})
	got, err = st.BalancePayments(ctx, "a", "addr0", "s1")
	expect("BalancePayments", got, err, false, nil, func(p invoice.Payment) bool {
		return p.Network == "a" && p.Address == "addr0" && p.AssetID == "s1" && p.Status != invoice.Dropped
	})
	got, err = st.DuePayments(ctx, timeAt(15), 100)
	expect(
		"DuePayments",
		got,
		err,
		false,
		func(p invoice.Payment) string { return timeKey(p.DueAt) },
		func(p invoice.Payment) bool {
			return !p.DueAt.IsZero() && !p.DueAt.After(timeAt(15))
		},
	)

	var keys []invoice.TransferKey
	for n := range 40 {
		keys = append(
			keys, invoice.TransferKey{TxHash: fmt.Sprint("h", n), Index: 1},
			invoice.TransferKey{TxHash: fmt.Sprint("h", n), Index: 1},
		)
	}

	got, err = st.PaymentsByTransfer(ctx, "b", keys)
	expect(
		"PaymentsByTransfer", got, err, true, nil,
		func(p invoice.Payment) bool { return p.Network == "b" && p.TxIndex == 1 },
	)
}

// testMatchAddresses matches batches of recipients far longer than what databases take as arguments.
func testMatchAddresses(t *testing.T, st store.Store) {
	evm, live := chain.Space{Family: chain.EVM}, chain.Space{Family: chain.EVM, Livemode: true}
	address := func(n int) chain.Address { return chain.Address(fmt.Sprintf("0x%040d", n)) }

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 300 {
			if err := tx.PutAddress(
				ctx,
				invoice.Address{
					Space:     evm,
					Address:   address(n * 100),
					Owner:     owners[n%3],
					InvoiceID: fmt.Sprint(n),
				},
			); err != nil {
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
			a := invoice.Address{
				Space:     chain.Space{Family: chain.Solana},
				Address:   chain.Address(fmt.Sprintf("address%02d", n)),
				Kind:      kinds[n%3],
				Network:   []string{"a", "b"}[n/3%2],
				CreatedAt: timeAt(n),
			}
			if err := tx.PutAddress(ctx, a); err != nil {
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
		got, err := st.AddressesMade(t.Context(), "a", c.kind, c.since)
		if ids := idsOf(
			got, func(a invoice.Address) string { return string(a.Address) },
		); err != nil ||
			fmt.Sprint(ids) != c.want {
			t.Errorf("%s addresses made since %s: %v, %v; want %s", c.kind, c.since, ids, err, c.want)
		}
	}
}

func testWatchWork(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 12 {
			network := []string{"a", "b"}[n%2]

			r := scan.Range{ID: recordID(n), Network: network}
			if err := tx.PutRange(ctx, &r); err != nil {
				return err
			}
			// In the order of ids the times fall.
			x := scan.Retry{ID: recordID(n), Network: network, DueAt: timeAt(12 - n)}
			if err := tx.PutRetry(ctx, &x); err != nil {
				return err
			}
		}

		return nil
	})
	ranges, err := st.Ranges(t.Context(), "b", 2)
	expectIDs(
		t, "Ranges", ranges, err, func(r scan.Range) string { return r.ID },
		[]string{recordID(1), recordID(3)}, false,
	)
	retries, err := st.Retries(t.Context(), "a", timeAt(6), 2)
	expectIDs(
		t, "Retries", retries, err, func(r scan.Retry) string { return r.ID },
		[]string{recordID(6), recordID(8)}, false,
	)
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.DeleteRange(ctx, recordID(1)); err != nil {
			return err
		}

		return tx.DeleteRetry(ctx, recordID(6))
	})
	ranges, err = st.Ranges(t.Context(), "b", 1)
	expectIDs(
		t, "Ranges after a deletion", ranges, err, func(r scan.Range) string { return r.ID },
		[]string{recordID(3)}, false,
	)
	retries, err = st.Retries(t.Context(), "a", timeAt(6), 1)
	expectIDs(
		t, "Retries after a deletion", retries, err, func(r scan.Retry) string { return r.ID },
		[]string{recordID(8)}, false,
	)
}

func testTransactionWork(t *testing.T, st store.Store) {
	states := []wallet.State{
		wallet.Queued,
		wallet.Signed,
		wallet.Broadcast,
		wallet.Included,
		wallet.Confirmed,
		wallet.Failed,
	}

	var all []wallet.Transaction

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		all = nil

		for n := range 72 {
			x := wallet.Transaction{
				ID:       recordID(n),
				Network:  []string{"a", "b"}[n/6%2],
				ObjectID: fmt.Sprint("o", n%5),
				State:    states[n%6],
				Order:    chain.Order{From: chain.Party{Address: chain.Address(fmt.Sprint("w", n/12%2))}},
				DueAt:    timeAt(72 - n),
			}
			if n%7 == 0 {
				x.DueAt = time.Time{}
			}

			if err := tx.PutTransaction(ctx, &x); err != nil {
				return err
			}

			all = append(all, x)
		}

		return nil
	})
	ctx := t.Context()
	id := func(x wallet.Transaction) string { return x.ID }
	got, err := st.TransactionsByID(ctx, []string{recordID(40), recordID(2), "none", recordID(40)})
	expectIDs(t, "TransactionsByID", got, err, id, []string{recordID(2), recordID(40)}, false)
	got, err = st.TransactionsOf(ctx, "o3")
	expectIDs(
		t, "TransactionsOf", got, err, id,
		pick(all, id, func(x wallet.Transaction) bool { return x.ObjectID == "o3" }, nil), false,
	)
	onA := pick(all, id, func(x wallet.Transaction) bool { return x.Network == "a" }, nil)
	slices.Reverse(onA)

	got, err = st.Transactions(ctx, "a", "", 5)
	expectIDs(t, "Transactions", got, err, id, onA[:5], false)
	got, err = st.Transactions(ctx, "a", onA[4], 100)
	expectIDs(t, "Transactions, the rest", got, err, id, onA[5:], false)
	due := pick(all, id, func(x wallet.Transaction) bool {
		return x.Network == "b" && !x.DueAt.IsZero() && !x.DueAt.After(timeAt(40))
	}, nil)
	got, err = st.DueTransactions(ctx, "b", timeAt(40), 100)
	expectIDs(t, "DueTransactions", got, err, id, due, false)
	got, err = st.DueTransactions(ctx, "b", timeAt(40), 3)
	expectIDs(t, "DueTransactions, limit 3", got, err, id, due[:3], false)
	got, err = st.LiveTransactions(ctx, "a", "w1")
	expectIDs(t, "LiveTransactions", got, err, id, pick(all, id, func(x wallet.Transaction) bool {
		return x.Network == "a" && x.Live() && x.Order.From.Address == "w1"
	}, nil), false)
}

func testSettlementWork(t *testing.T, st store.Store) {
	reasons := []settlement.Reason{
		"",
		settlement.PaymentOrphaned,
		settlement.Replanning,
		settlement.FundsMissing,
		settlement.Uneconomic,
	}

	var all []settlement.Settlement

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		all = nil

		for n := range 120 {
			s := settlement.Settlement{
				ID:        recordID(n),
				Network:   []string{"a", "b"}[n/30%2],
				Status:    settlement.Statuses()[n%6],
				Reason:    reasons[n/6%5],
				PaymentID: fmt.Sprint("p", n/2),
				Deposit:   chain.Party{Address: chain.Address(fmt.Sprint("w", n/3%2))},
				AssetID:   fmt.Sprint("s", n/5%2),
			}
			if n%7 != 0 {
				s.DueAt = timeAt(120 - n)
			}

			if err := tx.PutSettlements(ctx, &s); err != nil {
				return err
			}

			all = append(all, s)
		}

		for n := range 6 {
			r := settlement.Release{ID: recordID(n), Network: []string{"a", "b"}[n%2], Done: n == 2}
			if err := tx.PutRelease(ctx, &r); err != nil {
				return err
			}
		}

		return nil
	})
	ctx := t.Context()
	id := func(s settlement.Settlement) string { return s.ID }
	due := pick(all, id, func(s settlement.Settlement) bool {
		heals := s.Status == settlement.Failed &&
			(s.Reason == settlement.PaymentOrphaned || s.Reason == settlement.Replanning)

		return s.Network == "b" && (s.Status == settlement.Pending || s.Status == settlement.Held || heals) &&
			!s.DueAt.IsZero() &&
			!s.DueAt.After(timeAt(80))
	}, nil)
	got, err := st.DueSettlements(ctx, "b", timeAt(80), 1000)
	expectIDs(t, "DueSettlements", got, err, id, due, false)
	got, err = st.DueSettlements(ctx, "b", timeAt(80), 3)
	expectIDs(t, "DueSettlements, limit 3", got, err, id, due[:3], false)
	got, err = st.SettlementsAt(ctx, "a", "w1", "s0")
	expectIDs(t, "SettlementsAt", got, err, id, pick(all, id, func(s settlement.Settlement) bool {
		return s.Network == "a" && s.Deposit.Address == "w1" && s.AssetID == "s0" &&
			(s.Status == settlement.Pending || s.Status == settlement.Held)
	}, nil), false)
	got, err = st.SettlementsByID(ctx, []string{recordID(50), recordID(2), "none", recordID(50)})
	expectIDs(t, "SettlementsByID", got, err, id, []string{recordID(2), recordID(50)}, false)
	got, err = st.SettlementsOfPayments(ctx, []string{"p7", "p3", "none", "p7"})
	expectIDs(
		t, "SettlementsOfPayments", got, err, id,
		[]string{recordID(6), recordID(7), recordID(14), recordID(15)}, true,
	)
	releases, err := st.LiveReleases(ctx, "a", 5)
	expectIDs(
		t, "LiveReleases", releases, err, func(r settlement.Release) string { return r.ID },
		[]string{recordID(0), recordID(4)}, false,
	)
	releases, err = st.LiveReleases(ctx, "a", 1)
	expectIDs(
		t, "LiveReleases, limit 1", releases, err,
		func(r settlement.Release) string { return r.ID }, []string{recordID(0)}, false,
	)
}

func testPayoutsSince(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 12 {
			p := payout.Payout{ID: recordID(n), Owner: owners[n%2], CreatedAt: timeAt(n)}
			if n == 8 {
				p.RefundID = "refund"
			}

			if err := tx.PutPayout(ctx, &p); err != nil {
				return err
			}
		}
		// Of the even ones 4, 6 and 10 count, and the one that is just being made.
		p := payout.Payout{ID: recordID(20), Owner: owners[0], CreatedAt: timeAt(20)}
		if err := tx.PutPayout(ctx, &p); err != nil {
			return err
		}

		if n, err := tx.PayoutsSince(ctx, owners[0], timeAt(4)); err != nil || n != 4 {
			t.Errorf("PayoutsSince: %d %v, want 4", n, err)
		}

		return nil
	})
}

// testNothing asks an empty store for everything that is a list, with nothing to look for.
func testNothing(t *testing.T, st store.Store) {
	ctx := t.Context()

	for what, read := range map[string]func() (int, error){
		"InvoicesByID":   func() (int, error) { r, err := st.InvoicesByID(ctx, nil); return len(r), err },
		"DeliveriesByID": func() (int, error) { r, err := st.DeliveriesByID(ctx, nil); return len(r), err },
		"EndpointsByID":  func() (int, error) { r, err := st.EndpointsByID(ctx, nil); return len(r), err },
		"EventsByID":     func() (int, error) { r, err := st.EventsByID(ctx, nil); return len(r), err },
		"PaymentsByTransfer": func() (int, error) {
			r, err := st.PaymentsByTransfer(ctx, "a", nil)
			return len(r), err
		},
		"MatchAddresses": func() (int, error) {
			r, err := st.MatchAddresses(ctx, chain.Space{}, nil)
			return len(r), err
		},
		"OwnTransactions": func() (int, error) {
			r, err := st.OwnTransactions(ctx, "a", nil)
			return len(r), err
		},
		"CoinsOf":          func() (int, error) { r, err := st.CoinsOf(ctx, "a", nil); return len(r), err },
		"TransactionsByID": func() (int, error) { r, err := st.TransactionsByID(ctx, nil); return len(r), err },
		"SettlementsByID":  func() (int, error) { r, err := st.SettlementsByID(ctx, nil); return len(r), err },
		"SettlementsOfPayments": func() (int, error) {
			r, err := st.SettlementsOfPayments(ctx, nil)
			return len(r), err
		},
		"Keys":              func() (int, error) { r, err := st.Keys(ctx, "a"); return len(r), err },
		"PendingDeliveries": func() (int, error) { return st.PendingDeliveries(ctx, "a") },
	} {
		if n, err := read(); err != nil || n != 0 {
			t.Errorf("%s of nothing: %d %v", what, n, err)
		}
	}
}
