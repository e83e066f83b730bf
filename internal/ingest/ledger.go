package ingest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// ledger holds what one transaction reads and changes of payments, invoices and deposit addresses. It writes
// everything at its end, sorted by id to avoid deadlock.
//
// An invoice is always read before its payments and written when one of them changed. So two
// transactions that touch different payments of one invoice conflict on its version, and neither
// recomputes from stale sums.
type ledger struct {
	s   *Ingester
	tx  invoice.Tx
	now time.Time
	// network is that of the batch; prices were read for it.
	network string
	prices  prices

	entries map[string]*entry
	// rows are the addresses that were read.
	rows map[receiver]invoice.Address
}

// entry is an invoice or a deposit address with its payments.
type entry struct {
	invoice  *invoice.Invoice
	deposit  *invoice.DepositAddress
	payments []*invoice.Payment // all of an invoice, the unconfirmed ones of a deposit address
	changed  map[string]bool
	touched  bool
	fresh    []string // ids of payments that this transaction saw first
	events   []event.Event
}

func (s *Ingester) newLedger(tx invoice.Tx, network string, p prices) *ledger {
	return &ledger{
		s:       s,
		tx:      tx,
		now:     s.now(),
		network: network,
		prices:  p,
		entries: map[string]*entry{},
		rows:    map[receiver]invoice.Address{},
	}
}

// invoiceEntry reads an invoice and its payments, once.
func (l *ledger) invoiceEntry(ctx context.Context, id string) (*entry, error) {
	if a := l.entries[id]; a != nil {
		return a, nil
	}

	inv, err := l.tx.InvoiceByID(ctx, id)
	if err != nil {
		return nil, err
	}

	return l.open(ctx, inv)
}

// open returns the entry of an invoice that was read, with its payments.
func (l *ledger) open(ctx context.Context, inv invoice.Invoice) (*entry, error) {
	if a := l.entries[inv.ID]; a != nil {
		return a, nil
	}

	stored, err := l.tx.PaymentsOfInvoices(ctx, []string{inv.ID})
	if err != nil {
		return nil, err
	}

	return l.opened(inv, stored), nil
}

// opened adds the entry of an invoice that was read, and then its payments.
func (l *ledger) opened(inv invoice.Invoice, stored []invoice.Payment) *entry {
	inv.Options = slices.Clone(inv.Options)
	inv.Flags = slices.Clone(inv.Flags)

	a := &entry{invoice: &inv, changed: map[string]bool{}}
	for i := range stored {
		a.payments = append(a.payments, &stored[i])
	}

	l.entries[inv.ID] = a

	return a
}

// openAll reads those of some invoices that were not read yet, and then the payments of all of them. One that is alone
// or not on record is left to invoiceEntry.
func (l *ledger) openAll(ctx context.Context, ids []string) error {
	ids = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(ids))), func(id string) bool {
		return id == "" || l.entries[id] != nil
	})
	if len(ids) < 2 {
		return nil
	}

	invoices, err := l.tx.InvoicesByID(ctx, ids)
	if err != nil {
		return err
	}

	payments, err := l.tx.PaymentsOfInvoices(ctx, ids)
	if err != nil {
		return err
	}

	of := map[string][]invoice.Payment{}
	for _, p := range payments {
		of[p.InvoiceID] = append(of[p.InvoiceID], p)
	}

	for _, inv := range invoices {
		l.opened(inv, of[inv.ID])
	}

	return nil
}

// depositEntry reads a deposit address and its unconfirmed payments, once.
func (l *ledger) depositEntry(ctx context.Context, owner event.Owner, id string) (*entry, error) {
	if a := l.entries[id]; a != nil {
		return a, nil
	}

	d, err := l.tx.DepositAddress(ctx, owner, id)
	if err != nil {
		return nil, err
	}

	a := &entry{deposit: &d, changed: map[string]bool{}}

	f := invoice.PaymentFilter{
		Owner:            owner,
		DepositAddressID: id,
		Statuses:         []invoice.PaymentStatus{invoice.Detected},
		Limit:            500,
	}
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

	l.entries[id] = a

	return a, nil
}

