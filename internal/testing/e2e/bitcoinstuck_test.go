//go:build unix

package e2e

// What once stopped wallets on bitcoind, or was paid by the wrong ones: payouts never get stuck, and each bears
// what it costs.

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Payouts on the change of payouts, and no block while fees rise: the lower one is left alone, the upper one pays
// for both.
func TestBitcoinParentIsNotReplaced(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.fund(5_000_000)

	lower := s.payOut(s.node.address(t), 1_000_000)
	upper := s.payOut(s.node.address(t), 1_000_000)

	s.estimates.rate.Store(9_000) // within the maximum of the upper one, for both
	s.pass(10 * time.Minute)

	a, b := s.outgoing(lower), s.outgoing(upper)
	if len(a.Attempts) != 1 || len(b.Attempts) < 2 {
		t.Fatalf("the lower payout has %d attempts, the upper %d", len(a.Attempts), len(b.Attempts))
	}

	var entry struct {
		Size int `json:"ancestorsize"`
		Fees struct{ Ancestor float64 }
	}
	s.node.call(t, &entry, "getmempoolentry", b.TxHash)

	if rate := entry.Fees.Ancestor * 1e8 / float64(entry.Size); rate < 8.9 {
		t.Errorf("both pay %.1f satoshi per vB together, the estimate is 9", rate)
	}

	s.mine(3)
	s.pass(time.Minute)

	for _, p := range []payout.Payout{lower, upper} {
		if got := s.payout(p.ID); got.Status != payout.Confirmed {
			t.Errorf("it is %s %s", got.Status, got.FailureCode)
		}
	}

	s.atRest(lower, upper)
}

// onLostBytes makes a payout that was replaced, and one that rests on the replacement; then a miner takes the
// first bytes of the lower one.
func onLostBytes(t *testing.T) (s *steppedBitcoin, lower, upper payout.Payout) {
	t.Helper()
	s = stepBitcoin(t, func(c *payments.Config) { c.ReplaceAfter = 30 * time.Second })
	s.fund(5_000_000)

	lower = s.payOut(s.node.address(t), 1_000_000)
	s.estimates.rate.Store(9_000)
	s.pass(time.Minute)

	if n := len(s.outgoing(lower).Attempts); n != 2 {
		t.Fatalf("the lower payout has %d attempts", n)
	}

	upper = s.payOut(s.node.address(t), 1_000_000)
	if in := s.outgoing(upper).Attempts[0].Signed.Inputs; in[0].TxHash != s.outgoing(lower).TxHash {
		t.Fatalf("the upper payout spends %v, not the replacement's change", in)
	}

	s.mineThese(s.raw(s.outgoing(lower), 0))

	return s, lower, upper
}

// What rests on a dead transaction is built again with an output of what killed it: both can never be paid.
func TestBitcoinPayoutIsBuiltAgain(t *testing.T) {
	t.Parallel()

	s, lower, upper := onLostBytes(t)
	s.node.mineEmpty(t, 3)
	s.pass(2 * time.Minute)

	a, b := s.outgoing(lower), s.outgoing(upper)
	if a.TxHash != a.Attempts[0].Signed.TxHash || len(b.Attempts) != 2 ||
		walletstate.LastAttempt(&b).Signed.Inputs[0].TxHash != a.TxHash {
		t.Fatalf("the upper payout is %s %s with %d attempts", b.State, b.Failure, len(b.Attempts))
	}

	s.refused("the dead bytes of the upper payout", s.raw(b, 0))
	s.mine(3)
	s.pass(time.Minute)

	for _, p := range []payout.Payout{lower, upper} {
		got := s.payout(p.ID)
		if got.Status != payout.Confirmed || s.node.holds(t, got.Destination) != got.Amount {
			t.Errorf("it is %s, its destination got %s", got.Status, s.node.holds(t, got.Destination))
		}
	}

	s.atRest(lower, upper)
}

// A fork that brings the dead bytes back leaves no coin for those that were built again.
func TestBitcoinRebuiltPayoutIsPaidOnce(t *testing.T) {
	t.Parallel()

	s, lower, upper := onLostBytes(t)
	first := s.node.height(t)
	s.node.mineEmpty(t, 3)
	s.pass(2 * time.Minute)

	a, b := s.outgoing(lower), s.outgoing(upper)
	if len(b.Attempts) != 2 {
		t.Fatalf("the upper payout is %s %s with %d attempts", b.State, b.Failure, len(b.Attempts))
	}

	var hash string
	s.node.call(t, &hash, "getblockhash", first)
	s.node.call(t, nil, "invalidateblock", hash)
	s.mineThese(s.raw(a, 1), s.raw(b, 0))
	s.refused("what was built again, besides the bytes that were dead", s.raw(b, 1))
	s.node.mineEmpty(t, 5)
	s.pass(time.Minute)

	if err := s.engine.Resume(t.Context(), s.slug); err != nil {
		t.Logf("nothing to resume: %v", err)
	}

	s.pass(2 * time.Minute)

	for _, p := range []payout.Payout{lower, upper} {
		got := s.payout(p.ID)
		if got.Status != payout.Confirmed || s.node.holds(t, got.Destination) != got.Amount {
			t.Errorf("it is %s, its destination got %s", got.Status, s.node.holds(t, got.Destination))
		}
	}

	s.atRest(lower, upper)
}

