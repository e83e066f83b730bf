package payout_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/payoutstate"
	"github.com/seed-8ee7f392/payments/payout"
)

var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// txState is a state of a transaction that a payout may follow.
type txState struct {
	state   wallet.State
	failure string
}

func txStates() []txState {
	all := []txState{
		{wallet.Queued, ""},
		{wallet.Signed, ""},
		{wallet.Broadcast, ""},
		{wallet.Included, ""},
		{wallet.Confirmed, ""},
		{"unknown", ""},
	}
	for _, code := range []string{
		wallet.FailCanceled,
		wallet.FailStale,
		wallet.FailConflict,
		wallet.FailExpired,
		wallet.FailReverted,
		wallet.FailInsufficientFunds,
		wallet.FailNotPayable,
		wallet.FailTokenUnsafe,
		wallet.FailSignerRefused + "limit",
		wallet.FailSignerRefused,
		"made_up",
		"",
	} {
		all = append(all, txState{wallet.Failed, code})
	}

	return all
}

// legal is decisions part 5, written down a second time: what each state makes of a payout in each
// status. What is not here is refused.
var legal = map[payout.Status]map[txState]payout.Status{
	payout.Pending: {
		{wallet.Queued, ""}:                         payout.Pending,
		{wallet.Signed, ""}:                         payout.Processing,
		{wallet.Broadcast, ""}:                      payout.Processing,
		{wallet.Failed, "canceled"}:                 payout.Failed,
		{wallet.Failed, "stale"}:                    payout.Failed,
		{wallet.Failed, "signer_refused:limit"}:     payout.Failed,
		{wallet.Failed, "destination_not_payable"}:  payout.Failed,
		{wallet.Failed, "token_unsafe"}:             payout.Failed,
		{wallet.Failed, "chain:insufficient_funds"}: payout.Failed,
	},
	payout.Processing: {
		{wallet.Signed, ""}:             payout.Processing,
		{wallet.Broadcast, ""}:          payout.Processing,
		{wallet.Included, ""}:           payout.Included,
		{wallet.Failed, "conflict"}:     payout.Failed,
		{wallet.Failed, "expired"}:      payout.Failed,
		{wallet.Failed, "token_unsafe"}: payout.Failed,
	},
	payout.Included: {
		{wallet.Signed, ""}:         payout.Processing,
		{wallet.Broadcast, ""}:      payout.Processing,
		{wallet.Included, ""}:       payout.Included,
		{wallet.Confirmed, ""}:      payout.Confirmed,
		{wallet.Failed, "reverted"}: payout.Failed,
	},
	payout.Confirmed: {
		{wallet.Signed, ""}:    payout.Processing,
		{wallet.Broadcast, ""}: payout.Processing,
		{wallet.Confirmed, ""}: payout.Confirmed,
	},
	payout.Failed: {}, // nothing moves it; a repeated failure changes nothing
}

// standing is a payout in a status as the moves before it leave it.
func standing(s payout.Status) payout.Payout {
	p := payout.Payout{
		ID:            "p",
		Status:        s,
		Amount:        chain.Units(5),
		MaxNetworkFee: chain.Units(9),
		CreatedAt:     now.Add(-time.Hour),
	}
	fee := chain.Units(3)

	switch s {
	case payout.Pending:
	case payout.Processing:
		p.TxHash, p.BroadcastAt = "hash", now.Add(-time.Hour)
	case payout.Included:
		p.TxHash, p.BroadcastAt, p.NetworkFee = "hash", now.Add(-time.Hour), &fee
	case payout.Confirmed:
		p.TxHash, p.BroadcastAt, p.NetworkFee = "hash", now.Add(-time.Hour), &fee
		p.ConfirmedAt = now.Add(-time.Minute)
	case payout.Failed:
		p.FailureCode, p.FailedAt = wallet.FailStale, now.Add(-time.Minute)
	}

	return p
}

func transaction(f txState) wallet.Transaction {
	t := wallet.Transaction{ID: "t", State: f.state, Failure: f.failure, TxHash: "hash"}
	switch {
	case f.state == wallet.Included, f.state == wallet.Confirmed, f.failure == wallet.FailReverted:
		t.Fee, t.Block = chain.Units(3), chain.Ref{Height: 7, Hash: "block"}
	case f.state == wallet.Queued:
		t.TxHash = ""
	}

	return t
}

