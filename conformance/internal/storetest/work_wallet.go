package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// testWatchWork reads ranges and retries of a network, in order and within the limit.
func testWatchWork(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 12 {
			network := []string{"a", "b"}[n%2]

			r := scan.Range{ID: recordID(n), Network: network}
			if err := tx.PutRange(ctx, &r); err != nil {
				return err
			}

			// In the order of ids the times fall.
			retry := scan.Retry{ID: recordID(n), Network: network, DueAt: timeAt(12 - n)}
			if err := tx.PutRetry(ctx, &retry); err != nil {
				return err
			}
		}

		return nil
	})

	expectRanges(t, st, "Ranges", 2, recordID(1), recordID(3))
	expectRetries(t, st, "Retries", 2, recordID(6), recordID(8))

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.DeleteRange(ctx, recordID(1)); err != nil {
			return err
		}

		return tx.DeleteRetry(ctx, recordID(6))
	})

	expectRanges(t, st, "Ranges after a deletion", 1, recordID(3))
	expectRetries(t, st, "Retries after a deletion", 1, recordID(8))
}

// testPositions reads positions by their addresses, of one network alone.
func testPositions(t *testing.T, st store.Store) {
	put := func(network, address, read string) {
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			p := scan.Position{Network: network, Address: chain.Address(address), UpdatedAt: timeAt(1)}

			known, err := tx.Positions(ctx, network, []chain.Address{p.Address})
			if err != nil {
				return err
			}

			if len(known) > 0 {
				p = known[0]
			}

			p.Read = read

			return tx.PutPosition(ctx, &p)
		})
	}

	put("a", "one", "first")
	put("a", "two", "second")
	put("b", "one", "other")
	put("a", "one", "later")

	for _, c := range []struct {
		wanted []chain.Address
		want   []string
	}{
		{[]chain.Address{"one", "two", "none"}, []string{"later", "second"}},
		{[]chain.Address{"two", "two"}, []string{"second"}},
		{[]chain.Address{"none"}, nil},
		{nil, nil},
	} {
		found, err := st.Positions(t.Context(), "a", c.wanted)
		expectIDs(t, "Positions", found, err, func(p scan.Position) string { return p.Read }, c.want, true)
	}
}

func expectRanges(t *testing.T, st store.Store, what string, limit int, want ...string) {
	t.Helper()

	ranges, err := st.Ranges(t.Context(), "b", limit)
	expectIDs(t, what, ranges, err, func(r scan.Range) string { return r.ID }, want, false)
}

func expectRetries(t *testing.T, st store.Store, what string, limit int, want ...string) {
	t.Helper()

	retries, err := st.Retries(t.Context(), "a", timeAt(6), limit)
	expectIDs(t, what, retries, err, func(retry scan.Retry) string { return retry.ID }, want, false)
}

// testTransactionWork reads transactions by id, object, network, time and wallet.
func testTransactionWork(t *testing.T, st store.Store) {
	ctx, all := t.Context(), putTransactions(t, st)

	got, err := st.TransactionsByID(ctx, []string{recordID(40), recordID(2), "none", recordID(40)})
	expectIDs(t, "TransactionsByID", got, err, transactionID, []string{recordID(2), recordID(40)}, false)

	ofObject := func(tx wallet.Transaction) bool { return tx.ObjectID == "o3" }
	got, err = st.TransactionsOf(ctx, "o3")
	expectIDs(t, "TransactionsOf", got, err, transactionID, pick(all, transactionID, ofObject, nil), false)

	// Newest first.
	onNetwork := pick(all, transactionID, func(tx wallet.Transaction) bool { return tx.Network == "a" }, nil)
	slices.Reverse(onNetwork)

	got, err = st.Transactions(ctx, "a", "", 5)
	expectIDs(t, "Transactions", got, err, transactionID, onNetwork[:5], false)
	got, err = st.Transactions(ctx, "a", onNetwork[4], 100)
	expectIDs(t, "Transactions, the rest", got, err, transactionID, onNetwork[5:], false)

	due := pick(all, transactionID, func(tx wallet.Transaction) bool {
		return tx.Network == "b" && isDue(tx.DueAt, timeAt(40))
	}, nil)
	got, err = st.DueTransactions(ctx, "b", timeAt(40), 100)
	expectIDs(t, "DueTransactions", got, err, transactionID, due, false)
	got, err = st.DueTransactions(ctx, "b", timeAt(40), 3)
	expectIDs(t, "DueTransactions, limit 3", got, err, transactionID, due[:3], false)

	var networks []string

	for _, tx := range all {
		if !tx.DueAt.IsZero() && !slices.Contains(networks, tx.Network) {
			networks = append(networks, tx.Network)
		}
	}

	slices.Sort(networks)

	if found, err := st.DueNetworks(ctx); err != nil || !slices.Equal(found, networks) {
		t.Errorf("DueNetworks: %v (%v), want %v", found, err, networks)
	}

	live := pick(all, transactionID, func(tx wallet.Transaction) bool {
		return tx.Network == "a" && walletstate.Live(tx) && tx.Order.From.Address == "w1"
	}, nil)
	got, err = st.LiveTransactions(ctx, "a", "w1")
	expectIDs(t, "LiveTransactions", got, err, transactionID, live, false)

	topUps := pick(all, transactionID, func(tx wallet.Transaction) bool {
		return tx.Network == "a" && walletstate.Live(tx) && tx.Kind == wallet.TopUp
	}, nil)
	got, err = st.LiveTopUps(ctx, "a")
	expectIDs(t, "LiveTopUps", got, err, transactionID, topUps, false)
}

