package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// restPauses are how time passes once the faults are over: two days in ever longer steps.
var restPauses = []struct {
	times int
	pause time.Duration
}{{20, 3 * time.Second}, {60, 30 * time.Second}, {60, 5 * time.Minute}, {90, 30 * time.Minute}}

// workSteps and workPause are the short steps after each long pause: a process works all the time, and what it queues
// with a deadline is not left alone until that has passed.
const (
	workSteps = 4
	workPause = 3 * time.Second
)

// idlePause is how time passes while nothing is under way but invoices that run out and events that are sent again: the
// library has nothing to do meanwhile.
const idlePause = 5 * time.Minute

// onlyWaits reports whether what is under way waits for the time alone.
func onlyWaits(underWay []string) bool {
	return len(underWay) > 0 && !slices.ContainsFunc(underWay, func(s string) bool {
		return !strings.HasPrefix(s, "invoice ") && !strings.HasPrefix(s, "event ")
	})
}

// balancesRead is the time within which the balances of all addresses were compared: those of invoices that wait
// for no money are hourly.
const balancesRead = 2 * time.Hour

// isClean reports whether everything that arrived is published, and the audit finds nothing.
func (w *harness) isClean() bool {
	report, err := w.processes[0].alive().Audit(w.ctx)

	return err == nil && report.Clean() && !w.oracle.untold()
}

// finish ends all faults, lets time pass until nothing is under way, and checks what must hold then. It reports
// whether everything ended.
func (w *harness) finish() bool {
	w.heal()
	w.resume()

	rest := w.underWay()
	quiet := time.Duration(0) // for how long nothing has been under way
	since := time.Duration(0) // the last fault

	for _, r := range restPauses {
		for range r.times {
			pause := w.passAtRest(r.pause, rest)

			if len(w.oracle.violations) > 0 {
				return false
			}

			if since += pause; since > failedBound {
				w.oracle.checkFailedPayments()
			}

			w.oracle.checkWaitingPayments(since)

			rest = w.underWay()
			if quiet += pause; len(rest) > 0 {
				quiet = 0
			}

			if quiet >= balancesRead || quiet > 0 && w.isClean() {
				w.settle()
				return true
			}

			w.operate()
		}
	}

	w.reportRest(w.underWay())

	return false
}

// passAtRest lets a pause pass, or more where every block was read and nothing is under way that the library works on,
// and returns how long.
func (w *harness) passAtRest(pause time.Duration, underWay []string) time.Duration {
	if pause < idlePause && onlyWaits(underWay) && w.allRead() {
		w.pass(idlePause)

		return idlePause
	}

	w.pass(pause)

	if pause > time.Minute {
		w.work()
	}

	return pause
}

// reportRest reports what did not end within two days.
func (w *harness) reportRest(rest []string) {
	if slices.ContainsFunc(rest, func(s string) bool { return !strings.HasPrefix(s, "settlement") }) {
		w.oracle.violate(ruleRest, "two days after the last fault: %s", strings.Join(rest, "; "))

		return
	}

	w.oracle.violate(ruleReleased, "two days after the last fault: %s", strings.Join(rest, "; "))
	w.settle()
}

// work has every process work a few times, with little time in between.
func (w *harness) work() {
	for range workSteps {
		if len(w.oracle.violations) > 0 {
			return
		}

		w.pass(workPause)
	}
}

// allRead reports whether every network was read up to its tip, or is stopped.
func (w *harness) allRead() bool {
	return !slices.ContainsFunc(w.networks, func(n network) bool {
		cursor := w.oracle.records.cursors[n.slug()]
		return cursor.Stopped == "" && cursor.At.Hash != n.tip().Hash
	})
}

// resume is an operator's business: a network that was stopped goes on.
func (w *harness) resume() {
	for _, n := range w.networks {
		if w.oracle.records.cursors[n.slug()].Stopped != "" {
			_ = w.processes[0].alive().Resume(w.ctx, n.slug())
		}
	}
}

// settle checks what holds once everything ended.
func (w *harness) settle() {
	o := w.oracle
	o.checkPublished()
	o.checkOrphanSettlements()
	o.checkReserved()
	w.checkNamed()
	o.checkSums()
	o.checkShares()
	o.checkRefundedWhole()
	o.checkAudit(true)
	w.checkAttempts()

	if o.shadow != nil {
		o.shadow.checkRest()
		o.shadow.checkCarry()
	}

	if len(o.violations) == 0 {
		w.canary()
	}
}

// underWay lists what has not ended.
func (w *harness) underWay() []string {
	var all []string

	note := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }

	for slug, l := range w.oracle.ledgers {
		if cursor := w.oracle.records.cursors[slug]; cursor.At.Hash != l.tip().ref.Hash {
			note(
				"%s is read up to block %d of %d (%s)",
				slug,
				cursor.At.Height,
				l.tip().ref.Height,
				cursor.Stopped,
			)
		}
	}

	for _, n := range w.networks {
		for _, row := range w.unacknowledged(n.slug()) {
			note("transaction %s of %s is not acknowledged", row.TxHash, row.Address)
		}
	}

	for _, n := range w.networks {
		frozen, err := w.store.FrozenWallets(w.ctx, n.slug(), 0)
		must(err)

		for _, f := range frozen {
			note("wallet %s is frozen: %s", f.Party.Address, f.Frozen)
		}
	}

	w.noteRecords(note)

	for id, accountID := range w.oracle.records.events {
		for _, m := range w.merchants {
			if m.owner.AccountID == accountID && w.receivers.got[m.host][id] == 0 {
				note("event %s was never received", id)
			}
		}
	}

	slices.Sort(all)

	return all[:min(len(all), 12)]
}