func TestEveryMoveOfAPayout(t *testing.T) {
	moves, refusals := 0, 0

	for _, from := range payoutstate.Statuses() {
		for _, f := range txStates() {
			before := standing(from)
			p := before

			events, err := p.Follow(transaction(f), now)
			if from == payout.Failed && f.state == wallet.Failed {
				if err != nil || !reflect.DeepEqual(p, before) || len(events) != 0 {
					t.Errorf("%s follows %v again: %+v %v %v", from, f, p, events, err)
				}

				continue
			}

			to, ok := legal[from][f]
			if !ok {
				refusals++

				if !errors.Is(err, fault.State) || fault.Code(err) != "payout_state" ||
					!reflect.DeepEqual(p, before) ||
					events != nil {
					t.Errorf("%s must refuse %v: %+v %v %v", from, f, p, events, err)
				}

				continue
			}

			moves++

			if err != nil || p.Status != to {
				t.Errorf("%s follows %v: %s %v, want %s", from, f, p.Status, err, to)
				continue
			}

			checkAfter(t, before, p, f, events)

			again, err := p.Follow(transaction(f), now.Add(time.Hour))
			if err != nil || len(again) != 0 || !p.ConfirmedAt.IsZero() && p.ConfirmedAt.After(now) ||
				p.FailedAt.After(now) {
				t.Errorf("%s follows %v twice: %+v %v %v", from, f, p, again, err)
			}
		}
	}

	t.Logf("%d pairs of status and state: %d legal, %d refused", moves+refusals, moves, refusals)
}

func checkAfter(t *testing.T, before, p payout.Payout, f txState, events []event.Type) {
	t.Helper()

	inBlock := p.Status == payout.Included || p.Status == payout.Confirmed ||
		p.FailureCode == wallet.FailReverted
	if (p.NetworkFee != nil) != inBlock {
		t.Errorf("%s after %v: network fee %v", p.Status, f, p.NetworkFee)
	}

	if p.ConfirmedAt.IsZero() == (p.Status == payout.Confirmed) ||
		p.FailedAt.IsZero() == (p.Status == payout.Failed) {
		t.Errorf("%s after %v: confirmed %v, failed %v", p.Status, f, p.ConfirmedAt, p.FailedAt)
	}

	if p.Status == payout.Failed &&
		(p.FailureCode != f.failure || (p.FailureMessage == "") != (f.failure == wallet.FailCanceled)) {
		t.Errorf("failed as %q: %q", p.FailureCode, p.FailureMessage)
	}

	var want []event.Type
	if before.BroadcastAt.IsZero() && f.state == wallet.Broadcast {
		want = append(want, event.PayoutBroadcast)
	}

	if before.Status != p.Status {
		switch p.Status {
		case payout.Confirmed:
			want = append(want, event.PayoutConfirmed)
		case payout.Failed:
			want = append(want, event.PayoutFailed)
		case payout.Pending, payout.Processing, payout.Included:
		}
	}

	if !slices.Equal(events, want) {
		t.Errorf("%s after %v tells %v, want %v", p.Status, f, events, want)
	}
}

// The table that the diagrams are drawn from is the one that the test above wrote down a second time.
func TestTableOfPayouts(t *testing.T) {
	type edge struct{ from, to payout.Status }

	want := map[edge]bool{{"", payout.Pending}: true}

	for from, moves := range legal {
		for _, to := range moves {
			if from != to {
				want[edge{from, to}] = true
			}
		}
	}

	got := map[edge]bool{}

	for _, m := range payout.Transitions() {
		e := edge{m.From, m.To}
		if got[e] || m.When == "" || (m.Codes != nil) != (m.To == payout.Failed) {
			t.Errorf("the row %+v is there twice, or says nothing", m)
		}

		got[e] = true

		for _, code := range m.Codes {
			if strings.HasSuffix(code, ":") {
				code += "limit"
			}

			if legal[m.From][txState{wallet.Failed, code}] != payout.Failed {
				t.Errorf("%s may not fail as %s", m.From, code)
			}
		}

		if !want[e] {
			t.Errorf("%s to %s is in the table and not legal", m.From, m.To)
		}
	}

	if len(got) != len(want) {
		t.Errorf("the table has %d moves, want %d", len(got), len(want))
	}
}

