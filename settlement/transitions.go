package settlement

import (
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// The transitions of a Settlement that a merchant's operations share; internal/settlementstate has the
// others.

// Return puts a settlement back into the queue: a reverted one, or one that failed because its payment was
// orphaned or for replanning. Any other failed settlement returns only for an operator. A settlement whose
// payment was orphaned after it had failed for another reason returns only after Reopen. Without keep it
// leaves its release.
func (s *Settlement) Return(operator, keep bool, due time.Time) error { // spec 3.4.3
	switch {
	case s.Status == Pending:
		return nil
	case s.Status == Reverted:
	case s.Status == Failed && s.FailedFor == "" &&
		(operator || s.Reason == PaymentOrphaned || s.Reason == Replanning):
	default:
		return s.refuse("go back into the queue")
	}

	s.Status, s.Reason, s.FailedAt, s.RequiredNative, s.DueAt = Pending, "", time.Time{}, nil, due
	s.ReasonMessage, s.WaitingSince = "", time.Time{}

	if !keep {
		s.SweepID = ""
	}

	return nil
}

func (s *Settlement) refuse(what string) error {
	return fault.New(
		fault.State, "settlement_state", "settlement %s is %s and cannot %s",
		s.ID, s.Status, what,
	)
}