// noteRecords notes each record that has not ended, and what is still reserved.
func (w *harness) noteRecords(note func(format string, args ...any)) {
	r := w.oracle.records

	for id, p := range r.payments {
		if !ended(p) {
			note("payment %s is %s", id, p.Status)
		}
	}

	for id, inv := range r.invoices {
		if inv.Status == invoice.Open || inv.Status == invoice.Pending || inv.Status == invoice.Underpaid &&
			inv.ClosedAs == "" {
			note("invoice %s is %s", id, inv.Status)
		}
	}

	waiting := w.awaitingOutputs()

	for id, p := range r.payouts {
		if p.Status != payout.Confirmed && p.Status != payout.Failed && waiting[id] == "" {
			note("payout %s is %s", id, p.Status)
		}
	}

	for id, refund := range r.refunds {
		if refund.Status == payout.RefundPending && waiting[refund.PayoutID] == "" {
			note("refund %s is %s", id, refund.Status)
		}
	}

	for id, s := range r.settlements {
		if !settled(s) && !w.awaitsPerson(s) && !w.oracle.isUnderItsCost(s) && !w.oracle.wasTakenBefore(s) {
			p := r.payments[s.PaymentID]
			note("settlement %s is %s %s, its payment %s", id, s.Status, s.Reason, p.Status)
		}

		if w.oracle.isMoved(s) {
			note(
				"settlement %s is %s %s, and nothing is left of it at %s",
				id,
				s.Status,
				s.Reason,
				s.Deposit.Address,
			)
		}
	}

	for at, b := range r.balances {
		if !b.Reserved.IsZero() && !holds(waiting, at.Address) {
			note("%s is reserved in %s", b.Reserved, at.Address)
		}
	}
}

// isMoved reports whether a settlement is held though its address holds nothing of its asset any more: a transaction on
// record moved it, so it is at the master wallet.
func (o *oracle) isMoved(s settlement.Settlement) bool {
	l := o.ledgers[s.Network]
	if s.Status != settlement.Held || s.Reason != settlement.Uneconomic || l.exact || o.lost ||
		o.hasStolen(s.Network) {
		return false
	}

	at := chain.Holding{Address: s.Deposit.Address, AssetID: s.AssetID}

	return l.network.balances(l.tip().ref.Height, []chain.Holding{at})[0].IsZero()
}

// awaitsPerson reports whether a settlement waits for a person to say that foreign transactions released it: two did,
// or the operator took another for its own. It fails a week after the last. Of coins he knows which one was spent.
func (w *harness) awaitsPerson(s settlement.Settlement) bool {
	rows, err := w.store.UnrecordedOutgoing(
		w.ctx, s.Network, s.Deposit.Address, w.clock.now().Add(-walletstate.ForeignFor),
	)
	must(err)

	return waits(s) && slices.ContainsFunc(rows, func(row wallet.Outgoing) bool {
		isCoin := row.Outpoint.TxHash != ""

		return !isCoin && slices.ContainsFunc(row.Transfers, func(t chain.Transfer) bool {
			return tookFrom(t, row) && t.AssetID == s.AssetID && w.isMaster(t.To)
		})
	})
}

// settled reports whether a settlement waits for nothing but money, fees or a person.
func settled(s settlement.Settlement) bool {
	switch s.Status {
	case settlement.Released:
		return true
	case settlement.Held:
		return s.Reason == settlement.Uneconomic || s.Reason == settlement.BelowSweepMin
	case settlement.Reverted:
		return s.Reason == settlement.PaymentOrphaned
	case settlement.Failed:
		return s.Reason == settlement.PaymentOrphaned || s.Reason == settlement.NotReleasable
	default:
		return false
	}
}

// canary pays out from every wallet: none may be frozen now.
func (w *harness) canary() {
	before := len(w.oracle.records.payouts)

	for i := range w.networks {
		for _, m := range w.merchants {
			w.createPayout(w.processes[0], m, Op{B: uint64(i), C: 1})
		}
	}

	w.pass(time.Second)

	asked := len(w.networks) * len(w.merchants)
	if made := len(w.oracle.records.payouts) - before; made != asked {
		w.oracle.violate(
			ruleFrozen,
			"only %d of %d payouts could be asked for",
			made,
			asked,
		)
	}

	for range 60 {
		w.pass(10 * time.Second)

		if w.paidOut() {
			break
		}
	}

	for _, m := range w.merchants {
		for _, id := range m.payouts[max(len(m.payouts)-len(w.networks), 0):] {
			if p := w.oracle.records.payouts[id]; p.Status != payout.Confirmed {
				w.oracle.violate(
					ruleFrozen,
					"payout %s is %s %s ten minutes after it was asked for",
					id,
					p.Status,
					p.FailureCode,
				)
			}
		}
	}
}

// paidOut reports whether every payout is over.
func (w *harness) paidOut() bool {
	for _, p := range w.oracle.records.payouts {
		if p.Status != payout.Confirmed && p.Status != payout.Failed {
			return false
		}
	}

	return true
}