// The hash is shown once the bytes are stored, and follows replacements. What the network never had leaves none.
func TestHashOfAPayout(t *testing.T) {
	p := standing(payout.Pending)
	for _, step := range []struct {
		t         wallet.Transaction
		hash      string
		published []event.Type
	}{
		{wallet.Transaction{State: wallet.Signed, TxHash: "a"}, "a", nil},
		{wallet.Transaction{State: wallet.Broadcast, TxHash: "a"}, "a", []event.Type{event.PayoutBroadcast}},
		{wallet.Transaction{State: wallet.Broadcast, TxHash: "b"}, "b", nil},
		{wallet.Transaction{State: wallet.Included, TxHash: "a"}, "a", nil},
		{wallet.Transaction{State: wallet.Broadcast, TxHash: "b"}, "b", nil},
		{
			wallet.Transaction{
				State:    wallet.Failed,
				Failure:  wallet.FailConflict,
				TxHash:   "b",
				Attempts: []wallet.Attempt{{FirstTakenAt: now}},
			},
			"b",
			[]event.Type{event.PayoutFailed},
		},
	} {
		published, err := p.Follow(step.t, now)
		if err != nil || p.TxHash != step.hash || !slices.Equal(published, step.published) {
			t.Errorf(
				"%s %s: hash %q, published %v, %v",
				step.t.State, step.t.TxHash, p.TxHash, published, err,
			)
		}
	}

	dead := standing(payout.Processing)
	dead.BroadcastAt = time.Time{}

	expired := wallet.Transaction{State: wallet.Failed, Failure: wallet.FailExpired, TxHash: "a"}
	if _, err := dead.Follow(expired, now); err != nil || dead.TxHash != "" {
		t.Errorf("it expired: hash %q, %v", dead.TxHash, err)
	}

	lost := standing(payout.Pending)
	lost.Status = payout.Processing // its broadcast was never answered

	published, err := lost.Follow(wallet.Transaction{State: wallet.Included, TxHash: "a"}, now)
	if err != nil || !slices.Equal(published, []event.Type{event.PayoutBroadcast}) {
		t.Errorf("found in a block, it publishes %v, %v", published, err)
	}
}

func TestEveryMoveOfARefund(t *testing.T) {
	type payoutState struct {
		status payout.Status
		code   string
	}

	all := []payoutState{
		{payout.Pending, ""},
		{payout.Processing, ""},
		{payout.Included, ""},
		{payout.Confirmed, ""},
		{payout.Failed, "canceled"},
		{payout.Failed, "stale"},
		{payout.Failed, "conflict"},
		{payout.Failed, "reverted"},
		{payout.Failed, "signer_refused:limit"},
	}
	running := []payoutState{all[0], all[1], all[2]}
	failed := all[5:]

	legal := map[payout.RefundStatus]map[payoutState]payout.RefundStatus{
		payout.RefundPending:   {all[3]: payout.RefundSucceeded, all[4]: payout.RefundCanceled},
		payout.RefundSucceeded: {all[3]: payout.RefundSucceeded},
		payout.RefundFailed:    {},
		payout.RefundCanceled:  {all[4]: payout.RefundCanceled},
	}
	for _, h := range running {
		legal[payout.RefundPending][h], legal[payout.RefundSucceeded][h] = payout.RefundPending, payout.RefundPending
	}

	for _, h := range failed {
		legal[payout.RefundPending][h], legal[payout.RefundFailed][h] = payout.RefundFailed, payout.RefundFailed
	}

	published := map[payout.RefundStatus]event.Type{
		payout.RefundSucceeded: event.RefundSucceeded,
		payout.RefundFailed:    event.RefundFailed,
		payout.RefundCanceled:  event.RefundFailed,
	}
	seen := map[[2]payout.RefundStatus]bool{
		{"", payout.RefundPending}:   true,
		{"", payout.RefundSucceeded}: true,
	}

	for _, from := range payoutstate.RefundStatuses() {
		for _, h := range all {
			r := payout.Refund{ID: "r", Status: from}
			if from == payout.RefundSucceeded {
				r.SucceededAt = now.Add(-time.Minute)
			}

			events, err := r.Follow(payout.Payout{Status: h.status, FailureCode: h.code}, now)

			to, ok := legal[from][h]
			if !ok {
				if !errors.Is(err, fault.State) || fault.Code(err) != "refund_state" || r.Status != from ||
					len(events) != 0 {
					t.Errorf("%s must refuse %v: %s %v", from, h, r.Status, err)
				}

				continue
			}

			if err != nil || r.Status != to {
				t.Errorf("%s follows %v: %s %v, want %s", from, h, r.Status, err, to)
				continue
			}

			if from == to {
				if len(events) != 0 {
					t.Errorf("%s follows %v and publishes %v", from, h, events)
				}

				continue
			}

			seen[[2]payout.RefundStatus{from, to}] = true
			if to == payout.RefundPending {
				if len(events) != 0 || !r.SucceededAt.IsZero() {
					t.Errorf("taken back it is %+v and tells %v", r, events)
				}

				continue
			}

			if len(events) != 1 || events[0] != published[to] ||
				r.SucceededAt.IsZero() == (to == payout.RefundSucceeded) ||
				r.FailedAt.IsZero() == (to != payout.RefundSucceeded) ||
				r.FailureCode != h.code {
				t.Errorf("%s after %v is %+v and tells %v", to, h, r, events)
			}
		}
	}

	table := map[[2]payout.RefundStatus]bool{}
	for _, m := range payout.RefundTransitions() {
		table[[2]payout.RefundStatus{m.From, m.To}] = true
		if !seen[[2]payout.RefundStatus{m.From, m.To}] {
			t.Errorf("%s to %s is in the table and never happens", m.From, m.To)
		}
	}

	if len(table) != len(seen) {
		t.Errorf("the table has %d moves, %d happen", len(table), len(seen))
	}
}

