package payout

import (
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain/send"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/webhook/event"
)

// legal holds every move of a payout (decisions part 5). Failing is refined by legalFailure.
var legal = map[Status][]Status{
	Pending:    {Processing, Failed},
	Processing: {Included, Failed},
	Included:   {Processing, Confirmed, Failed},
	Confirmed:  {Processing},
	Failed:     {},
}

// statusOf is what a payout is called while its transaction is in a state.
var statusOf = map[send.State]Status{
	send.Queued:    Pending,
	send.Signed:    Processing,
	send.Broadcast: Processing,
	send.Included:  Included,
	send.Confirmed: Confirmed,
	send.Failed:    Failed,
}

// messages explain failure codes to people; a code without a row needs no explanation.
var messages = map[string]string{
	send.FailStale:             "The payout was not signed within two hours of its creation and was given up rather than paid late. Nothing was sent; create it again.",
	send.FailConflict:          "Something else used the wallet's nonce or coins first. Nothing was sent; check who else uses the master wallet, then create the payout again.",
	send.FailExpired:           "The network never took the signed transaction and never will. Nothing was sent; create the payout again.",
	send.FailReverted:          "The transaction was included but its execution failed. The destination received nothing; only the network fee was spent.",
	send.FailInsufficientFunds: "The master wallet did not hold enough to pay the amount and the network fee. Nothing was sent; top it up and create the payout again.",
	send.FailNotPayable:        "The destination cannot receive this asset. Nothing was sent; check the address with its owner.",
}

// Follow brings the payout to where its transaction stands and returns the events to tell. A transaction that
// stands where the payout already is changes nothing. A move that is not legal is fault.State.
func (p *Payout) Follow(t send.Transaction, now time.Time) ([]event.Type, error) {
	next := statusOf[t.State]
	var events []event.Type
	if next != p.Status {
		if !p.may(next, t.Failure) {
			return nil, fault.New(fault.State, "payout_state", "payout %s is %s and cannot become %s (%s)", p.ID, p.Status, next, t.Failure)
		}
		p.Status = next
	} else if next == Failed || next == Pending {
		return nil, nil
	}
	p.ConfirmedAt, p.NetworkFee = time.Time{}, nil
	switch next {
	case Included, Confirmed:
		fee := t.Fee
		p.NetworkFee = &fee
	}
	if taken(t) {
		if p.TxHash == "" {
			events = append(events, event.PayoutBroadcast)
		}
		p.TxHash = t.TxHash
	}
	switch next {
	case Confirmed:
		p.ConfirmedAt = now
		events = append(events, event.PayoutConfirmed)
	case Failed:
		p.FailedAt, p.FailureCode, p.FailureMessage = now, t.Failure, messages[t.Failure]
		if strings.HasPrefix(t.Failure, send.FailSignerRefused) {
			p.FailureMessage = "The signer refused to sign. Nothing was sent; see its policy for the reason."
		}
		if t.Failure == send.FailReverted {
			fee := t.Fee
			p.NetworkFee = &fee
		}
		events = append(events, event.PayoutFailed)
	}
	return events, nil
}

// may reports whether a move is in the table.
func (p *Payout) may(next Status, failure string) bool {
	for _, s := range legal[p.Status] {
		if s == next {
			return next != Failed || p.mayFail(failure)
		}
	}
	return false
}

// mayFail reports whether a payout may fail with a code from where it stands: what was signed fails only by proof that it
// can never be included, what is included only as reverted.
func (p *Payout) mayFail(code string) bool {
	switch p.Status {
	case Pending:
		switch code {
		case send.FailCanceled, send.FailStale, send.FailNotPayable, send.FailInsufficientFunds:
			return true
		}
		return strings.HasPrefix(code, send.FailSignerRefused)
	case Processing:
		return code == send.FailConflict || code == send.FailExpired
	case Included:
		return code == send.FailReverted
	}
	return false
}

// taken reports whether the network has had the transaction at least once.
func taken(t send.Transaction) bool {
	switch t.State {
	case send.Broadcast, send.Included, send.Confirmed:
		return true
	}
	for _, a := range t.Attempts {
		if !a.FirstTakenAt.IsZero() {
			return true
		}
	}
	return false
}

// legalRefund holds every move of a refund (decisions part 6). A refund whose payout leaves its block after all is
// pending again.
var legalRefund = map[RefundStatus][]RefundStatus{
	RefundPending:   {RefundSucceeded, RefundFailed, RefundCanceled},
	RefundSucceeded: {RefundPending},
	RefundFailed:    {},
	RefundCanceled:  {},
}

// Follow brings the refund to where its payout stands and returns the events to tell.
func (r *Refund) Follow(p Payout, now time.Time) ([]event.Type, error) {
	next := RefundPending
	switch {
	case p.Status == Confirmed:
		next = RefundSucceeded
	case p.Status == Failed && p.FailureCode == send.FailCanceled:
		next = RefundCanceled
	case p.Status == Failed:
		next = RefundFailed
	}
	if next == r.Status {
		return nil, nil
	}
	ok := false
	for _, s := range legalRefund[r.Status] {
		ok = ok || s == next
	}
	if !ok {
		return nil, fault.New(fault.State, "refund_state", "refund %s is %s and cannot become %s", r.ID, r.Status, next)
	}
	r.Status, r.SucceededAt, r.FailedAt, r.FailureCode = next, time.Time{}, time.Time{}, ""
	switch next {
	case RefundSucceeded:
		r.SucceededAt = now
		return []event.Type{event.RefundSucceeded}, nil
	case RefundFailed, RefundCanceled:
		r.FailedAt, r.FailureCode = now, p.FailureCode
		return []event.Type{event.RefundFailed}, nil
	}
	return nil, nil
}
