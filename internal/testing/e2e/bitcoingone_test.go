//go:build unix

package e2e

// A fork takes a payment away, and no other brings it back. A block proves it where the payer spends the payment's own
// money otherwise, but not where it is that of the payment's parent, which the service knows nothing of.

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// takenPayment is a payment in a block whose parent is in an earlier one.
type takenPayment struct {
	parent, hash string
	height       uint64 // of the parent
}

// payFromParent pays an address with an output of a transaction of the payer, each in a block of its own.
func (s *steppedBitcoin) payFromParent(to chain.Address, satoshi uint64, with ...func()) takenPayment {
	s.t.Helper()

	amount := json.Number(chain.Units(satoshi).Decimal(8).String())
	own := s.node.address(s.t)
	p := takenPayment{parent: s.node.pay(s.t, chain.Address(own), chain.Units(satoshi+1_000))}
	s.mine(1)
	p.height = s.node.height(s.t)

	var parent struct {
		Vout []struct {
			N            int
			ScriptPubKey struct{ Address string }
		}
	}
	s.node.call(s.t, &parent, "getrawtransaction", p.parent, 1)

	for _, out := range parent.Vout { // no other payment spends its change
		s.node.call(s.t, nil, "lockunspent", false, []map[string]any{{"txid": p.parent, "vout": out.N}})
	}

	for _, out := range parent.Vout {
		if out.ScriptPubKey.Address != own {
			continue
		}

		var raw string
		s.node.call(
			s.t, &raw, "createrawtransaction", []map[string]any{{"txid": p.parent, "vout": out.N}},
			[]map[chain.Address]json.Number{{to: amount}},
		)

		var signed struct{ Hex string }
		s.node.call(s.t, &signed, "signrawtransactionwithwallet", raw)
		s.node.call(s.t, &p.hash, "sendrawtransaction", signed.Hex, 0)
	}

	for _, f := range with {
		f()
	}

	s.mine(1)

	return p
}

// take has a fork take a payment away, with its parent unless that stays, and its payer spend the money otherwise.
func (s *steppedBitcoin) take(p takenPayment, parentStays bool) {
	s.t.Helper()

	gone, from, tip := p.parent, p.height, s.node.height(s.t)
	if parentStays {
		gone, from = p.hash, p.height+1
	}

	others := s.node.payments(s.t, from)
	s.node.invalidate(s.t, from)
	s.node.spendAgain(s.t, gone, chain.Units(1_000_000))
	s.mine(int(tip-from) + 2)

	for _, raw := range others {
		_ = s.node.Call(s.t.Context(), nil, "sendrawtransaction", raw) // those of the payment are refused
	}

	s.mine(3)
}

// invalidate takes the blocks from a height on out of the chain.
func (n bitcoindHarness) invalidate(t *testing.T, from uint64) {
	t.Helper()

	var hash string
	n.call(t, &hash, "getblockhash", from)
	n.call(t, nil, "invalidateblock", hash)
}

// payments returns what the blocks from a height on hold but for their rewards, in hex: bitcoind does not return to its
// pool what is not final at the height that a fork goes back to.
func (n bitcoindHarness) payments(t *testing.T, from uint64) (raw []string) {
	t.Helper()

	for height := from; height <= n.height(t); height++ {
		var (
			hash  string
			block struct {
				Tx []struct{ Hex string }
			}
		)

		n.call(t, &hash, "getblockhash", height)
		n.call(t, &block, "getblock", hash, 2)

		for _, tx := range block.Tx[1:] {
			raw = append(raw, tx.Hex)
		}
	}

	return raw
}

// sweptTogether makes two deposits that one sweep waits to move. One of them is the payment given back.
func sweptTogether(t *testing.T) (s *steppedBitcoin, payment takenPayment, sweep wallet.Transaction) {
	t.Helper()
	s = stepBitcoin(t)
	s.fund(100_000)

	kept, taken := s.deposit(), s.deposit()
	payment = s.payFromParent(taken, 9_000_000, func() { s.node.pay(t, kept, chain.Units(4_000_000)) })
	s.mine(1)
	s.pass(5 * time.Minute)

	sweep = s.sweepOf(s.settlements()[0])
	if n := len(sweep.Attempts[0].Signed.Inputs); n != 2 {
		t.Fatalf("the sweep spends %d outputs", n)
	}

	return s, payment, sweep
}

// sweepOf returns the transaction that releases a settlement.
func (s *steppedBitcoin) sweepOf(set settlement.Settlement) wallet.Transaction {
	s.t.Helper()

	st := internal.Of(s.engine).Store()
	r, err := st.Sweep(s.t.Context(), set.SweepID)
	must(s.t, err)
	tx, err := st.Transaction(s.t.Context(), r.Steps[0].TransactionID)
	must(s.t, err)

	return tx
}