// payment returns the entry that a payment belongs to, and the one copy of the payment to change.
func (l *ledger) payment(ctx context.Context, p invoice.Payment) (*entry, *invoice.Payment, error) {
	var (
		a   *entry
		err error
	)
	if p.InvoiceID != "" {
		a, err = l.invoiceEntry(ctx, p.InvoiceID)
	} else {
		a, err = l.depositEntry(ctx, p.Owner, p.DepositAddressID)
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

// move runs one pure transition of a payment and records what it changed.
func (l *ledger) move(a *entry, p *invoice.Payment, f func(p *invoice.Payment) ([]event.Type, error)) error {
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
		a.events = append(a.events, l.paymentEvent(p, t, &before))
	}

	return nil
}

// changed marks a payment as changed, so that flush writes it.
func (l *ledger) changed(a *entry, p *invoice.Payment) {
	a.touched = true
	a.changed[p.ID] = true
}

// paymentEvent returns an event about a payment; the engine shows the payment in it as it is left.
// before is the payment as it was; nil for a new one.
func (l *ledger) paymentEvent(p *invoice.Payment, t event.Type, before *invoice.Payment) event.Event {
	if !t.Internal() {
		p.Sequence++
	}

	e := eventctx.About(*p, t)[0]
	if before != nil {
		e.Previous = changedAttributes(*before, *p)
	}

	return e
}

// changedAttributes returns what a payment was before, of what changed; nil for nothing.
func changedAttributes(before, after invoice.Payment) map[string]any {
	changed := map[string]any{}
	if before.Status != after.Status {
		changed["status"] = before.Status
	}

	if before.Amount != after.Amount {
		changed["amount"] = before.Amount.String()
	}

	if len(changed) == 0 {
		return nil
	}

	return changed
}

// add adds a payment that was not known.
func (l *ledger) add(a *entry, p invoice.Payment) *invoice.Payment {
	a.payments = append(a.payments, &p)
	l.changed(a, &p)

	a.fresh = append(a.fresh, p.ID)
	if a.deposit != nil {
		a.deposit.LastPaymentAt = l.now
	}

	return &p
}

// notifyNew adds the events of payments that this transaction detected and did not confirm at once.
func (l *ledger) notifyNew(a *entry) {
	for _, p := range a.payments {
		if p.Status == invoice.Detected && slices.Contains(a.fresh, p.ID) {
			a.events = append(a.events, l.paymentEvent(p, invoicestate.DetectedEvent(p), nil))
		}
	}

	a.fresh = nil
}

// flush recomputes what was touched and writes it with its events. Nothing is written for whom the tag of the
// receiving address does not name.
func (l *ledger) flush(ctx context.Context) error {
	if err := l.verifyReceivers(ctx); err != nil {
		return err
	}

	var (
		payments []*invoice.Payment
		events   []event.Event
	)

	for _, id := range slices.Sorted(maps.Keys(l.entries)) {
		a := l.entries[id]
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

		if err := l.checkReopened(ctx, a.invoice, before); err != nil {
			return err
		}

		moved, err := invoice.Put(ctx, l.tx, a.invoice, before, types)
		if err != nil {
			return err
		}

		events = append(events, moved...)
	}

	slices.SortFunc(payments, func(a, b *invoice.Payment) int { return cmp.Compare(a.ID, b.ID) })

	if len(payments) > 0 {
		if err := l.tx.PutPayments(ctx, payments...); err != nil {
			return err
		}
	}

	if len(events) == 0 {
		return nil
	}

	return l.tx.AppendEvents(ctx, events...)
}

// checkReopened has the addresses of an invoice compared soon that waits for money again.
func (l *ledger) checkReopened(ctx context.Context, inv *invoice.Invoice, before invoice.Status) error {
	if was := (invoice.Invoice{Status: before}); waitsForMoney(was) || !waitsForMoney(*inv) {
		return nil
	}

	for _, o := range inv.Options {
		n, served := l.s.registry.Network(o.Network)
		if !served || !o.Selected() {
			continue
		}

		rows, err := l.tx.MatchAddresses(ctx, n.Space(), []chain.Address{o.Address})
		if err != nil {
			return err
		}

		if err := checkSoon(ctx, l.tx, l.now, true, rows...); err != nil {
			return err
		}
	}

	return nil
}

// values returns copies of the payments.
func (a *entry) values() []invoice.Payment {
	out := make([]invoice.Payment, len(a.payments))
	for i, p := range a.payments {
		out[i] = *p
	}

	return out
}

// receiver is the primary key of an address.
type receiver struct {
	space   chain.Space
	address chain.Address
}

// receiverOf returns the address that received a payment.
func receiverOf(p *invoice.Payment) receiver {
	return receiver{chain.Space{Family: p.Key.Family, Livemode: p.Key.Livemode}, p.Address}
}

// noteRow keeps the row of an address that was read, so that flush verifies that one.
func (l *ledger) noteRow(a invoice.Address) { l.rows[receiver{a.Space, a.Address}] = a }

// verifyReceivers checks that the payments that count, and what they pay, are those that their addresses were made
// for. One that leaves the chain takes nothing.
//
// Errors: fault.Unavailable, code address_damaged or secret_key_unknown.
func (l *ledger) verifyReceivers(ctx context.Context) error {
	if err := l.readReceivers(ctx); err != nil {
		return err
	}

	for _, id := range slices.Sorted(maps.Keys(l.entries)) {
		a := l.entries[id]

		for _, p := range a.payments {
			if !a.counts(p) {
				continue
			}

			if err := l.verifyReceiver(a, p); err != nil {
				return err
			}
		}
	}

	return nil
}

// readReceivers reads the rows of addresses that were not read yet: one query for each key space.
func (l *ledger) readReceivers(ctx context.Context) error {
	missing := map[chain.Space][]chain.Address{}

	for _, a := range l.entries {
		for _, p := range a.payments {
			if to := receiverOf(p); a.counts(p) && l.rows[to].Address == "" {
				missing[to.space] = append(missing[to.space], to.address)
			}
		}
	}

	for space, addresses := range missing {
		found, err := l.tx.MatchAddresses(ctx, space, slices.Compact(slices.Sorted(slices.Values(addresses))))
		if err != nil {
			return err
		}

		for _, row := range found {
			l.noteRow(row)
		}
	}

	return nil
}

// verifyReceiver checks one payment.
func (l *ledger) verifyReceiver(a *entry, p *invoice.Payment) error {
	row, known := l.rows[receiverOf(p)]
	if !known {
		return damagedReceiver(p)
	}

	verified, err := l.s.verify(row)
	if err != nil {
		return err
	}

	if a.invoice != nil && !verified.Pays(*p, *a.invoice) ||
		a.deposit != nil && !verified.PaysDeposit(*p, *a.deposit) {
		return damagedReceiver(p)
	}

	return nil
}

// counts reports whether a payment of the entry is to be written as one that has money.
func (a *entry) counts(p *invoice.Payment) bool {
	return a.changed[p.ID] && (p.Status == invoice.Detected || p.Status == invoice.Confirmed)
}

func damagedReceiver(p *invoice.Payment) error {
	return fault.New(
		fault.Unavailable,
		"address_damaged",
		"payment %s to %s is not credited: the payment, what it pays, or the row of the address was changed outside "+
			"this service; restore it",
		p.ID,
		p.Address,
	)
}
