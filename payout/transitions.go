package payout

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// Transition is one legal transition of a payout or a refund. The Follow methods obey the tables below, and
// the diagrams of docs/states.md are drawn from them.
type Transition[S ~string] struct {
	// From is empty for the creation.
	From, To S
	// Codes are the failure codes that the transition to failed may have. A code that ends in a colon stands
	// for all codes that begin with it. Nil for every other transition.
	Codes []string
	// When explains to people what causes the transition.
	When string
}

// transitions are the transitions of a payout (decisions part 5). A signed payout fails only by proof that it
// can never be included. An included one fails only as reverted.
var transitions = []Transition[Status]{ // spec D5.6
	{To: Pending, When: "accepted, amount and highest fee reserved"},
	{From: Pending, To: Processing, When: "signed bytes are stored"},
	{
		From: Pending,
		To:   Failed,
		Codes: []string{
			wallet.FailCanceled,
			wallet.FailStale,
			wallet.FailNotPayable,
			wallet.FailTokenUnsafe,
			wallet.FailInsufficientFunds,
			wallet.FailSignerRefused,
		},
		When: "given up before it was signed",
	},
	{From: Processing, To: Included, When: "in a block"},
	{
		From:  Processing,
		To:    Failed,
		Codes: []string{wallet.FailConflict, wallet.FailExpired, wallet.FailTokenUnsafe},
		When:  "proven never to be included",
	},
	{From: Included, To: Processing, When: "its block left the chain"},
	{From: Included, To: Confirmed, When: "its block is final"},
	{From: Included, To: Failed, Codes: []string{wallet.FailReverted}, When: "executed in vain, at finality"},
	{From: Confirmed, To: Processing, When: "its block left the chain after all"},
}

// refundTransitions are the transitions of a refund (decisions part 6). If its payout leaves its block after
// all, the refund is pending again.
var refundTransitions = []Transition[RefundStatus]{ // spec D6.8
	{To: RefundPending, When: "accepted, with the payout that pays it"},
	{To: RefundSucceeded, When: "of a simulated payment"},
	{From: RefundPending, To: RefundSucceeded, When: "its payout is confirmed"},
	{From: RefundPending, To: RefundFailed, When: "its payout failed"},
	{From: RefundPending, To: RefundCanceled, When: "its payout was canceled"},
	{From: RefundSucceeded, To: RefundPending, When: "its payout's block left the chain after all"},
}

// Transitions returns every legal transition of a payout.
func Transitions() []Transition[Status] { return slices.Clone(transitions) }

// RefundTransitions returns every legal transition of a refund.
func RefundTransitions() []Transition[RefundStatus] { return slices.Clone(refundTransitions) }

// allowed reports whether a table has a transition, with the failure code if it needs one.
func allowed[S ~string](table []Transition[S], from, to S, code string) bool {
	for _, t := range table {
		if t.From == from && t.To == to {
			return t.Codes == nil || slices.ContainsFunc(t.Codes, func(c string) bool {
				return code == c && !strings.HasSuffix(c, ":") ||
					strings.HasSuffix(c, ":") && len(code) > len(c) && strings.HasPrefix(code, c)
			})
		}
	}

	return false
}

// statusOf maps a transaction's state to the payout's status.
var statusOf = map[wallet.State]Status{
	wallet.Queued:    Pending,
	wallet.Signed:    Processing,
	wallet.Broadcast: Processing,
	wallet.Included:  Included,
	wallet.Confirmed: Confirmed,
	wallet.Failed:    Failed,
}

// messages explain failure codes to people; a code without a row needs no explanation.
var messages = map[string]string{ // spec 2.3.4
	wallet.FailStale: "The payout was not signed within two hours of its creation and was given " +
		"up rather than paid late. Nothing was sent; create it again.",
	wallet.FailConflict: "Something else used the wallet's nonce or coins first. Nothing was sent; " +
		"check who else uses the master wallet, then create the payout again.",
	wallet.FailExpired: "The network never took the signed transaction and never will. Nothing " +
		"was sent; create the payout again.",
	wallet.FailReverted: "The transaction was included but its execution failed. The destination " +
		"received nothing and the amount is still in the wallet; only the network fee was spent.",
	wallet.FailInsufficientFunds: "The master wallet did not hold enough to pay the amount and the network " +
		"fee, or held it in more coins than one transaction takes. Nothing was sent; create the payout again: it is " +
		"accepted, or refused with what is missing.",
	wallet.FailTokenUnsafe: "The token's issuer changed it so that transfers cannot be relied on. Nothing was paid: " +
		"the amount is still in the wallet; Engine.Check says what was changed.",
	wallet.FailNotPayable: "The destination cannot receive this asset. Nothing was sent; check the address " +
		"with its owner.",
}

// displacedMessage explains a payout that lost to a transaction of ours.
const displacedMessage = "Another transaction of this service took the payout's place, such as the one that " +
	"frees a wallet from a payment which no block takes. Nothing was sent; conflict names the transaction and " +
	"what it cost. Create the payout again."

// watchOnlyMessage explains a payout from a wallet without a key.
const watchOnlyMessage = "The master wallet is watch-only: this service does not have its key, so it cannot pay from " +
	"it. Nothing was sent; send from the wallet itself."