// A fork that brings back what dead bytes rest on makes them valid again, and those that were built again are dead:
// the first are sent again.
func TestBitcoinRevivedBytesAreSentAgain(t *testing.T) {
	t.Parallel()

	s, lower, upper := onLostBytes(t)
	first := s.node.height(t)
	s.node.mineEmpty(t, 3)
	s.pass(2 * time.Minute)

	a, b := s.outgoing(lower), s.outgoing(upper)
	if len(b.Attempts) != 2 {
		t.Fatalf("the upper payout is %s %s with %d attempts", b.State, b.Failure, len(b.Attempts))
	}

	var hash string
	s.node.call(t, &hash, "getblockhash", first)
	s.node.call(t, nil, "invalidateblock", hash)
	s.mineThese(s.raw(a, 1))
	s.node.mineEmpty(t, 5)
	s.pass(10 * time.Minute)
	s.mine(3)
	s.pass(2 * time.Minute)

	if got := s.outgoing(upper); got.TxHash != b.Attempts[0].Signed.TxHash {
		t.Errorf("the upper payout is %s by %s", got.State, got.TxHash)
	}

	s.atRest(lower, upper)
}

// A payout that costs more than it may is displaced by the wallet itself: it says so, and bears the cost.
func TestBitcoinOwnDisplacementIsShownAndCharged(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.fund(5_000_000)
	before := s.node.holds(t, s.master.Address)
	p := s.payOut(s.node.address(t), 1_000_000)

	s.estimates.rate.Store(100_000)
	s.pass(7 * time.Hour)
	s.mine(4)
	s.pass(15 * time.Minute)

	got := s.payout(p.ID)
	if got.Status != payout.Failed || got.FailureCode != wallet.FailConflict || !got.Conflict.Own {
		t.Fatalf("it is %s %s against %+v", got.Status, got.FailureCode, got.Conflict)
	}

	if strings.Contains(got.FailureMessage, "who else") ||
		!strings.Contains(got.FailureMessage, "this service") {
		t.Errorf("it says: %s", got.FailureMessage)
	}

	lost := before.Sub(s.node.holds(t, s.master.Address))
	if got.NetworkFee == nil || *got.NetworkFee != lost || lost.IsZero() {
		t.Errorf("the wallet lost %s, the payout says %v", lost, got.NetworkFee)
	}

	if resource := got.Resource(); resource.NetworkFee != "" || resource.Conflict == nil ||
		resource.Conflict.NetworkFee != lost.String() {
		t.Errorf("the API shows %+v", resource)
	}

	s.atRest(p)
}

// With a constant estimate nothing is replaced, however long no block comes.
func TestBitcoinConstantEstimateReplacesNothing(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.fund(5_000_000, 5_000_000)

	all := []payout.Payout{s.payOut(s.node.address(t), 1_000_000), s.payOut(s.node.address(t), 4_500_000)}
	s.pass(time.Hour)

	replaced := 0
	for _, p := range all {
		replaced += len(s.outgoing(p).Attempts) - 1
	}

	t.Logf("%d replacements in an hour of constant estimate", replaced)

	if replaced != 0 {
		t.Errorf("%d replacements", replaced)
	}

	s.mine(3)
	s.pass(10 * time.Minute)
	s.atRest(all...)
}

// A fork takes away the payment that funded the wallet, and its payer spends the money otherwise: the payout that was
// built on it ends, and nothing stays reserved.
func TestBitcoinFundingTakenByAFork(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	funding := s.node.pay(t, s.master.Address, chain.Units(2_000_000))
	s.mine(1)

	p := s.payOut(s.node.address(t), 500_000)

	var hash string
	s.node.call(t, &hash, "getblockhash", s.node.height(t))
	s.node.call(t, nil, "invalidateblock", hash)
	s.node.spendAgain(t, funding, chain.Units(100_000))
	s.mine(4)
	s.pass(time.Minute)

	if got := s.payout(p.ID); got.FailureCode != wallet.FailConflict || got.Conflict.Own {
		t.Errorf("it is %s %s against %+v", got.Status, got.FailureCode, got.Conflict)
	}

	s.atRest(p)
}

// A fork takes away one of two deposits that were released together, and its payer spends the money otherwise. The
// other one is released again, what was paid out of both ends, and nothing stays reserved.
func TestBitcoinReleasedDepositTakenByAFork(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.fund(100_000)

	kept, taken := s.deposit(), s.deposit()
	s.node.pay(t, kept, chain.Units(4_000_000))
	s.mine(1)

	payment := s.node.pay(t, taken, chain.Units(9_000_000))
	s.mine(1)
	block := s.node.height(t)

	s.mine(1)
	s.pass(5 * time.Minute)
	s.mine(2)
	s.pass(time.Minute)

	p := s.payOut(s.node.address(t), 10_000_000)
	s.mine(1)

	var hash string
	s.node.call(t, &hash, "getblockhash", block)
	s.node.call(t, nil, "invalidateblock", hash)
	s.node.spendAgain(t, payment, chain.Units(100_000))
	s.mine(6)
	s.pass(10 * time.Minute)
	s.mine(3)
	s.pass(10 * time.Minute)

	want := map[chain.Amount]settlement.Status{
		chain.Units(4_000_000): settlement.Released,
		chain.Units(9_000_000): settlement.Reverted,
	}
	for _, set := range s.settlements() {
		if set.Status != want[set.Gross] {
			t.Errorf("the settlement of %s is %s %s", set.Gross, set.Status, set.Reason)
		}
	}

	if got := s.payout(p.ID); got.FailureCode != wallet.FailConflict || got.Conflict.Own {
		t.Errorf("the payout is %s %s against %+v", got.Status, got.FailureCode, got.Conflict)
	}

	s.atRest(p)
}
