// Package docs_test keeps the documents in step with the code.
package docs_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/payoutstate"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

var update = flag.Bool("update", false, "write states.md and the picture of the console anew")

const statesFile = "states.md"

// TestStates draws the state machines from the code: payouts and refunds from the tables that they
// obey, the others by making every move from every status and noting what happens.
func TestStates(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# States

Every object that moves money has a state machine. The diagrams are drawn from the code by the test
beside this file (` + "`go test ./docs -update`" + `), which fails when they are out of date. A move
that is not drawn is refused, and leaves the record as it was. What each status means is said with
its constant in the package that owns it.
`)

	for _, m := range []machine{invoices(t), payments(t), settlements(), payouts(), refunds(), transactions(t)} {
		m.check(t)
		m.draw(&b)
	}

	if *update {
		if err := os.WriteFile(statesFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	got, err := os.ReadFile(statesFile)
	if err != nil {
		t.Fatal(err)
	}

	if string(got) != b.String() {
		t.Errorf(
			"%s is out of date: look at what changed with `go test ./docs -update` and git diff",
			statesFile,
		)
	}
}

// machine is one diagram.
type machine struct {
	title, text string
	states      []string
	moves       []move
}

type move struct{ from, to, when string }

// see notes a move; one that leads nowhere is none.
func (m *machine) see(from, to, when string) {
	if from != to && !slices.Contains(m.moves, move{from, to, when}) {
		m.moves = append(m.moves, move{from, to, when})
	}
}

// check makes sure that every status is drawn and can be reached.
func (m machine) check(t *testing.T) {
	t.Helper()

	reached := map[string]bool{"": true}

	for range m.states {
		for _, v := range m.moves {
			reached[v.to] = reached[v.to] || reached[v.from]
			if strings.ContainsAny(strings.ReplaceAll(v.when, "#colon;", ""), ":;#") {
				t.Errorf("%s: Mermaid cannot draw the label %q", m.title, v.when)
			}

			if v.when == "" || v.from != "" && !slices.Contains(m.states, v.from) ||
				!slices.Contains(m.states, v.to) {
				t.Errorf("%s: the move %+v is of an unknown status, or says nothing", m.title, v)
			}
		}
	}

	for _, s := range m.states {
		if !reached[s] {
			t.Errorf("%s: nothing leads to %s", m.title, s)
		}
	}
}

func (m machine) draw(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```mermaid\nstateDiagram-v2\n", m.title, m.text)

	order := func(s string) int { return slices.Index(m.states, s) }
	moves := slices.Clone(m.moves)
	slices.SortStableFunc(moves, func(x, y move) int {
		return cmp.Or(cmp.Compare(order(x.from), order(y.from)), cmp.Compare(order(x.to), order(y.to)))
	})

	ends := map[string]bool{}
	for _, s := range m.states {
		ends[s] = true
	}

	for i := 0; i < len(moves); {
		first := moves[i]

		var when []string
		for ; i < len(moves) && moves[i].from == first.from && moves[i].to == first.to; i++ {
			when = append(when, moves[i].when)
		}

		delete(ends, first.from)

		from := first.from
		if from == "" {
			from = "[*]"
		}

		fmt.Fprintf(b, "    %s --> %s: %s\n", from, first.to, strings.Join(when, " / "))
	}

	for _, s := range m.states {
		if ends[s] {
			fmt.Fprintf(b, "    %s --> [*]\n", s)
		}
	}

	b.WriteString("```\n")
}

func names[S ~string](all []S) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}

	return out
}

func payouts() machine {
	m := machine{
		title:  "Payout",
		states: names(payoutstate.Statuses()),
		text: "In every failed case nothing was sent. What was signed fails only by proof that it can " +
			"never be included.",
	}

	for _, v := range payout.Transitions() {
		when := v.When
		if v.Codes != nil {
			codes := slices.Clone(v.Codes)
			for i, c := range codes {
				if strings.HasSuffix(c, ":") {
					c += "…"
				}
				// A colon ends a label's state in Mermaid; its entity does not.
				codes[i] = strings.ReplaceAll(c, ":", "#colon;")
			}

			when += " (" + strings.Join(codes, ", ") + ")"
		}

		m.see(string(v.From), string(v.To), when)
	}

	return m
}

