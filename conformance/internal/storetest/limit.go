package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// Limits tests the one rule of page sizes on every list: a limit of 0 or less is none.
func Limits(t *testing.T, factory Factory) {
	t.Helper()

	cases := []testCase{
		{"Limit/Work", testWorkLimits},
		{"Limit/Claim", testClaimLimits},
		{"Limit/Prune", testPruneLimits},
	}
	for _, l := range listSuites() {
		cases = append(cases, testCase{"Limit/" + l.name(), l.testLimits})
	}

	run(t, factory, cases)
}

// workRecords is how many records of each kind the work lists hold.
const workRecords = 6

// testLimits lists with limits of 0 and less, which are none, and with one above what there is.
func (l listOf[T, F]) testLimits(t *testing.T, st store.Store) {
	want := l.want(l.fill(t, st, 0, 30), 1)

	for _, limit := range []int{0, -1, -1000, 1000} {
		got, err := l.list(st, t.Context(), l.filter(owners[1], "", limit))
		if ids := idsOf(got, l.id); err != nil || !slices.Equal(ids, want) {
			t.Errorf("limit %d: %v (%v), want all %d", limit, ids, err, len(want))
		}

		got, err = l.list(st, t.Context(), l.filter(owners[1], want[4], limit))
		if ids := idsOf(got, l.id); err != nil || !slices.Equal(ids, want[5:]) {
			t.Errorf("limit %d after the fifth: %v (%v), want the other %d", limit, ids, err, len(want)-5)
		}
	}
}

// putWork puts records of each kind that work lists show, the n-th due at timeAt(n).
func putWork(t *testing.T, st store.Store) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range workRecords {
			id, at, height := recordID(n), timeAt(n), uint64(n+1)
			from := chain.Party{Address: "from"}
			held := chain.Party{Address: chain.Address(id)}

			err := errors.Join(
				tx.PutAccount(ctx, &account.Account{ID: id, Index: uint32(n)}),
				tx.PutInvoice(ctx, &invoice.Invoice{ID: id, DueAt: at}),
				tx.PutPayments(ctx, &invoice.Payment{
					ID:      id,
					Network: "net",
					Status:  invoice.Detected,
					Block:   chain.Ref{Height: height, Hash: id},
					DueAt:   at,
				}),
				tx.PutAddress(ctx, invoice.Address{
					Space:     chain.Space{Family: chain.EVM},
					Address:   chain.Address(id),
					Network:   "net",
					NextCheck: at,
				}),
				tx.PutDustTransfer(ctx, invoice.DustTransfer{
					Network: "net",
					Address: "dust",
					AssetID: "asset",
					TxHash:  id,
					Block:   chain.Ref{Height: height, Hash: id},
				}),
				tx.PutRange(ctx, &scan.Range{ID: id, Network: "net"}),
				tx.PutRetry(ctx, &scan.Retry{ID: id, Network: "net", DueAt: at}),
				tx.PutTransaction(ctx, &wallet.Transaction{
					ID:      id,
					Network: "net",
					DueAt:   at,
					Order:   chain.Order{From: from},
				}),
				tx.PutWallet(ctx, &wallet.Wallet{Network: "net", Party: held, Frozen: "reason"}),
				tx.PutOutgoing(ctx, &wallet.Outgoing{
					Network: "net",
					Key:     id,
					Address: "from",
					Block:   chain.Ref{Height: height},
				}),
				tx.PutSettlements(ctx, &settlement.Settlement{
					ID:      id,
					Network: "net",
					Status:  settlement.Pending,
					DueAt:   at,
				}),
				tx.PutSweep(ctx, &settlement.Sweep{ID: id, Network: "net", DueAt: at}),
			)
			if err != nil {
				return err
			}
		}

		return nil
	})
}

// workList returns the ids of a work list, up to a limit.
type workList func(ctx context.Context, limit int) ([]string, error)

// workLists returns the lists of what is due by a time.
func workLists(st store.Reader, now time.Time) map[string]workList {
	space := func(a invoice.Address) string { return string(a.Address) }

	return map[string]workList{
		"DueInvoices": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(invoiceID)(st.DueInvoices(ctx, now, limit))
		},
		"DuePayments": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(paymentID)(st.DuePayments(ctx, now, limit))
		},
		"DueAddresses": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(space)(st.DueAddresses(ctx, "net", false, now, limit))
		},
		"Retries": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(func(r scan.Retry) string { return r.ID })(st.Retries(ctx, "net", now, limit))
		},
		"DueTransactions": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(transactionID)(st.DueTransactions(ctx, "net", now, limit))
		},
		"DueSettlements": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(func(s settlement.Settlement) string { return s.ID })(
				st.DueSettlements(ctx, "net", now, limit),
			)
		},
		"DueSweeps": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(sweepID)(st.DueSweeps(ctx, "net", now, limit))
		},
	}
}

