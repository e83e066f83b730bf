package settlement

import (
	"time"

	"github.com/shopspring/decimal"

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

// Start says that the first transaction of the settlement's release is signed and stored: pending
// or held become releasing. carried is the platform fee of earlier settlements that this one takes
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

// Revert says that a reorganisation removed the sweep of a released settlement (reason "") or its payment
// (payment_orphaned). A reverted one only takes note that its payment is gone as well.
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

// Pay moves amount (native base units) from FeeCarried to FeePaid; their sum stays.
func (s *Settlement) Pay(amount chain.Amount) { // spec D4.14
	s.FeeCarried, s.FeePaid = s.FeeCarried.Sub(amount), s.FeePaid.Add(amount)
}

// Unpay moves amount (native base units) from FeePaid back to FeeCarried: its transaction is proven
// dead.
func (s *Settlement) Unpay(amount chain.Amount) {
	s.FeePaid, s.FeeCarried = s.FeePaid.Sub(amount), s.FeeCarried.Add(amount)
}

// CarryIn adds platform fee of earlier settlements (native base units) to this one's.
func (s *Settlement) CarryIn(amount chain.Amount) {
	s.CarriedIn, s.FeeCarried = s.CarriedIn.Add(amount), s.FeeCarried.Add(amount)
}

// CarryOut removes what was carried in and is not paid, and returns it in native base units.
func (s *Settlement) CarryOut() chain.Amount {
	back := chain.Min(s.CarriedIn, s.FeeCarried)
	s.CarriedIn, s.FeeCarried = s.CarriedIn.Sub(back), s.FeeCarried.Sub(back)

	return back
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

// FeeUSD returns the platform fee of a deposit in USD: value × bps / 10000, rounded down to 8 places.
func FeeUSD(value decimal.Decimal, bps int) decimal.Decimal { // spec D4.9
	return value.Mul(decimal.NewFromInt(int64(bps))).Shift(-4).Truncate(8)
}

// FeeNative returns a fee in native base units at the coin's price in USD, rounded down. Without a price
// it returns fault.Unavailable.
func FeeNative(feeUSD, price decimal.Decimal, decimals uint8) (chain.Amount, error) { // spec 2.8.14, D4.10
	if feeUSD.IsZero() {
		return chain.Amount{}, nil
	}

	if !price.IsPositive() {
		return chain.Amount{}, fault.New(
			fault.Unavailable, "price_unavailable",
			"a platform fee of %s USD cannot be counted in native coin without a price",
			feeUSD,
		)
	}
	// exact; the remainder is what rounding down leaves out
	units, _ := feeUSD.Shift(int32(decimals)).QuoRem(price, 0)

	return chain.AmountFromBig(units.BigInt())
}

// Split divides an amount by weights, each share rounded down and the remainder added to the first:
// the shares sum to the amount. The weights must not all be zero.
func Split(amount chain.Amount, weights []chain.Amount) []chain.Amount { // spec D4.15
	var sum, given chain.Amount
	for _, w := range weights {
		sum = sum.Add(w)
	}

	shares := make([]chain.Amount, len(weights))
	for i, w := range weights {
		shares[i] = amount.Share(w, sum)
		given = given.Add(shares[i])
	}

	shares[0] = shares[0].Add(amount.Sub(given))

	return shares
}
