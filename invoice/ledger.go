package invoice

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
)

// ledger is what one transaction reads and changes of payments and of what they pay. It writes everything at
// its end, in the order of ids, so that transactions that meet take their rows in the same order.
//
// An invoice is always read before its payments and always written when one of them changed: two transactions
// that touch different payments of one invoice meet at its version, and neither recomputes from stale sums.
type ledger struct {
	s   *Service
	tx  Tx
	now time.Time
	// network is whose batch is taken in; prices were read for it.
	network string
	prices  prices

	accounts map[string]*account
}

// account is an invoice or a deposit address with its payments.
type account struct {
	invoice  *Invoice
	deposit  *DepositAddress
	payments []*Payment // all of an invoice, the unconfirmed ones of a deposit address
	changed  map[string]bool
	touched  bool
	fresh    []string // ids of payments that this transaction saw first
	events   []event.Event
}

func (s *Service) newLedger(tx Tx, network string, p prices) *ledger {
	return &ledger{s: s, tx: tx, now: s.now(), network: network, prices: p, accounts: map[string]*account{}}
}

// invoiceAccount reads an invoice and its payments, once.
func (l *ledger) invoiceAccount(ctx context.Context, id string) (*account, error) {
	if a := l.accounts[id]; a != nil {
		return a, nil
	}

	inv, err := l.tx.InvoiceByID(ctx, id)
	if err != nil {
		return nil, err
	}

	return l.open(ctx, inv)
}

func (l *ledger) open(ctx context.Context, inv Invoice) (*account, error) {
	if a := l.accounts[inv.ID]; a != nil {
		return a, nil
	}

	stored, err := l.tx.PaymentsOfInvoice(ctx, inv.ID)
	if err != nil {
		return nil, err
	}

	inv.Options = slices.Clone(inv.Options)
	inv.Flags = slices.Clone(inv.Flags)

	a := &account{invoice: &inv, changed: map[string]bool{}}
	for i := range stored {
		a.payments = append(a.payments, &stored[i])
	}

	l.accounts[inv.ID] = a

	return a, nil
}

// depositAccount reads a deposit address and its unconfirmed payments, once.
func (l *ledger) depositAccount(ctx context.Context, owner event.Owner, id string) (*account, error) {
	if a := l.accounts[id]; a != nil {
		return a, nil
	}

	d, err := l.tx.DepositAddress(ctx, owner, id)
	if err != nil {
		return nil, err
	}

	a := &account{deposit: &d, changed: map[string]bool{}}

	f := PaymentFilter{Owner: owner, DepositAddressID: id, Statuses: []PaymentStatus{Detected}, Limit: 500}
	for {
		page, err := l.tx.Payments(ctx, f)
		if err != nil {
			return nil, err
		}

		for i := range page {
			a.payments = append(a.payments, &page[i])
		}

		if len(page) < f.Limit {
			break
		}

		f.After = page[len(page)-1].ID
	}

	l.accounts[id] = a

	return a, nil
}

// of returns the account that a payment belongs to, and the one copy of the payment to work on.
func (l *ledger) of(ctx context.Context, p Payment) (*account, *Payment, error) {
	var (
		a   *account
		err error
	)
	if p.InvoiceID != "" {
		a, err = l.invoiceAccount(ctx, p.InvoiceID)
	} else {
		a, err = l.depositAccount(ctx, p.Owner, p.DepositAddressID)
	}

	if err != nil {
		return nil, nil, fmt.Errorf("payment %s: %w", p.ID, err)
	}

	for _, known := range a.payments {
		if known.ID == p.ID {
			return a, known, nil
		}
	}

	a.payments = append(a.payments, &p)

	return a, &p, nil
}

// move runs one pure move of a payment and books what it changed.
func (l *ledger) move(a *account, p *Payment, f func(p *Payment) ([]event.Type, error)) error {
	before := *p

	types, err := f(p)
	if err != nil {
		*p = before
		return err
	}

	if *p == before {
		return nil
	}

	l.changed(a, p)

	for _, t := range types {
		a.events = append(a.events, l.paymentEvent(p, t, before.Status))
	}

	return nil
}