// are fails unless settlements have these statuses, the oldest first, and what was released is in the master wallet.
func (s *steppedBitcoin) are(funded uint64, want ...settlement.Status) {
	s.t.Helper()

	holds := chain.Units(funded)

	for i, set := range s.settlements() {
		if set.Status != want[i] {
			s.t.Errorf("the settlement of %s is %s %s", set.Gross, set.Status, set.Reason)
		}

		if set.NetReleased != nil {
			holds = holds.Add(*set.NetReleased)
		}
	}

	if got := s.node.holds(s.t, s.master.Address); got != holds {
		s.t.Errorf("the master wallet holds %s, and has to hold %s", got, holds)
	}
}

// A sweep of an output that is gone and one that is there is given up, and the other one is swept.
func TestBitcoinSweepOfAGoneOutput(t *testing.T) {
	t.Parallel()

	for _, proven := range []bool{false, true} {
		s, payment, sweep := sweptTogether(t)
		s.take(payment, proven)

		if !proven {
			s.pass(5 * time.Hour)
			s.are(100_000, settlement.Releasing, settlement.Failed)
			s.pass(2 * time.Hour)
		}

		s.pass(5 * time.Minute)
		s.mine(3)
		s.pass(time.Minute)
		s.are(100_000, settlement.Released, settlement.Failed)
		s.refused("the sweep that was given up", s.raw(sweep, 0))
		s.atRest()
	}
}

// The output comes back, and the sweep that was given up is included: a person says what it released, though one
// settlement has failed with the next sweep and one for want of its output. Another block that holds it later is no
// matter.
func TestBitcoinGoneOutputComesBack(t *testing.T) {
	t.Parallel()

	s, payment, sweep := sweptTogether(t)
	payments := s.node.payments(t, payment.height)
	s.take(payment, false)
	s.pass(7 * time.Hour)
	s.node.invalidate(t, payment.height)
	s.node.mineEmpty(t, 10)
	s.mineThese(payments...)
	s.mineThese(s.raw(sweep, 0))
	block := s.node.height(t)
	s.node.mineEmpty(t, 5)
	s.pass(2 * time.Hour)

	ids := []string{s.settlements()[0].ID, s.settlements()[1].ID}
	must(t, s.engine.Acknowledge(t.Context(), s.slug, sweep.TxHash, ids...))
	s.pass(time.Minute)
	s.are(100_000, settlement.Released, settlement.Released)
	s.atRest()

	s.node.invalidate(t, block)
	s.node.mineEmpty(t, 8)
	s.pass(time.Minute)
	s.mineThese(s.raw(sweep, 0))
	s.node.mineEmpty(t, 5)
	s.pass(2 * time.Hour)
	s.are(100_000, settlement.Released, settlement.Released)
	s.atRest()
}

// A payout of an output that is gone and one that is there is replaced by one that spends what is there, and what rests
// on it is built again.
func TestBitcoinPayoutOfAGoneOutput(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.fund(2_000_000)
	payment := s.payFromParent(s.master.Address, 2_000_000)
	s.mine(1)

	lower, upper := s.payOut(s.node.address(t), 3_000_000), s.payOut(s.node.address(t), 500_000)
	if in := s.outgoing(upper).Attempts[0].Signed.Inputs; in[0].TxHash != s.outgoing(lower).TxHash {
		t.Fatalf("the upper payout spends %v, not the change of the lower one", in)
	}

	s.take(payment, false)
	s.node.pay(t, s.master.Address, chain.Units(3_000_000))
	s.mine(3)
	s.pass(5 * time.Minute)
	s.mine(3)
	s.pass(5 * time.Minute)
	s.mine(3)
	s.pass(time.Minute)

	for _, p := range []payout.Payout{lower, upper} {
		got, tx := s.payout(p.ID), s.outgoing(p)
		if got.Status != payout.Confirmed || s.node.holds(t, got.Destination) != got.Amount {
			t.Errorf("it is %s, its destination got %s", got.Status, s.node.holds(t, got.Destination))
		}

		if len(tx.Attempts) != 2 { // replaced only once what they rest on is there
			t.Errorf("it has %d attempts", len(tx.Attempts))
		}

		s.refused("its first bytes", s.raw(tx, 0))
	}

	s.atRest(lower, upper)
}

// The lower payout can be paid no more, and its cancel does not wait for what rests on it.
func TestBitcoinPayoutOfAGoneOutputIsCanceled(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.fund(2_000_000)
	payment := s.payFromParent(s.master.Address, 2_000_000)
	s.mine(1)

	lower, upper := s.payOut(s.node.address(t), 3_000_000), s.payOut(s.node.address(t), 500_000)
	s.take(payment, false)
	s.pass(7 * time.Hour)
	s.mine(4)
	s.pass(10 * time.Minute)

	for _, p := range []payout.Payout{lower, upper} {
		if got := s.payout(p.ID); got.Status != payout.Failed {
			t.Errorf("it is %s", got.Status)
		}
	}

	s.atRest(lower, upper)
}
