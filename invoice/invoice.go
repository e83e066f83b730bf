// Package invoice holds what is owed and what arrived: invoices with their options and quotes, payments, and
// reusable deposit addresses.
//
// The state machines in invoice.go and payment.go are pure: a record, a fact and a time give a record and
// events. Service is what merchants do: it loads, calls them and saves, one transaction per operation. What
// arrives on networks comes in through Intake (internal/ingest). Settlements open by reaction to the events
// of this package, which knows nothing of them.
package invoice

import (
	"cmp"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// Kind says whether an invoice is priced in money or in crypto.
type Kind string

// The kinds of specification 2.2.
const (
	Fiat   Kind = "fiat"
	Crypto Kind = "crypto"
)

// Status is where an invoice stands.
type Status string

// The statuses of specification 3.1.
const (
	Open      Status = "open"
	Pending   Status = "pending"
	Underpaid Status = "underpaid"
	Paid      Status = "paid"
	Expired   Status = "expired"
	Canceled  Status = "canceled"
	Refunded  Status = "refunded"
)

// Statuses lists them all.
func Statuses() []Status {
	return []Status{Open, Pending, Underpaid, Paid, Expired, Canceled, Refunded}
}

// Flag says more about an outcome.
type Flag string

// The flags of specification 2.2.
const (
	Overpaid          Flag = "overpaid"
	Late              Flag = "late"
	UnderpaidAccepted Flag = "underpaid_accepted"
	PartiallyRefunded Flag = "partially_refunded"
)

// Invoice is what is owed.
type Invoice struct {
	ID     string
	Owner  event.Owner
	Number int64
	Kind   Kind
	Status Status
	// Flags are in the order of the constants; computed from the payments every time, except Late and
	// UnderpaidAccepted, which an acceptance sets.
	Flags []Flag
	// Currency and Price are set for fiat invoices: ISO 4217 and an amount above 0 with at most 8 places.
	Currency string
	Price    decimal.Decimal
	Options  []Option
	// SelectedOptionID is the latest selection; PaidOptionID the option of the payment that made it enough.
	SelectedOptionID, PaidOptionID string
	// ToleranceBPS is how much too little still counts as paid, in ten-thousandths, 0 to 500.
	ToleranceBPS int
	// AcceptLate is the account's setting at creation: late money pays the invoice by itself.
	AcceptLate                          bool
	OrderID, CustomerEmail, Description string
	Metadata                            map[string]string
	SuccessURL, CancelURL               string
	ExpiresAt, PreSelectionExpiresAt    time.Time
	CreatedAt                           time.Time
	PaidAt, ExpiredAt, CanceledAt       time.Time
	RefundedAt                          time.Time
	// ClosedAs remembers that the invoice expired or was canceled before it was paid or refunded, so that a
	// reversal falls back to it.
	ClosedAs Status
	// Refunds counts what refunds took back or may still take back.
	Refunds Refunds
	// Simulated says that a simulated payment touched it (test mode).
	Simulated bool
	// DueAt is when the worker looks at it next (expiry); zero when there is nothing to wait for.
	DueAt time.Time
	// Sequence is that of the latest event about it.
	Sequence int64
	// Version is the store's; see store.Tx.
	Version int64
}

// Refunds sums the refunds of an invoice, per payment asset in base units by asset id.
type Refunds struct {
	// Pending are refunds that have not failed and not succeeded; Succeeded those that arrived.
	Pending, Succeeded map[string]chain.Amount `json:",omitempty"`
}

// Has reports whether a flag is set.
func (inv *Invoice) Has(f Flag) bool { return slices.Contains(inv.Flags, f) }

func (inv *Invoice) set(f Flag, on bool) {
	inv.Flags = slices.DeleteFunc(inv.Flags, func(other Flag) bool { return other == f })
	if on {
		inv.Flags = append(inv.Flags, f)
		slices.SortFunc(inv.Flags, func(a, b Flag) int { return cmp.Compare(flagOrder(a), flagOrder(b)) })
	}
}

func flagOrder(f Flag) int {
	return slices.Index([]Flag{Overpaid, Late, UnderpaidAccepted, PartiallyRefunded}, f)
}

// Recompute brings sums, status, flags, times and DueAt in line with all payments to the invoice, and returns
// the events that tell of a change of status. Nothing is counted up: the same payments give the same invoice,
// in whatever order they came and went, and a second call changes nothing. What payments cannot tell, the
// record keeps: ClosedAs, the refunds, and an acceptance (flags Late and UnderpaidAccepted).
func (inv *Invoice) Recompute(payments []Payment, now time.Time) []event.Type {
	r := inv.receive(payments)
	standing := inv.standing(r)

	// An acceptance covers what had been received when it was made. Once some of that is gone it holds only
	// if what is left is enough by itself.
	if inv.accepted() && (!r.any || r.less && standing != Paid) {
		inv.set(Late, false)
		inv.set(UnderpaidAccepted, false)
	}

	before, next := inv.Status, standing
	switch {
	case before == Refunded:
		next = Refunded
	case inv.refundedInFull(payments):
		next = Refunded
	case inv.accepted():
		next = Paid
	case inv.ClosedAs != "" && standing == Paid && inv.AcceptLate && !inv.refunding():
		inv.set(Late, true)

		next = Paid
	case inv.ClosedAs != "":
		next = inv.ClosedAs
	}

	inv.Status = next

	switch {
	case next == Paid && before != Paid:
		inv.PaidAt = now
	case next == Refunded && before != Refunded:
		inv.RefundedAt = now
	case next != Paid && next != Refunded:
		inv.PaidAt = time.Time{}
	}

	inv.PaidOptionID = ""
	if !inv.PaidAt.IsZero() {
		inv.PaidOptionID = inv.payingOption(payments)
	}

	inv.set(Overpaid, !inv.PaidAt.IsZero() && inv.overpaid(r))
	inv.set(PartiallyRefunded, next != Refunded && positive(inv.Refunds.Succeeded))
	inv.Schedule()

	return statusEvents(before, next)
}

// told returns the event of a change of status. Falling back from pending to open has none: the payment's own
// event tells it.
func statusEvents(before, next Status) []event.Type {
	switch {
	case before == next:
		return nil
	case before == Paid && next != Refunded:
		return []event.Type{event.InvoicePaymentReversed}
	}

	switch next {
	case Pending:
		return []event.Type{event.InvoicePending}
	case Underpaid:
		return []event.Type{event.InvoiceUnderpaid}
	case Paid:
		return []event.Type{event.InvoicePaid}
	case Expired:
		return []event.Type{event.InvoiceExpired}
	case Canceled:
		return []event.Type{event.InvoiceCanceled}
	case Refunded:
		return []event.Type{event.InvoiceRefunded}
	case Open:
		// Falling back to open is not told.
	}

	return nil
}

// receipt is what arrived.
type receipt struct {
	// confirmed and detected are sums of credits, in the invoice's currency; 0 for crypto invoices.
	confirmed, detected decimal.Decimal
	// any says that some payment is confirmed, credited or not; credited that one pays towards an option.
	any, credited bool
	// less says that less is confirmed on an option than before.
	less bool
}

func (inv *Invoice) receive(payments []Payment) receipt {
	var r receipt

	paid, detected := make([]chain.Amount, len(inv.Options)), make([]chain.Amount, len(inv.Options))
	for _, p := range payments {
		i := slices.IndexFunc(inv.Options, func(o Option) bool { return o.ID == p.OptionID })
		switch {
		case p.Status == Confirmed:
			r.any = true
			if i >= 0 {
				r.credited = true
				r.confirmed = r.confirmed.Add(p.Credit)
				paid[i] = paid[i].Add(p.Amount)
			}
		case p.Status == Detected && i >= 0:
			r.detected = r.detected.Add(p.Credit)
			detected[i] = detected[i].Add(p.Amount)
		}
	}

	for i := range inv.Options {
		o := &inv.Options[i]
		r.less = r.less || paid[i].Less(o.AmountPaid)
		o.AmountPaid, o.AmountDetected = paid[i], detected[i]
	}

	return r
}

// standing is the status by the money alone.
func (inv *Invoice) standing(r receipt) Status {
	switch {
	case inv.enough(r, false):
		return Paid
	case inv.enough(r, true):
		return Pending
	case r.credited:
		return Underpaid
	}

	return Open
}

// enough reports whether what was confirmed, or with waiting also what was detected, pays the invoice. The
// allowed shortfall is exact in money and rounded down in base units.
func (inv *Invoice) enough(r receipt, waiting bool) bool {
	if inv.Kind == Fiat {
		sum := r.confirmed
		if waiting {
			sum = sum.Add(r.detected)
		}

		return sum.Cmp(inv.Price.Sub(inv.tolerance())) >= 0
	}

	for _, o := range inv.Options {
		sum := o.AmountPaid
		if waiting {
			sum = sum.Add(o.AmountDetected)
		}

		if !sum.IsZero() && !sum.Less(o.AmountDue.Sub(o.AmountDue.BPS(inv.ToleranceBPS))) {
			return true
		}
	}

	return false
}

// tolerance is the allowed difference in the invoice's currency, exact.
func (inv *Invoice) tolerance() decimal.Decimal {
	return inv.Price.Mul(decimal.New(int64(inv.ToleranceBPS), -4))
}

// overpaid reports whether what is confirmed exceeds what was due by more than the tolerance and one display
// step; a remainder that we raised to the asset's minimum counts as due.
func (inv *Invoice) overpaid(r receipt) bool {
	if inv.Kind == Fiat {
		limit := inv.Price.Add(inv.tolerance())
		if o := inv.Option(inv.PaidOptionID); o != nil {
			limit = limit.Add(o.DisplayStep().Add(o.Raise).Decimal(o.Decimals).Mul(o.Rate))
		}

		return r.confirmed.Cmp(limit) > 0
	}

	for _, o := range inv.Options {
		limit := o.AmountDue.BPS(inv.ToleranceBPS).Add(o.DisplayStep())
		if o.ID == inv.PaidOptionID {
			limit = limit.Add(o.AmountDue)
		}

		if limit.Less(o.AmountPaid) {
			return true
		}
	}

	return false
}

// payingOption is the option of the payment that made it enough; of the latest one where an acceptance did.
func (inv *Invoice) payingOption(payments []Payment) string {
	var confirmed []Payment

	for _, p := range payments {
		if p.Status == Confirmed && p.OptionID != "" {
			confirmed = append(confirmed, p)
		}
	}

	slices.SortFunc(confirmed, func(a, b Payment) int {
		return cmp.Or(a.ConfirmedAt.Compare(b.ConfirmedAt), cmp.Compare(a.ID, b.ID))
	})

	trial, r, last := Invoice{Kind: inv.Kind, Price: inv.Price, ToleranceBPS: inv.ToleranceBPS}, receipt{}, ""
	for _, o := range inv.Options {
		o.AmountPaid, o.AmountDetected = chain.Amount{}, chain.Amount{}
		trial.Options = append(trial.Options, o)
	}

	for _, p := range confirmed {
		o := trial.Option(p.OptionID)
		if o == nil {
			continue
		}

		o.AmountPaid, r.confirmed, last = o.AmountPaid.Add(p.Amount), r.confirmed.Add(p.Credit), o.ID
		if trial.enough(r, false) {
			break
		}
	}

	return last
}

func (inv *Invoice) accepted() bool { return inv.Has(Late) || inv.Has(UnderpaidAccepted) }

// Closed reports whether a payment that confirms now is late.
func (inv *Invoice) Closed() bool {
	return inv.Status == Expired || inv.Status == Canceled || inv.Status == Refunded && inv.ClosedAs != ""
}

// Deadline is when the invoice expires: sooner as long as nothing was selected.
func (inv *Invoice) Deadline() time.Time {
	if inv.SelectedOptionID == "" {
		return inv.PreSelectionExpiresAt
	}

	return inv.ExpiresAt
}

// Schedule sets DueAt to when the invoice expires, or to zero when it does not expire by time.
func (inv *Invoice) Schedule() {
	inv.DueAt = time.Time{}
	if inv.Status == Open || inv.Status == Underpaid {
		inv.DueAt = inv.Deadline()
	}
}

// Expire ends an open or underpaid invoice whose time is over; an expired one stays as it is.
// scanned tells up to which block time each network has been read: an invoice with a selection
// expires only once all its networks have been read up to its end, so that our own lag never
// punishes the payer. Refusals are fault.State: invoice_payment_pending while a payment may still
// come back, invoice_not_due before the time.
func (inv *Invoice) Expire(
	payments []Payment,
	scanned map[string]time.Time,
	now time.Time,
) ([]event.Type, error) {
	if inv.Status == Expired {
		return nil, nil
	}

	if inv.Status != Open && inv.Status != Underpaid {
		return nil, inv.refuseClosing("expire")
	}

	if err := inv.waiting(payments); err != nil {
		return nil, err
	}

	if now.Before(inv.Deadline()) {
		return nil, fault.New(
			fault.State, "invoice_not_due", "invoice %s expires at %s", inv.ID, inv.Deadline(),
		)
	}

	for _, o := range inv.Options {
		if o.Selected() && scanned[o.Network].Before(inv.ExpiresAt) {
			return nil, fault.New(
				fault.State, "invoice_not_due",
				"network %s has not been read up to the end of invoice %s",
				o.Network, inv.ID,
			)
		}
	}

	return inv.close(Expired, payments, now), nil
}

// Cancel ends an open or underpaid invoice; a canceled one stays as it is. Refusals are fault.State.
func (inv *Invoice) Cancel(payments []Payment, now time.Time) ([]event.Type, error) {
	if inv.Status == Canceled {
		return nil, nil
	}

	if inv.Status != Open && inv.Status != Underpaid {
		return nil, inv.refuseClosing("be canceled")
	}

	if err := inv.waiting(payments); err != nil {
		return nil, err
	}

	return inv.close(Canceled, payments, now), nil
}

// ExpireNow ends an open or underpaid invoice before its time, for simulations; a closed one stays as it is.
// Refusals are fault.State.
func (inv *Invoice) ExpireNow(payments []Payment, now time.Time) ([]event.Type, error) {
	if inv.Closed() {
		return nil, nil
	}

	if inv.Status != Open && inv.Status != Underpaid {
		return nil, inv.refuseClosing("expire")
	}

	if err := inv.waiting(payments); err != nil {
		return nil, err
	}

	return inv.close(Expired, payments, now), nil
}

func (inv *Invoice) close(as Status, payments []Payment, now time.Time) []event.Type {
	inv.ClosedAs = as
	if as == Expired {
		inv.ExpiredAt = now
	} else {
		inv.CanceledAt = now
	}

	return inv.Recompute(payments, now)
}

func (inv *Invoice) refuseClosing(what string) error {
	if inv.Status == Pending {
		return fault.New(
			fault.State, "invoice_payment_pending",
			"invoice %s waits for a payment to confirm, so it cannot %s",
			inv.ID, what,
		)
	}

	return fault.New(
		fault.State, "invoice_not_open", "invoice %s is %s, so it cannot %s",
		inv.ID, inv.Status, what,
	)
}

// waiting refuses while a payment is orphaned and not yet dropped: it may still come back.
func (inv *Invoice) waiting(payments []Payment) error {
	for _, p := range payments {
		if p.Status == Orphaned {
			return fault.New(
				fault.State,
				"invoice_payment_pending",
				"payment %s of invoice %s was taken back by a reorganisation and may return; wait until "+
					"it confirms or is dropped",
				p.ID,
				inv.ID,
			)
		}
	}

	return nil
}

// Accept takes what an expired or canceled invoice received as its payment (flag late) and, with
// allowUnderpaid, also what an underpaid one did; UnderpaidAccepted is flagged when it is not
// enough. Refusals are fault.State: invoice_refunded after any refund, invoice_payment_pending,
// invoice_not_late for what is underpaid or open without allowUnderpaid, invoice_has_no_payment. An
// invoice accepted before stays as it is.
func (inv *Invoice) Accept(payments []Payment, allowUnderpaid bool, now time.Time) ([]event.Type, error) {
	closed := inv.Status == Expired || inv.Status == Canceled
	switch {
	case inv.Status == Refunded || inv.refunding():
		return nil, fault.New(
			fault.State, "invoice_refunded",
			"invoice %s was refunded, wholly or in part, so its payment cannot be accepted any more",
			inv.ID,
		)
	case inv.Status == Paid && (allowUnderpaid || inv.Has(Late)):
		return nil, nil
	case !closed && !allowUnderpaid:
		return nil, fault.New(
			fault.State, "invoice_not_late",
			"invoice %s is %s: only an expired or canceled invoice has a late payment to accept",
			inv.ID, inv.Status,
		)
	case inv.Status == Pending:
		return nil, fault.New(
			fault.State, "invoice_payment_pending",
			"invoice %s waits for a payment to confirm; accept it afterwards if it is not enough",
			inv.ID,
		)
	}

	r := inv.receive(payments)
	if !r.any || inv.Status == Open {
		return nil, fault.New(
			fault.State, "invoice_has_no_payment", "invoice %s has no confirmed payment to accept",
			inv.ID,
		)
	}

	inv.set(Late, closed)
	inv.set(UnderpaidAccepted, !inv.enough(r, false))

	return inv.Recompute(payments, now), nil
}