// A reverted payout whose block left the chain shows no fee, and then what took its place, with what that cost.
func TestRevertedPayoutFailsAnew(t *testing.T) {
	p := standing(payout.Included)
	tx := transaction(txState{wallet.Failed, wallet.FailReverted})

	follow := func(what string, at time.Time, want ...event.Type) {
		t.Helper()

		events, err := p.Follow(tx, at)
		if err != nil || !slices.Equal(events, want) || p.Status != payout.Failed || !p.FailedAt.Equal(now) {
			t.Fatalf("%s: %v %v, %+v", what, events, err, p)
		}
	}

	follow("reverted", now, event.PayoutFailed)

	tx.Block, tx.Fee = chain.Ref{Height: 9, Hash: "another"}, chain.Units(4)

	follow("reverted in another block", now.Add(time.Hour))

	if p.NetworkFee == nil || *p.NetworkFee != chain.Units(4) {
		t.Errorf("in another block it costs %v", p.NetworkFee)
	}

	tx.Block, tx.Fee = chain.Ref{}, chain.Amount{}

	follow("out of its block", now.Add(2*time.Hour))

	if p.NetworkFee != nil || p.FailureCode != wallet.FailReverted {
		t.Errorf("out of its block it costs %v, %s", p.NetworkFee, p.FailureCode)
	}

	tx.Failure, tx.Fee, tx.Conflict = wallet.FailConflict, chain.Units(
		5,
	), wallet.Conflict{
		TxHash: "x",
		Own:    true,
	}

	follow("displaced", now.Add(3*time.Hour), event.PayoutFailed)

	r := p.Resource()
	if want := (payout.Conflict{TxHash: "x", Own: true, NetworkFee: "5"}); r.Conflict == nil ||
		*r.Conflict != want ||
		r.FailureCode != wallet.FailConflict ||
		r.NetworkFee != "" {
		t.Errorf("displaced it is %+v", r)
	}

	tx.Fee = chain.Units(6)

	follow("its cancel in another block", now.Add(4*time.Hour))

	if *p.NetworkFee != chain.Units(6) {
		t.Errorf("its cancel costs %s", p.NetworkFee)
	}

	refund := payout.Refund{ID: "r", Status: payout.RefundFailed, FailureCode: wallet.FailReverted}
	if events, err := refund.Follow(p, now); err != nil || len(events) > 0 ||
		refund.FailureCode != wallet.FailConflict {
		t.Errorf("its refund: %v %v %+v", events, err, refund)
	}
}