// limitedLists returns the other lists with a limit.
func limitedLists(st store.Reader) map[string]workList {
	return map[string]workList{
		"Accounts": func(ctx context.Context, limit int) ([]string, error) {
			ids, err := withIDs(func(a account.Account) string { return a.ID })(st.Accounts(ctx, "", limit))
			slices.Reverse(ids) // newest first

			return ids, err
		},
		"Transactions": func(ctx context.Context, limit int) ([]string, error) {
			ids, err := withIDs(transactionID)(st.Transactions(ctx, "net", "", limit))
			slices.Reverse(ids) // newest first

			return ids, err
		},
		"UnconfirmedPayments": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(paymentID)(st.UnconfirmedPayments(ctx, "net", 100, limit))
		},
		"AddressesAfter": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(func(a invoice.Address) string { return string(a.Address) })(
				st.AddressesAfter(ctx, chain.Space{Family: chain.EVM}, "", limit),
			)
		},
		"DustTransfers": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(func(d invoice.DustTransfer) string { return d.TxHash })(
				st.DustTransfers(ctx, "net", "dust", "asset", limit),
			)
		},
		"Ranges": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(func(r scan.Range) string { return r.ID })(st.Ranges(ctx, "net", limit))
		},
		"FrozenWallets": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(func(w wallet.Wallet) string { return string(w.Party.Address) })(
				st.FrozenWallets(ctx, "net", limit),
			)
		},
		"OutgoingOf": func(ctx context.Context, limit int) ([]string, error) {
			return withIDs(func(o wallet.Outgoing) string { return o.Key })(
				st.OutgoingOf(ctx, "net", "from", 0, limit),
			)
		},
	}
}

// withIDs returns a function that turns the result of a list into ids.
func withIDs[T any](id func(T) string) func([]T, error) ([]string, error) {
	return func(all []T, err error) ([]string, error) { return idsOf(all, id), err }
}

// testWorkLimits reads the lists that workers read, with every kind of limit.
func testWorkLimits(t *testing.T, st store.Store) {
	putWork(t, st)

	var want []string
	for n := range workRecords {
		want = append(want, recordID(n))
	}

	for _, lists := range []map[string]workList{workLists(st, timeAt(100)), limitedLists(st)} {
		for what, list := range lists {
			for _, limit := range []int{0, -1, 1000} {
				if ids, err := list(t.Context(), limit); err != nil || !slices.Equal(ids, want) {
					t.Errorf("%s with limit %d: %v (%v), want %v", what, limit, ids, err, want)
				}
			}

			if ids, err := list(t.Context(), 2); err != nil || len(ids) != 2 {
				t.Errorf("%s with limit 2: %v (%v)", what, ids, err)
			}
		}
	}
}

// testClaimLimits claims without limits.
func testClaimLimits(t *testing.T, st store.Store) {
	endpoint := func(n int) string { return fmt.Sprint("e", n%2) }
	putDeliveries(t, st, 12, endpoint, func(int) int { return 0 })

	if got := claimDeliveries(t, st, "p", epoch, 0, 2); len(got) != 4 {
		t.Errorf("without a limit, 2 of each of 2 endpoints: %d", len(got))
	}

	if got := claimDeliveries(t, st, "p", epoch, 3, -1); len(got) != 3 {
		t.Errorf("3 without a limit for each endpoint: %d", len(got))
	}

	if got := claimDeliveries(t, st, "p", epoch, -1, 0); len(got) != 5 {
		t.Errorf("without any limit: %d of the 5 that are left", len(got))
	}
}

// testPruneLimits prunes without a limit.
func testPruneLimits(t *testing.T, st store.Store) {
	for _, limit := range []int{0, -1} {
		putPrunable(t, st)

		for what, prune := range prunes() {
			var pruned int

			update(t, st, func(ctx context.Context, tx store.Tx) (err error) {
				pruned, err = prune.run(tx, ctx, timeAt(100), limit)
				return err
			})

			if left := prune.left(t, st); pruned != 5 || len(left) != 0 {
				t.Errorf("%s with limit %d: %d went, %v are left", what, limit, pruned, left)
			}
		}
	}
}
