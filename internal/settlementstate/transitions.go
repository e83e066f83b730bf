package settlementstate

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Assign puts a pending or held settlement into a release whose first transaction is queued. Its
// status changes with Start.
func Assign(s *settlement.Settlement, releaseID string, master chain.Address) error {
	if s.Status != settlement.Pending && s.Status != settlement.Held {
		return refuse(s, "be planned")
	}

	if s.SweepID != "" && s.SweepID != releaseID {
		return refuse(s, "be planned while release "+s.SweepID+" has it")
	}

	if s.SweepID == "" && s.Status == settlement.Pending { // its wait is over
		s.ReasonMessage, s.WaitingSince = "", time.Time{}
	}

	s.SweepID, s.MasterWalletAddress, s.DueAt = releaseID, master, time.Time{}

	return nil
}

// Unassign takes a pending or held settlement out of a release that ended before anything was signed;
// planning looks at it again at due.
func Unassign(s *settlement.Settlement, due time.Time) error {
	if s.Status != settlement.Pending && s.Status != settlement.Held {
		return refuse(s, "leave its release")
	}

	s.SweepID, s.DueAt = "", due

	return nil
}

// Hold holds a pending or held settlement for a reason. required is what the master wallet must hold, in
// native base units; nil if the wallet is not short. fresh reports that the reason is new, and therefore
// published.
func Hold(
	s *settlement.Settlement,
	reason settlement.Reason,
	required *chain.Amount,
	now, due time.Time,
) (fresh bool, err error) {
	// spec D4.4
	if (s.Status != settlement.Pending && s.Status != settlement.Held) || s.SweepID != "" {
		return false, refuse(s, "be held")
	}

	if !holds(reason) {
		return false, refuse(s, "be held as "+string(reason))
	}

	fresh = s.Status != settlement.Held || s.Reason != reason
	if s.Status != settlement.Held {
		s.HeldSince = now
	}

	s.ReasonMessage, s.WaitingSince = "", time.Time{}
	if now.Sub(s.HeldSince) >= walletstate.WaitShownAfter {
		s.WaitingSince = s.HeldSince
	}

	s.Status, s.Reason, s.RequiredNative, s.DueAt = settlement.Held, reason, required, due

	return fresh, nil
}

// Wait records why a pending, held or releasing settlement was not moved on: a code, a colon and a sentence.
// since is when the wait began, zero unless it has lasted walletstate.WaitShownAfter. It reports whether the
// record is new.
func Wait(s *settlement.Settlement, why string, since time.Time) (fresh bool) {
	waits := s.Status == settlement.Pending || s.Status == settlement.Held || s.Status == settlement.Releasing
	if !waits || s.ReasonMessage == why && s.WaitingSince.Equal(since) {
		return false
	}

	s.ReasonMessage, s.WaitingSince = why, since

	return true
}

// Start moves a pending or held settlement to releasing, once the first transaction of its sweep is signed
// and stored. carried is the platform fee of earlier settlements that this one also pays.
func Start(s *settlement.Settlement, carried chain.Amount) error { // spec D4.3
	if s.Status == settlement.Releasing {
		return nil
	}

	if (s.Status != settlement.Pending && s.Status != settlement.Held) || s.SweepID == "" {
		return refuse(s, "be released")
	}

	s.Status, s.Reason, s.HeldSince, s.DueAt = settlement.Releasing, "", time.Time{}, time.Time{}
	s.ReasonMessage, s.WaitingSince = "", time.Time{}

	CarryIn(s, carried)

	return nil
}

// Release moves a releasing settlement to released. net is the measured amount that arrived, in base units of
// the asset.
func Release(s *settlement.Settlement, net chain.Amount, now time.Time) error { // spec D4.5
	if s.Status == settlement.Released {
		return nil
	}

	if s.Status != settlement.Releasing {
		return refuse(s, "have been released")
	}

	s.Status, s.NetReleased, s.ReleasedAt = settlement.Released, &net, now
	s.ReasonMessage, s.WaitingSince = "", time.Time{}

	return nil
}

// Fail ends the attempt to release. From releasing any failing reason is legal. A pending or held settlement
// fails when its payment is gone or when planning finds that it cannot be released. due is when it returns by
// itself, zero if it does not.
func Fail(s *settlement.Settlement, reason settlement.Reason, now, due time.Time) error { // spec D4.6
	if s.Status == settlement.Failed && s.Reason == reason {
		return nil
	}

	legal := s.Status == settlement.Releasing
	if s.Status == settlement.Pending || s.Status == settlement.Held {
		legal = reason != settlement.Replanning
	}

	if holds(reason) || reason == "" || !legal {
		return refuse(s, "fail as "+string(reason))
	}

	s.Status, s.Reason, s.FailedAt, s.HeldSince, s.DueAt = settlement.Failed, reason, now, time.Time{}, due
	s.ReasonMessage, s.WaitingSince = "", time.Time{}

	return nil
}

// Orphan records that the payment of a failed settlement left the chain. Reopen reverses that.
func Orphan(s *settlement.Settlement) error {
	if s.Status != settlement.Failed {
		return refuse(s, "be orphaned")
	}

	switch s.Reason {
	case settlement.PaymentOrphaned:
	case settlement.Replanning: // it returns to the queue when its payment is back
		s.Reason, s.DueAt = settlement.PaymentOrphaned, time.Time{}
	default:
		s.Reason, s.FailedFor = settlement.PaymentOrphaned, s.Reason
	}

	return nil
}

// Reopen records that the payment is back, for a settlement that had failed before the payment left the
// chain.
func Reopen(s *settlement.Settlement) error {
	if s.Status != settlement.Failed || s.FailedFor == "" {
		return refuse(s, "fail for what it had failed for")
	}

	s.Reason, s.FailedFor = s.FailedFor, ""

	return nil
}

// Revert moves a settlement to reverted, after a reorganisation removed the sweep of a released one (reason
// "") or its payment (payment_orphaned). For a reverted one it only records that the payment is gone as well.
func Revert(s *settlement.Settlement, reason settlement.Reason) error { // spec D4.7
	if reason != "" && reason != settlement.PaymentOrphaned {
		return refuse(s, "be reverted as "+string(reason))
	}

	switch s.Status {
	case settlement.Released:
		s.Status, s.Reason, s.NetReleased, s.ReleasedAt = settlement.Reverted, reason, nil, time.Time{}
	case settlement.Reverted:
		if reason != "" {
			s.Reason = reason
		}
	default:
		return refuse(s, "be reverted")
	}

	return nil
}

func refuse(s *settlement.Settlement, what string) error {
	return fault.New(
		fault.State, "settlement_state", "settlement %s is %s and cannot %s",
		s.ID, s.Status, what,
	)
}

func holds(r settlement.Reason) bool {
	return r == settlement.InsufficientMasterBalance || r == settlement.Uneconomic ||
		r == settlement.BelowSweepMin
}
