package simulation

import (
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// The rules of what merchants read.
const ruleLists = "a list has every record once"

// workPasses and longestWork are the steps of minutes of work: together longer than progressBound, and each no longer
// than stepGap.
const workPasses = 14

// workOn lets some minutes pass in which every process works without a gap.
func (w *harness) workOn() {
	for range workPasses {
		if len(w.oracle.violations) > 0 {
			return
		}

		w.pass(stepGap)
	}
}

// auditNow has one of the processes audit, and compares what it finds with the truth: money that arrived and is not
// on record, and transactions of thieves.
func (w *harness) auditNow(op Op) {
	report, err := w.process(op.A).alive().Audit(w.ctx)
	if err != nil {
		return // a fault of a node or of the store
	}

	o := w.oracle
	differences := report.Differences()

	// Other processes may have read further blocks while the audit asked its node.
	for _, audited := range report.Networks {
		slug := audited.Network

		for at, arrived := range o.unrecorded(slug, audited.At) {
			if !slices.ContainsFunc(differences, func(d audit.Difference) bool {
				return d.Network == slug && d.Address == at.Address
			}) {
				o.violate(
					ruleAudit, "%s of %s arrived at %s that no record shows, and the audit does not either",
					arrived, o.symbol(place{slug, at}), at.Address,
				)
			}
		}

		for address, hash := range o.robbed(slug, audited.At) {
			if !slices.ContainsFunc(differences, func(d audit.Difference) bool {
				return d.Kind == audit.ForeignTransaction && d.Address == address
			}) {
				o.violate(
					ruleThief,
					"a thief used wallet %s (%s), and the audit does not say so",
					address,
					hash,
				)
			}
		}
	}
}

// unrecorded returns what arrived, up to a block, at addresses that were shown, and is in no record: where
// nothing at all is on record. What a record is about is compared when its payments are.
func (o *oracle) unrecorded(slug string, block chain.Ref) map[chain.Holding]chain.Amount {
	missing := map[chain.Holding]chain.Amount{}
	l := o.ledgers[slug]

	if o.records.cursors[slug].Stopped != "" || !l.has(block) {
		return nil
	}

	recorded := map[chain.Address]bool{}
	for _, p := range o.records.payments {
		recorded[p.Address] = true
	}

	for holding, arrived := range l.tree[block.Hash].arrived {
		if o.records.addresses[holding.Address] && !arrived.foreign.IsZero() && !recorded[holding.Address] &&
			!o.isWallet(slug, holding.Address) && o.records.before[place{slug, holding}].IsZero() {
			dust, err := o.harness.store.DustOf(o.harness.ctx, slug, []chain.Address{holding.Address})
			must(err)

			if len(dust) == 0 {
				missing[holding] = arrived.foreign
			}
		}
	}

	return missing
}

// readLists has a merchant read his lists page by page, and compares them with what is on record.
func (w *harness) readLists(p *process, m *merchant, op Op) {
	if w.store == nil || p.failingReads > 0 {
		return
	}

	limit := []int{0, -1, 1, 7, 1000}[op.C%5]
	e, r := p.alive(), w.oracle.records

	switch op.B % 3 {
	case 0:
		w.compareList("invoices", limit, owned(r.invoices, func(i invoice.Invoice) bool {
			return i.Owner == m.owner
		}), func(after string) ([]string, bool, error) {
			page, more, err := e.Invoices.List(
				w.ctx,
				invoice.Filter{Owner: m.owner, After: after, Limit: limit},
			)

			return idsOf(page, func(i invoice.Invoice) string { return i.ID }), more, err
		})
	case 1:
		w.compareList("payouts", limit, owned(r.payouts, func(p payout.Payout) bool {
			return p.Owner == m.owner
		}), func(after string) ([]string, bool, error) {
			page, more, err := e.Payouts.List(
				w.ctx,
				payout.Filter{Owner: m.owner, After: after, Limit: limit},
			)

			return idsOf(page, func(p payout.Payout) string { return p.ID }), more, err
		})
	default:
		w.compareList("settlements", limit, owned(r.settlements, func(s settlement.Settlement) bool {
			return s.Owner == m.owner
		}), func(after string) ([]string, bool, error) {
			page, more, err := e.Settlements.List(
				w.ctx, settlement.Filter{Owner: m.owner, After: after, Limit: limit},
			)

			return idsOf(page, func(s settlement.Settlement) string { return s.ID }), more, err
		})
	}
}

// owned returns the ids of some records, in order.
func owned[T any](records map[string]T, mine func(T) bool) (ids []string) {
	for id, record := range records {
		if mine(record) {
			ids = append(ids, id)
		}
	}

	slices.Sort(ids)

	return ids
}

func idsOf[T any](page []T, id func(T) string) []string {
	ids := make([]string, len(page))
	for i, record := range page {
		ids[i] = id(record)
	}

	return ids
}

// compareList reads a list to its end and compares it with the ids that are on record.
func (w *harness) compareList(
	what string,
	limit int,
	want []string,
	read func(after string) (ids []string, more bool, err error),
) {
	var got []string

	for more := true; more; {
		after := ""
		if len(got) > 0 {
			after = got[len(got)-1]
		}

		ids, further, err := read(after)
		if err != nil {
			return // a fault of the store
		}

		if len(ids) == 0 && further {
			w.oracle.violate(
				ruleLists,
				"a page of %s with the limit %d is empty, and there are more",
				what,
				limit,
			)

			return
		}

		got, more = append(got, ids...), further
	}

	slices.Sort(got)

	if !slices.Equal(got, want) {
		w.oracle.violate(
			ruleLists,
			"%d %s are listed with the limit %d, and %d are on record",
			len(got),
			what,
			limit,
			len(want),
		)
	}
}

// failedBound is how long a payment may wait whose transaction failed in a block that is deep.
const failedBound = 20 * time.Minute

// checkFailedPayments checks, while all is well, that no payment waits whose transaction has failed.
func (o *oracle) checkFailedPayments() {
	now := o.harness.clock.now()

	for id, p := range o.records.payments {
		if p.Status != invoice.Detected || p.TxHash == "" {
			continue
		}

		l := o.ledgers[p.Network]

		block, included := l.failed[p.TxHash]
		if !included || !l.has(block) || l.tip().ref.Height < block.Height+failedDepth {
			continue
		}

		if since := now.Sub(block.Time); since > failedBound {
			o.violate(ruleRest, "payment %s is %s, and its transaction failed %s ago", id, p.Status, since)
		}
	}
}

// waitingBound is how long after the last fault a payment may wait that is in a deep block, and releaseBound how long
// it may while something at its address is released: that hides what arrived.
const (
	waitingBound = 4 * time.Minute
	releaseBound = 30 * time.Minute
)

// checkWaitingPayments checks, while all is well since some time, that no payment waits which a deep block shows: its
// balance can be compared, and a release at its address has an end. What a process put off whose clock ran ahead waits
// as long as it did.
func (o *oracle) checkWaitingPayments(since time.Duration) {
	if since < waitingBound+o.harness.ahead {
		return
	}

	for id, p := range o.records.payments {
		if p.Status != invoice.Detected || p.TxHash == "" || p.Block.IsZero() ||
			since < releaseBound+o.harness.ahead && o.releasesAt(p.Address) {
			continue
		}

		l := o.ledgers[p.Network]
		if l.has(p.Block) && l.tip().ref.Height >= p.Block.Height+failedDepth {
			o.violate(ruleWaiting, "payment %s of block %d is still %s", id, p.Block.Height, p.Status)
		}
	}
}

// releasesAt reports whether something at an address is released, or was just now.
func (o *oracle) releasesAt(address chain.Address) bool {
	for _, s := range o.records.settlements {
		queued := s.Status == settlement.Pending && s.SweepID != ""
		ended := o.harness.clock.now().Sub(s.ReleasedAt) < waitingBound

		if s.Deposit.Address == address && (queued || ended || s.Status == settlement.Releasing) {
			return true
		}
	}

	return false
}

// failedDepth is how many blocks on one make it final by every network's rule.
const failedDepth = 32