func transactionID(tx wallet.Transaction) string { return tx.ID }

// putTransactions puts transactions of all states, on two networks, from two wallets.
func putTransactions(t *testing.T, st store.Store) (all []wallet.Transaction) {
	t.Helper()

	states := []wallet.State{
		wallet.Queued,
		wallet.Signed,
		wallet.Broadcast,
		wallet.Included,
		wallet.Confirmed,
		wallet.Failed,
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		all = nil

		for n := range 72 {
			transaction := wallet.Transaction{
				ID:       recordID(n),
				Network:  []string{"a", "b"}[n/6%2],
				Kind:     []wallet.Kind{wallet.Payout, wallet.TopUp, wallet.Sweep}[n/12%3],
				ObjectID: fmt.Sprint("o", n%5),
				State:    states[n%6],
				Order:    chain.Order{From: chain.Party{Address: chain.Address(fmt.Sprint("w", n/12%2))}},
				DueAt:    timeAt(72 - n),
			}
			if n%7 == 0 {
				transaction.DueAt = time.Time{}
			}

			if err := tx.PutTransaction(ctx, &transaction); err != nil {
				return err
			}

			all = append(all, transaction)
		}

		return nil
	})

	return all
}

// testSettlementWork reads settlements by time, address, id and payment, and releases that are not
// done.
func testSettlementWork(t *testing.T, st store.Store) {
	ctx, all := t.Context(), putSettlements(t, st)

	due := pick(all, settlementID, func(s settlement.Settlement) bool {
		return s.Network == "b" && isRetried(s) && isDue(s.DueAt, timeAt(80))
	}, nil)
	got, err := st.DueSettlements(ctx, "b", timeAt(80), 1000)
	expectIDs(t, "DueSettlements", got, err, settlementID, due, false)
	got, err = st.DueSettlements(ctx, "b", timeAt(80), 3)
	expectIDs(t, "DueSettlements, limit 3", got, err, settlementID, due[:3], false)

	atAddress := pick(all, settlementID, func(s settlement.Settlement) bool {
		at := s.Network == "a" && s.Deposit.Address == "w1" && s.AssetID == "s0"
		return at && (s.Status == settlement.Pending || s.Status == settlement.Held)
	}, nil)
	got, err = st.SettlementsAt(ctx, "a", "w1", "s0")
	expectIDs(t, "SettlementsAt", got, err, settlementID, atAddress, false)

	got, err = st.SettlementsByID(ctx, []string{recordID(50), recordID(2), "none", recordID(50)})
	expectIDs(t, "SettlementsByID", got, err, settlementID, []string{recordID(2), recordID(50)}, false)

	ofPayments := []string{recordID(6), recordID(7), recordID(14), recordID(15)}
	got, err = st.SettlementsOfPayments(ctx, []string{"p7", "p3", "none", "p7"})
	expectIDs(t, "SettlementsOfPayments", got, err, settlementID, ofPayments, true)

	sweeps, err := st.DueSweeps(ctx, "a", timeAt(8), 5)
	expectIDs(t, "DueSweeps", sweeps, err, sweepID, []string{recordID(0), recordID(8)}, false)
	sweeps, err = st.DueSweeps(ctx, "a", timeAt(8), 1)
	expectIDs(t, "DueSweeps, limit 1", sweeps, err, sweepID, []string{recordID(0)}, false)

	sweeps, err = st.SweepsAt(ctx, "a", []chain.Address{"s1", "s0", "none", "s1"})
	expectIDs(t, "SweepsAt", sweeps, err, sweepID, []string{recordID(0), recordID(4), recordID(6)}, true)
	sweeps, err = st.SweepsAt(ctx, "a", nil)
	expectIDs(t, "SweepsAt no address", sweeps, err, sweepID, nil, true)
}

func settlementID(s settlement.Settlement) string { return s.ID }

func sweepID(r settlement.Sweep) string { return r.ID }

// isRetried reports whether a settlement is one that DueSettlements returns: pending, held, or failed
// for a reason that can pass.
func isRetried(s settlement.Settlement) bool {
	if s.Status == settlement.Failed {
		return s.Reason == settlement.PaymentOrphaned || s.Reason == settlement.Replanning
	}

	return s.Status == settlement.Pending || s.Status == settlement.Held
}

// putSettlements puts settlements of all statuses with several reasons, on two networks, and releases.
func putSettlements(t *testing.T, st store.Store) (all []settlement.Settlement) {
	t.Helper()

	reasons := []settlement.Reason{
		"",
		settlement.PaymentOrphaned,
		settlement.Replanning,
		settlement.FundsMissing,
		settlement.Uneconomic,
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		all = nil

		for n := range 120 {
			s := settlement.Settlement{
				ID:        recordID(n),
				Network:   []string{"a", "b"}[n/30%2],
				Status:    settlementstate.Statuses()[n%6],
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

		// Of network a: 0 and 8 are due, 2 is done, 4 has a transaction under way, 6 and 10 are due later.
		for n := range 12 {
			r := settlement.Sweep{
				ID:      recordID(n),
				Network: []string{"a", "b"}[n%2],
				Deposit: chain.Party{Address: chain.Address(fmt.Sprint("s", n/4))},
				Done:    n == 2,
			}
			if n != 4 {
				r.DueAt = timeAt(8 + n%4)
			}

			if err := tx.PutSweep(ctx, &r); err != nil {
				return err
			}
		}

		return nil
	})

	return all
}

// testPayoutsSince counts payouts that no refund made.
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
