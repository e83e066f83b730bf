package settlement

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// The moves of a Settlement (decisions part 4). Each is pure, legal from the statuses its comment
// names, and does nothing when what it says is already so; anything else is fault.State with code
// settlement_state and leaves the record as it was.

// Assign puts a pending or held settlement into a release whose first transaction is queued. Its
// status changes with Start.
func (s *Settlement) Assign(releaseID string, master chain.Address) error {
	if s.Status != Pending && s.Status != Held {
		return s.refuse("be planned")
	}

	if s.SweepID != "" && s.SweepID != releaseID {
		return s.refuse("be planned while release " + s.SweepID + " has it")
	}

	s.SweepID, s.MasterWalletAddress, s.DueAt = releaseID, master, time.Time{}

	return nil
}

// Unassign takes a pending or held settlement out of a release that came to nothing before anything
// was signed; planning looks at it again at due.
func (s *Settlement) Unassign(due time.Time) error {
	if s.Status != Pending && s.Status != Held {
		return s.refuse("leave its release")
	}

	s.SweepID, s.DueAt = "", due

	return nil
}

// Hold holds a pending or held settlement for a reason. required is what the master wallet must hold, in
// native base units; nil when it is not short. fresh reports whether the reason is new, and so
// published.
func (s *Settlement) Hold(reason Reason, required *chain.Amount, now, due time.Time) (fresh bool, err error) {
	// spec D4.4
	if (s.Status != Pending && s.Status != Held) || s.SweepID != "" {
		return false, s.refuse("be held")
	}

	if !reason.holds() {
		return false, s.refuse("be held as " + string(reason))
	}

	fresh = s.Status != Held || s.Reason != reason
	if s.Status != Held {
		s.HeldSince = now
	}

	s.Status, s.Reason, s.RequiredNative, s.DueAt = Held, reason, required, due

	return fresh, nil
}

// Start moves a pending or held settlement to releasing, once the first transaction of its sweep is signed and
// stored. carried is the platform fee of earlier settlements that this one takes
// along.
func (s *Settlement) Start(carried chain.Amount) error { // spec D4.3
	if s.Status == Releasing {
		return nil
	}

	if (s.Status != Pending && s.Status != Held) || s.SweepID == "" {
		return s.refuse("be released")
	}

	s.Status, s.Reason, s.HeldSince, s.DueAt = Releasing, "", time.Time{}, time.Time{}
	s.CarryIn(carried)

	return nil
}

// Release moves a releasing settlement to released. net is what measurably arrived, in base units of the
// asset.
func (s *Settlement) Release(net chain.Amount, now time.Time) error { // spec D4.5
	if s.Status == Released {
		return nil
	}

	if s.Status != Releasing {
		return s.refuse("have been released")
	}

	s.Status, s.NetReleased, s.ReleasedAt = Released, &net, now

	return nil
}

// Fail ends the attempt to release. From releasing any failing reason is legal; a pending or held
// settlement fails when its payment is gone or when planning finds that it cannot be released. due
// is when it comes back by itself, zero when it does not.
func (s *Settlement) Fail(reason Reason, now, due time.Time) error { // spec D4.6
	if s.Status == Failed && s.Reason == reason {
		return nil
	}

	legal := s.Status == Releasing
	if s.Status == Pending || s.Status == Held {
		legal = reason != Replanning
	}

	if reason.holds() || reason == "" || !legal {
		return s.refuse("fail as " + string(reason))
	}

	s.Status, s.Reason, s.FailedAt, s.HeldSince, s.DueAt = Failed, reason, now, time.Time{}, due

	return nil
}

// Revert moves a settlement to reverted, once a reorganisation removed the sweep of a released one (reason "") or
// its payment (payment_orphaned). Of a reverted one it only records that the payment is gone as well.
func (s *Settlement) Revert(reason Reason) error { // spec D4.7
	if reason != "" && reason != PaymentOrphaned {
		return s.refuse("be reverted as " + string(reason))
	}

	switch s.Status {
	case Released:
		s.Status, s.Reason, s.NetReleased, s.ReleasedAt = Reverted, reason, nil, time.Time{}
	case Reverted:
		if reason != "" {
			s.Reason = reason
		}
	default:
		return s.refuse("be reverted")
	}

	return nil
}

// Return puts a settlement back into the queue: a reverted one, one that failed because its payment
// was orphaned or for replanning by itself, any other failed one only for an operator. Without keep
// it leaves its release.
func (s *Settlement) Return(operator, keep bool, due time.Time) error { // spec 3.4.3
	switch {
	case s.Status == Pending:
		return nil
	case s.Status == Reverted:
	case s.Status == Failed && (operator || s.Reason == PaymentOrphaned || s.Reason == Replanning):
	default:
		return s.refuse("go back into the queue")
	}

	s.Status, s.Reason, s.FailedAt, s.RequiredNative, s.DueAt = Pending, "", time.Time{}, nil, due
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

func (r Reason) holds() bool {
	return r == InsufficientMasterBalance || r == Uneconomic || r == BelowSweepMin
}