func (l *ledger) changed(a *account, p *Payment) {
	a.touched = true
	a.changed[p.ID] = true
}

// paymentEvent takes the payment as the move left it; a later move in the same transaction tells its own.
func (l *ledger) paymentEvent(p *Payment, t event.Type, before PaymentStatus) event.Event {
	if !t.Internal() { // nobody outside hears of a fact: it would look like an event that was lost
		p.Sequence++
	}

	e := event.Event{
		Owner:     p.Owner,
		Type:      t,
		ObjectID:  p.ID,
		InvoiceID: p.InvoiceID,
		PaymentID: p.ID,
		Sequence:  p.Sequence,
		Subject:   *p,
		CreatedAt: l.now,
	}
	if before != "" && before != p.Status {
		e.Previous = map[string]any{"status": before}
	}

	return e
}

// add takes a payment in that was not known.
func (l *ledger) add(a *account, p Payment) *Payment {
	a.payments = append(a.payments, &p)
	l.changed(a, &p)

	a.fresh = append(a.fresh, p.ID)
	if a.deposit != nil {
		a.deposit.LastPaymentAt = l.now
	}

	return &p
}

// tellNew tells of payments that this transaction saw first and did not confirm at once.
func (l *ledger) tellNew(a *account) {
	for _, p := range a.payments {
		if p.Status == Detected && slices.Contains(a.fresh, p.ID) {
			a.events = append(a.events, l.paymentEvent(p, p.detectedEvent(), ""))
		}
	}

	a.fresh = nil
}

// flush recomputes what was touched and writes it with its events.
func (l *ledger) flush(ctx context.Context) error {
	var (
		payments []*Payment
		events   []event.Event
	)

	for _, id := range slices.Sorted(maps.Keys(l.accounts)) {
		a := l.accounts[id]
		if !a.touched {
			continue
		}

		for _, p := range a.payments {
			if a.changed[p.ID] {
				payments = append(payments, p)
			}
		}

		events = append(events, a.events...)
		if a.deposit != nil {
			if err := l.tx.PutDepositAddress(ctx, a.deposit); err != nil {
				return err
			}

			continue
		}

		before := a.invoice.Status
		types := a.invoice.Recompute(a.values(), l.now)

		more, err := l.s.putInvoice(ctx, l.tx, a.invoice, before, types, l.now)
		if err != nil {
			return err
		}

		events = append(events, more...)
	}

	slices.SortFunc(payments, func(a, b *Payment) int { return cmp.Compare(a.ID, b.ID) })

	if len(payments) > 0 {
		if err := l.tx.PutPayments(ctx, payments...); err != nil {
			return err
		}
	}

	return appendEvents(ctx, l.tx, events)
}

func (a *account) values() []Payment {
	out := make([]Payment, len(a.payments))
	for i, p := range a.payments {
		out[i] = *p
	}

	return out
}

// putInvoice writes an invoice and returns the events of what happened to it, each with its own sequence.
func (s *Service) putInvoice(
	ctx context.Context,
	tx Tx,
	inv *Invoice,
	before Status,
	types []event.Type,
	now time.Time,
) ([]event.Event, error) {
	first := inv.Sequence

	inv.Sequence += int64(len(types))
	if err := tx.PutInvoice(ctx, inv); err != nil {
		return nil, err
	}

	events := make([]event.Event, len(types))
	for i, t := range types {
		subject := *inv
		subject.Sequence = first + int64(i) + 1

		events[i] = event.Event{
			Owner:     inv.Owner,
			Type:      t,
			ObjectID:  inv.ID,
			InvoiceID: inv.ID,
			Sequence:  subject.Sequence,
			Subject:   subject,
			CreatedAt: now,
		}
		if before != "" && before != inv.Status {
			events[i].Previous = map[string]any{"status": before}
		}
	}

	return events, nil
}

func appendEvents(ctx context.Context, tx Tx, events []event.Event) error {
	if len(events) == 0 {
		return nil
	}

	request := event.RequestOf(ctx)
	for i := range events {
		events[i].Request = request
	}

	return tx.AppendEvents(ctx, events...)
}
