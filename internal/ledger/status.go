package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/settlement"
)

// setStatus sets status, reason and times by the tables of specification 3.4 and decisions part 4.
func (h *holder) setStatus() {
	plans, verdicts := h.plans, h.verdicts()

	switch {
	case h.Stored != nil:
		h.setStored()
	case !h.Canonical:
		h.setLost(plans, verdicts)
	case h.shown.NetReleased != nil:
		h.shown.Status, h.shown.ReleasedAt = settlement.Released, releasedAt(plans, h.shown.PlanID)
	case isUnderWay(plans, verdicts):
		h.shown.Status = settlement.Releasing
		if plans[len(plans)-1].wasSwept() {
			h.shown.Status = settlement.Reverted
		}
	default:
		h.setVerdict(verdicts)
	}
}

// setStored shows the one result of a settlement without transactions.
func (h *holder) setStored() {
	s := h.Stored
	h.shown.Status, h.shown.ReleasedAt, h.shown.NetReleased = settlement.Released, s.At, &s.NetReleased
	h.shown.FeePaid, h.shown.FeeCarried = s.FeePaid, h.Fee.SubFloor(s.FeePaid)
	h.shown.FeeTx, h.shown.SweepTx = s.FeeTx, s.SweepTx
}

// setLost shows that the payment is gone. What was released by then is reverted. What had failed for another reason
// stays so, and what else there is has failed.
func (h *holder) setLost(plans []Plan, verdicts []Verdict) {
	for _, p := range plans {
		if at := p.sweptAt(); !at.IsZero() && !h.LostAt.Before(at) {
			h.shown.Status, h.shown.Reason = settlement.Reverted, settlement.PaymentOrphaned
			return
		}
	}

	h.setVerdict(verdicts)

	if h.shown.Status == settlement.Failed && h.shown.Reason != settlement.Replanning {
		return
	}

	h.shown.HeldSince, h.shown.FailedAt = time.Time{}, h.LostAt
	h.shown.Status, h.shown.Reason = settlement.Failed, settlement.PaymentOrphaned
}

// setVerdict shows what was said last; of a settlement of which nothing was said that it is pending.
func (h *holder) setVerdict(verdicts []Verdict) {
	h.shown.Status = settlement.Pending

	for _, v := range verdicts {
		if v.Status != settlement.Held {
			h.shown.HeldSince = time.Time{}
		} else if h.shown.Status != settlement.Held {
			h.shown.HeldSince = v.At
		}

		h.shown.Status, h.shown.Reason, h.shown.FailedAt = v.Status, v.Reason, time.Time{}

		if v.Status == settlement.Failed {
			h.shown.FailedAt = v.At
		} else {
			h.shown.RequiredNative = v.Required
		}
	}
}

// verdicts returns the verdicts on a settlement, oldest first.
func (h *holder) verdicts() []Verdict {
	return slices.SortedFunc(slices.Values(h.Verdicts), func(a, b Verdict) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason))
	})
}

// isUnderWay reports whether something of the latest plan is signed, and it goes on, and nothing was said since.
func isUnderWay(plans []Plan, verdicts []Verdict) bool {
	if len(plans) == 0 {
		return false
	}

	last := plans[len(plans)-1]
	if len(verdicts) > 0 && !verdicts[len(verdicts)-1].At.Before(last.MadeAt) {
		return false
	}

	return last.isLive() && last.isStarted()
}

// releasedAt returns when the last transaction of a plan was known to be final; of one without transactions when it
// was made.
func releasedAt(plans []Plan, planID string) (at time.Time) {
	for _, p := range plans {
		if p.ID != planID {
			continue
		}

		at = p.MadeAt
		for _, r := range p.sweeps() {
			if r.Canonical && r.LearnedAt.After(at) {
				at = r.LearnedAt
			}
		}
	}

	return at
}

// sweptAt returns when a sweep of the plan was first known to be final; zero if none ever was.
func (p Plan) sweptAt() (at time.Time) {
	for _, r := range p.sweeps() {
		if at.IsZero() || r.LearnedAt.Before(at) {
			at = r.LearnedAt
		}
	}

	return at
}

// wasSwept reports whether a sweep of the plan was final in a block that left the chain.
func (p Plan) wasSwept() bool {
	return slices.ContainsFunc(p.sweeps(), func(r Result) bool { return !r.Canonical })
}
