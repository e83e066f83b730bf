package invoice

import (
	"time"

	"github.com/seed-8ee7f392/payments/event"
)

// Recompute derives sums, status, flags, times and DueAt from all payments to the invoice. It returns the
// events of a change of status. It is idempotent: the same payments, in any order, give the same invoice. It
// keeps everything that does not depend on payments: ClosedAs, the refunds, and an acceptance (flags Late and
// UnderpaidAccepted).
func (inv *Invoice) Recompute(payments []Payment, now time.Time) []event.Type {
	r := inv.receive(payments)
	standing := inv.standing(r)

	// An acceptance covers the payments that were confirmed when it was made. If less is confirmed later, the
	// acceptance holds only if the rest is enough by itself. A payment that returns does not restore it.
	if inv.accepted() && standing != Paid && inv.lacksAccepted(payments) {
		inv.set(Late, false)
		inv.set(UnderpaidAccepted, false)

		inv.Accepted = nil
	}

	before, next := inv.Status, standing
	switch {
	case before == Refunded:
		next = Refunded
	case inv.accepted():
		next = Paid
	case inv.ClosedAs != "" && standing == Paid && inv.AcceptLate && !inv.refunding(): // spec D2.3.12
		inv.accept(r, payments, true)

		next = Paid
	case inv.ClosedAs != "":
		next = inv.ClosedAs
	}

	if next != Open && next != Pending && inv.refundedInFull(payments) {
		next = Refunded
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

// statusEvents returns the event of a change of status. An invoice that waits for nothing any more returns
// from pending to open or underpaid as invoice.reopened (decisions 11). If all that it received is refunded
// by then, it becomes refunded at once, so that nobody delivers for an invoice.paid whose money went back.
func statusEvents(before, next Status) []event.Type { // spec 6.5
	switch {
	case before == next:
		return nil
	case before == Paid && next != Refunded: // spec D2.3.6
		return []event.Type{event.InvoicePaymentReversed}
	case before == Pending && next == Open: // spec D11.1
		return []event.Type{event.InvoiceReopened}
	case before == Pending && next == Underpaid:
		return []event.Type{event.InvoiceReopened, event.InvoiceUnderpaid}
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
		// The payment's own event is enough.
	}

	return nil
}