// Follow moves the payout to the status of its transaction and returns the events to publish. At the same
// status it changes only the hash of a replacement and the fee of another block. A failed payout stays
// failed: Follow then updates its cost, and the failure once a proof replaces a block that left the chain. An
// illegal transition is fault.State with code payout_state, and changes nothing.
func (p *Payout) Follow(t wallet.Transaction, now time.Time) ([]event.Type, error) {
	next, code := statusOf[t.State], t.Failure
	if p.movedNothing(t) {
		next, code = Failed, wallet.FailReverted
	}

	if p.executedInVain() && taken(t) && t.State != wallet.Failed {
		// It stays failed, even if a fork moves its bytes.
		p.NetworkFee = feeOf(t)
		return nil, nil
	}

	moved := next != p.Status
	if moved && !allowed(transitions, p.Status, next, code) {
		return nil, fault.New(
			fault.State, "payout_state", "payout %s is %s and cannot become %s (%s)",
			p.ID, p.Status, next, code,
		)
	}

	if !moved && next == Failed {
		return p.followFailed(t), nil
	}

	p.Status, p.NetworkFee = next, feeOf(t) // spec 2.3.6
	p.ReasonMessage, p.WaitingSince = t.Waits, t.WaitingSince
	p.AmountDelivered = p.shortBy(t)

	var events []event.Type

	if taken(t) && p.BroadcastAt.IsZero() {
		p.BroadcastAt = now

		events = append(events, event.PayoutBroadcast) // spec 6.6
	}

	switch {
	case next == Processing || taken(t):
		p.TxHash = t.TxHash // spec D11.17
	case p.BroadcastAt.IsZero():
		p.TxHash = "" // the network never had it
	}

	if !moved {
		return events, nil
	}

	p.ConfirmedAt = time.Time{}

	switch next {
	case Confirmed:
		p.ConfirmedAt = now

		events = append(events, event.PayoutConfirmed) // spec 6.7
	case Failed:
		p.fail(t, now)

		if code != t.Failure {
			p.FailureCode, p.FailureMessage = code, nothingMovedMessage
		}

		events = append(events, event.PayoutFailed) // spec 6.8
	case Pending, Processing, Included:
		// On the way.
	}

	return events, nil
}

// followFailed updates the cost of a failed payout. The cost changes when the block in which it was reverted
// left the chain, or a cancel of its nonce is in another block. A reverted payout fails anew once it is proven
// that it can never be included.
func (p *Payout) followFailed(t wallet.Transaction) []event.Type {
	again := p.FailureCode == wallet.FailReverted &&
		(t.Failure == wallet.FailConflict || t.Failure == wallet.FailExpired)
	if !again && p.FailureCode != t.Failure {
		return nil
	}

	p.NetworkFee = feeOf(t)

	if !again {
		return nil
	}

	p.fail(t, p.FailedAt)

	return []event.Type{event.PayoutFailed}
}

// feeOf returns the payout's network fee: that of the block that holds its transaction, or of the cancel that
// used its nonce; nil without either.
func feeOf(t wallet.Transaction) *chain.Amount {
	included := t.State == wallet.Included || t.State == wallet.Confirmed
	reverted := t.Failure == wallet.FailReverted && !t.Block.IsZero()
	displaced := t.State == wallet.Failed && !t.Fee.IsZero()

	if !included && !reverted && !displaced {
		return nil
	}

	fee := walletstate.OwnFee(t)

	return &fee
}

// fail sets the payout's failure with its explanation.
func (p *Payout) fail(t wallet.Transaction, now time.Time) {
	p.FailedAt, p.FailureCode, p.FailureMessage = now, t.Failure, messages[t.Failure]
	p.Conflict = t.Conflict

	if t.Failure == wallet.FailConflict && t.Conflict.Own {
		p.FailureMessage = displacedMessage
	}

	switch {
	case t.Failure == wallet.FailWatchOnly:
		p.FailureMessage = watchOnlyMessage
	case strings.HasPrefix(t.Failure, wallet.FailSignerRefused):
		p.FailureMessage = "The signer refused to sign. Nothing was sent; see its policy for the reason."
	}
}

// taken reports whether the network has had the transaction at least once.
func taken(t wallet.Transaction) bool {
	if t.State == wallet.Broadcast || t.State == wallet.Included || t.State == wallet.Confirmed {
		return true
	}

	for _, a := range t.Attempts {
		if !a.FirstTakenAt.IsZero() {
			return true
		}
	}

	return false
}

// Follow moves the refund to the status of its payout and returns the events to publish. An illegal
// transition is fault.State with code refund_state, and changes nothing.
func (r *Refund) Follow(p Payout, now time.Time) ([]event.Type, error) {
	next := RefundPending

	switch {
	case p.Status == Confirmed:
		next = RefundSucceeded
	case p.Status == Failed && p.FailureCode == wallet.FailCanceled:
		next = RefundCanceled
	case p.Status == Failed:
		next = RefundFailed
	}

	if next == r.Status {
		if next == RefundFailed {
			r.FailureCode = p.FailureCode // a reverted payout fails anew when its block left the chain
		}

		return nil, nil
	}

	if !allowed(refundTransitions, r.Status, next, "") {
		return nil, fault.New(
			fault.State, "refund_state", "refund %s is %s and cannot become %s",
			r.ID, r.Status, next,
		)
	}

	r.Status, r.SucceededAt, r.FailedAt, r.FailureCode = next, time.Time{}, time.Time{}, ""
	switch next {
	case RefundSucceeded:
		r.SucceededAt = now
		return []event.Type{event.RefundSucceeded}, nil
	case RefundFailed, RefundCanceled:
		r.FailedAt, r.FailureCode = now, p.FailureCode
		return []event.Type{event.RefundFailed}, nil
	case RefundPending:
		// Its payout may be included again.
	}

	return nil, nil
}