func refunds() machine {
	m := machine{
		title:  "Refund",
		states: names(payoutstate.RefundStatuses()),
		text:   "A refund follows the payout that pays it.",
	}
	for _, v := range payout.RefundTransitions() {
		m.see(string(v.From), string(v.To), v.When)
	}

	return m
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func settlements() machine {
	m := machine{
		title:  "Settlement",
		states: names(settlementstate.Statuses()),
		text: "A settlement opens when its payment is confirmed and has a price. `failed` with reason " +
			"payment_orphaned or replanning comes back by itself.",
	}
	m.see("", string(settlement.Pending), "its payment confirmed and has a price")

	type start struct {
		status settlement.Status
		reason settlement.Reason
		in     bool // in a release
	}

	starts := []start{
		{settlement.Pending, "", false},
		{settlement.Pending, "", true},
		{settlement.Held, settlement.Uneconomic, false},
		{settlement.Held, settlement.Uneconomic, true},
		{settlement.Releasing, "", true},
		{settlement.Released, "", true},
		{settlement.Reverted, "", true},
		{settlement.Reverted, settlement.PaymentOrphaned, true},
	}

	failing := []settlement.Reason{
		settlement.PaymentOrphaned,
		settlement.FundsMissing,
		settlement.NotReleasable,
		settlement.TransactionFailed,
		settlement.Replanning,
		settlement.Unclassified,
	}
	for _, r := range failing {
		starts = append(starts, start{settlement.Failed, r, true})
	}

	moves := []struct {
		when string
		do   func(*settlement.Settlement) error
	}{
		{
			"its first transaction is signed and stored",
			func(s *settlement.Settlement) error { return settlementstate.Start(s, chain.Amount{}) },
		},
		{
			"every transaction is confirmed",
			func(s *settlement.Settlement) error { return settlementstate.Release(s, chain.Units(1), now) },
		},
		{
			"its sweep left the chain",
			func(s *settlement.Settlement) error { return settlementstate.Revert(s, "") },
		},
		{
			"its payment left the chain",
			func(s *settlement.Settlement) error {
				if s.Status == settlement.Released {
					return settlementstate.Revert(s, settlement.PaymentOrphaned)
				}

				return settlementstate.Fail(s, settlement.PaymentOrphaned, now, time.Time{})
			},
		},
		{"by itself", func(s *settlement.Settlement) error { return s.Return(false, false, now) }},
		{
			"an operator's retry",
			func(s *settlement.Settlement) error {
				if alone := *s; alone.Return(false, false, now) == nil {
					return errors.New("it needs no operator")
				}

				return s.Return(true, false, now)
			},
		},
	}
	for _, r := range []settlement.Reason{
		settlement.InsufficientMasterBalance,
		settlement.Uneconomic,
		settlement.BelowSweepMin,
	} {
		moves = append(moves, struct {
			when string
			do   func(*settlement.Settlement) error
		}{
			string(r),
			func(s *settlement.Settlement) error { _, err := settlementstate.Hold(s, r, nil, now, now); return err },
		})
	}

	for _, r := range failing[1:] {
		moves = append(moves, struct {
			when string
			do   func(*settlement.Settlement) error
		}{string(r), func(s *settlement.Settlement) error { return settlementstate.Fail(s, r, now, now) }})
	}

	for _, from := range starts {
		for _, v := range moves {
			s := settlement.Settlement{
				ID:     "s",
				Status: from.status,
				Reason: from.reason,
				Gross:  chain.Units(100),
			}
			if from.in {
				s.SweepID = "r"
			}

			if v.do(&s) != nil {
				continue
			}

			when := v.when
			if v.when == "by itself" {
				switch {
				case from.status == settlement.Reverted:
					when = "by itself, when payment or sweep stand again"
				case from.reason == settlement.PaymentOrphaned:
					when = "by itself, when its payment confirms again"
				default:
					when = "by itself, to be planned again"
				}
			}

			m.see(string(from.status), string(s.Status), when)
		}
	}

	return m
}

func payments(t *testing.T) machine {
	t.Helper()

	m := machine{
		title:  "Payment",
		states: names(invoice.PaymentStatuses()),
		text: "A payment is one transfer, identified by network, transaction and index: found again, it " +
			"is the same record.",
	}
	m.see("", string(invoice.Detected), "seen in a pool or a block")

	block := chain.Ref{Height: 7, Hash: "a", Time: now}
	starts := []invoice.Payment{
		{Status: invoice.Detected},
		{Status: invoice.Detected, Block: block},
		{Status: invoice.Confirmed, Block: block, ConfirmedAt: now},
		{Status: invoice.Orphaned, LostAt: now},
		{Status: invoice.Dropped},
	}

	moves := []struct {
		when string
		do   func(*invoice.Payment) error
	}{
		{
			"found in a pool or a block",
			func(p *invoice.Payment) error { _, err := invoicestate.Observe(p, block); return err },
		},
		{
			"the network's rule holds",
			func(p *invoice.Payment) error { _, err := invoicestate.Confirm(p, false, now); return err },
		},
		{
			"its block left the chain",
			func(p *invoice.Payment) error { _, err := invoicestate.Orphan(p, now); return err },
		},
		{
			"replaced, double-spent, or out of pool and chain for a day",
			func(p *invoice.Payment) error { _, err := invoicestate.Drop(p); return err },
		},
		{"", func(p *invoice.Payment) error { return invoicestate.MarkLost(p, now) }},
		{
			"",
			func(p *invoice.Payment) error { return invoicestate.SetBlock(p, chain.Ref{Height: 8, Hash: "b"}) },
		},
	}
	for _, from := range starts {
		for _, v := range moves {
			p := from

			p.ID, p.InvoiceID, p.TxHash = "p", "i", "t"
			if v.do(&p) == nil {
				m.see(string(from.Status), string(p.Status), v.when)
			}
		}
	}

	return m
}

// invoices makes an invoice of 100 base units reach each status, and then lets everything happen to it.
func invoices(t *testing.T) machine {
	t.Helper()

	m := machine{
		title:  "Invoice",
		states: names(invoice.Statuses()),
		text: "The status follows from the payments, every time anew; only closing, accepting and " +
			"refunding are remembered.",
	}
	m.see("", string(invoice.Open), "created")

	later := now.Add(48 * time.Hour)
	pay := func(status invoice.PaymentStatus, amount uint64) []invoice.Payment {
		return []invoice.Payment{
			{
				ID:          "p",
				InvoiceID:   "i",
				OptionID:    "o",
				AssetID:     "x",
				Status:      status,
				Amount:      chain.Units(amount),
				Credit:      decimal.NewFromUint64(amount),
				ConfirmedAt: now,
			},
		}
	}
	arrivals := []struct {
		when     string
		payments []invoice.Payment
	}{
		{"nothing stands", nil},
		{"enough is detected", pay(invoice.Detected, 100)},
		{"too little is confirmed", pay(invoice.Confirmed, 40)},
		{"enough is confirmed", pay(invoice.Confirmed, 100)},
	}
	fresh := func() invoice.Invoice {
		return invoice.Invoice{
			ID:                    "i",
			Kind:                  invoice.Crypto,
			Status:                invoice.Open,
			SelectedOptionID:      "o",
			CreatedAt:             now,
			ExpiresAt:             now.Add(24 * time.Hour),
			PreSelectionExpiresAt: now.Add(time.Hour),
			Options: []invoice.Option{
				{ID: "o", Network: "n", AssetID: "x", AmountDue: chain.Units(100), Address: "a"},
			},
		}
	}
	scanned := map[string]time.Time{"n": later}

	type start struct {
		inv      invoice.Invoice
		payments []invoice.Payment
	}

	var starts []start

	for _, a := range arrivals {
		inv := fresh()
		inv.Recompute(a.payments, now)

		starts = append(starts, start{inv, a.payments})
		for _, end := range []func(*invoice.Invoice) error{
			func(i *invoice.Invoice) error { _, err := i.Expire(a.payments, scanned, later); return err },
			func(i *invoice.Invoice) error { _, err := i.Cancel(a.payments, later); return err },
		} {
			closed := clone(inv)
			if end(&closed) != nil {
				continue
			}

			starts = append(starts, start{closed, a.payments})

			accepted := clone(closed)
			if _, err := accepted.Accept(a.payments, true, later); err == nil {
				starts = append(starts, start{accepted, a.payments})
			}
		}
	}

	refund := func(inv *invoice.Invoice, payments []invoice.Payment) error {
		if len(payments) == 0 {
			return errors.New("there is nothing to refund")
		}

		f := invoicestate.RefundChange{
			InvoiceID: "i",
			AssetID:   "x",
			Amount:    payments[0].Amount,
			Move:      invoicestate.RefundPending,
		}
		if _, err := invoicestate.Refund(inv, f, payments, later); err != nil {
			return err
		}

		f.Move = invoicestate.RefundSucceeded
		_, err := invoicestate.Refund(inv, f, payments, later)

		return err
	}

	for _, from := range starts {
		// While a payment waits, an invoice is not refunded; once none does, nothing is between.
		if from.inv.Status == invoice.Open || from.inv.Status == invoice.Pending {
			inv := clone(from.inv)
			inv.Refunds.Succeeded = map[string]chain.Amount{"x": chain.Units(100)}
			inv.Recompute(pay(invoice.Confirmed, 100), later)
			m.see(string(from.inv.Status), string(inv.Status), "what was refunded before is confirmed again")
		}

		for _, a := range arrivals {
			inv := clone(from.inv)
			inv.Recompute(a.payments, later)

			when := a.when
			if from.inv.ClosedAs != "" && inv.Status == from.inv.ClosedAs {
				when = "its payment left the chain, it was " + string(inv.Status) + " before"
			} else if a.payments == nil {
				when = "its payment left the chain or was dropped"
			}

			m.see(string(from.inv.Status), string(inv.Status), when)

			if late := clone(from.inv); late.ClosedAs != "" {
				late.AcceptLate = true
				late.Recompute(a.payments, later)

				if late.Status != inv.Status {
					m.see(
						string(from.inv.Status), string(late.Status),
						a.when+" and the account takes late payments",
					)
				}
			}
		}

		for _, v := range []struct {
			when string
			do   func(*invoice.Invoice, []invoice.Payment) error
		}{
			{
				"its time is over",
				func(i *invoice.Invoice, p []invoice.Payment) error {
					_, err := i.Expire(p, scanned, later)
					return err
				},
			},
			{
				"canceled by the merchant",
				func(i *invoice.Invoice, p []invoice.Payment) error { _, err := i.Cancel(p, later); return err },
			},
			{
				"accept_late_payment, accept",
				func(i *invoice.Invoice, p []invoice.Payment) error {
					_, err := i.Accept(p, false, later)
					return err
				},
			},
			{
				"accept",
				func(i *invoice.Invoice, p []invoice.Payment) error {
					if alone := clone(*i); alone.Status == invoice.Paid ||
						func() bool { _, err := alone.Accept(p, false, later); return err == nil }() {
						return errors.New("the other call does as well")
					}

					_, err := i.Accept(p, true, later)

					return err
				},
			},
			{"refunds cover all that was received", refund},
		} {
			inv := clone(from.inv)
			if v.do(&inv, from.payments) == nil {
				m.see(string(from.inv.Status), string(inv.Status), v.when)
			}
		}
	}
	// Money that comes to a closed invoice changes nothing by itself, but can be accepted or refunded.
	for _, from := range starts {
		// While a payment waits, an invoice is not refunded; once none does, nothing is between.
		if from.inv.Status != invoice.Expired && from.inv.Status != invoice.Canceled {
			continue
		}

		payments := pay(invoice.Confirmed, 100)
		inv := clone(from.inv)
		inv.Recompute(payments, later)

		accepted, refunded := clone(inv), clone(inv)
		if _, err := accepted.Accept(payments, false, later); err != nil {
			t.Errorf("a late payment cannot be accepted: %v", err)
		}

		m.see(string(from.inv.Status), string(accepted.Status), "accept_late_payment, accept")

		if err := refund(&refunded, payments); err != nil {
			t.Errorf("a late payment cannot be refunded: %v", err)
		}

		m.see(string(from.inv.Status), string(refunded.Status), "refunds cover all that was received")
	}

	return m
}

func clone(inv invoice.Invoice) invoice.Invoice {
	inv.Options, inv.Flags = slices.Clone(inv.Options), slices.Clone(inv.Flags)
	return inv
}

// transactions are those of the outbox, which payouts and settlements follow.
func transactions(t *testing.T) machine {
	t.Helper()

	states := []wallet.State{
		wallet.Queued,
		wallet.Signed,
		wallet.Broadcast,
		wallet.Included,
		wallet.Confirmed,
		wallet.Failed,
	}
	m := machine{
		title:  "Transaction of the outbox",
		states: names(states),
		text: "Not shown by the API: the row that a payout or a step of a settlement follows. Signed " +
			"bytes are stored before they are first sent, and nothing leads back to queued. A row whose " +
			"payout another row's bytes pay, too, makes the moves of that one.",
	}
	m.see("", string(wallet.Queued), "stored with the object that wants it")

	block := chain.TxStatus{State: chain.TxIncluded, Block: chain.Ref{Height: 7, Hash: "a", Time: now}}
	signed := wallet.Attempt{Signed: chain.Signed{TxHash: "h"}, SignedAt: now}

	moves := []struct {
		when string
		do   func(*wallet.Transaction) error
	}{
		{"signed bytes are stored", func(x *wallet.Transaction) error { return walletstate.Sign(x, signed) }},
		{
			"the network took the bytes",
			func(x *wallet.Transaction) error { return walletstate.RecordAccepted(x, "h", now) },
		},
		{"in a block", func(x *wallet.Transaction) error { return walletstate.Include(x, "h", block) }},
		{"its block is final", walletstate.Confirm},
		{"its block left the chain", walletstate.Retract},
	}
	for _, code := range []string{
		wallet.FailCanceled,
		wallet.FailStale,
		wallet.FailInsufficientFunds,
		wallet.FailNotPayable,
		wallet.FailTokenUnsafe,
		wallet.FailSignerRefused + "…",
		wallet.FailConflict,
		wallet.FailExpired,
		wallet.FailReverted,
	} {
		moves = append(moves, struct {
			when string
			do   func(*wallet.Transaction) error
		}{
			strings.ReplaceAll(code, ":", "#colon;"),
			func(x *wallet.Transaction) error { return walletstate.Fail(x, code) },
		})
	}

	for _, s := range states {
		for _, v := range moves {
			x := wallet.Transaction{ID: "t", State: s}
			if s != wallet.Queued && s != wallet.Failed {
				x.Attempts, x.TxHash = []wallet.Attempt{signed}, "h"
			}

			if s == wallet.Included || s == wallet.Confirmed {
				x.Block = block.Block
			}

			if v.do(&x) == nil {
				m.see(string(s), string(x.State), v.when)
			}
		}
	}

	return m
}
