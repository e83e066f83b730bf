//go:build unix

package e2e

// Who pays for what on bitcoind, and what waits for what: dust, block rewards, nodes that are behind, and others who
// have a wallet's key.

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Dust at a deposit address is not spent while it costs more than it holds: an honest deposit bears its own input.
func TestBitcoinDustIsNotCharged(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.estimates.rate.Store(300_000)
	to := s.deposit()

	for i := range 60 {
		s.node.pay(t, to, chain.Units(330))

		if i%20 == 19 {
			s.node.mine(t, 1)
		}
	}

	s.node.pay(t, to, chain.Units(5_000_000))
	s.mine(4)
	s.pass(5 * time.Minute)
	s.mine(4)
	s.pass(5 * time.Minute)

	released := 0

	for _, set := range s.settlements() {
		if set.Gross != chain.Units(5_000_000) {
			continue
		}

		released++

		// one input, the sweep and the platform fee at 300 satoshi per vB
		const most = (11 + 68 + 2*31) * 300
		if set.Status != settlement.Released || chain.Units(most).Less(set.NetworkFees) {
			t.Errorf("it is %s %s and bears %s of at most %d", set.Status, set.Reason, set.NetworkFees, most)
		}
	}

	if released != 1 {
		t.Errorf("%d settlements of the honest deposit among %+v", released, s.settlements())
	}

	s.audited(true)
}

// All of a wallet of many small coins can be paid out at once: the maximum fee allows for the coins that it takes.
func TestBitcoinManySmallCoinsArePaidOut(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.fund(slices.Repeat([]uint64{20_000}, 60)...)

	p := s.payOut(s.node.address(t), 1_100_000)
	s.mine(3)
	s.pass(time.Minute)

	if got := s.payout(p.ID); got.Status != payout.Confirmed {
		t.Errorf("the payout of at most %s is %s %s", got.MaxNetworkFee, got.Status, got.FailureCode)
	}

	s.atRest(p)
}

// A block reward waits for its maturity: it is no balance, and holds up nothing.
func TestBitcoinBlockRewardWaits(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.fund(2_000_000)

	rewarded, honest := s.deposit(), s.deposit()
	s.node.call(t, nil, "generatetoaddress", 1, rewarded)
	s.node.call(t, nil, "generatetoaddress", 1, s.master.Address)
	s.node.pay(t, honest, chain.Units(3_000_000))
	s.mine(4)

	if got := s.available(); got != chain.Units(2_000_000) {
		t.Errorf("with an immature reward %s are available", got)
	}

	if _, err := s.engine.Payouts.Create(
		t.Context(), s.payoutParams(s.node.address(t), 3_000_000),
	); err == nil {
		t.Error("a payout of the immature reward is accepted")
	}

	s.pass(5 * time.Minute)
	s.mine(4)
	s.pass(5 * time.Minute)

	states := func() (released, waiting int) {
		for _, set := range s.settlements() {
			if set.Status == settlement.Released {
				released++
			} else {
				waiting++
			}
		}

		return released, waiting
	}

	if released, waiting := states(); released != 1 || waiting != 1 {
		t.Errorf("while the reward waits %d are released, %d wait: %+v", released, waiting, s.settlements())
	}

	s.mine(100)
	s.pass(time.Hour)
	s.mine(4)
	s.pass(time.Hour)

	if released, waiting := states(); released != 2 || waiting != 0 {
		t.Errorf("after its maturity %d are released, %d wait: %+v", released, waiting, s.settlements())
	}

	if got := s.available(); !chain.Units(1_000_000_000).Less(got) {
		t.Errorf("after its maturity %s are available", got)
	}

	s.atRest()
}

// A node that is behind what was read is no fork: the service waits and goes on.
func TestBitcoinNodeBehindItsCursor(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.fund(2_000_000)
	s.mine(20)

	var hash string
	s.node.call(t, &hash, "getblockhash", s.node.height(t)-15)
	s.node.call(t, nil, "invalidateblock", hash)

	for range 3 {
		s.now = s.now.Add(time.Minute)
		if _, err := s.engine.Step(t.Context()); err == nil || errors.Is(err, fault.Stopped) {
			t.Errorf("while the node is behind, Step says: %v", err)
		}
	}

	report, err := s.engine.Health(t.Context())
	must(t, err)

	for _, n := range report.Networks {
		if n.Stopped != "" {
			t.Errorf("the network is stopped: %s", n.Stopped)
		}
	}

	s.node.call(t, nil, "reconsiderblock", hash)
	s.mine(1)

	p := s.payOut(s.node.address(t), 500_000)
	s.mine(4)
	s.pass(time.Minute)

	if got := s.payout(p.ID); got.Status != payout.Confirmed {
		t.Errorf("afterwards a payout is %s %s", got.Status, got.FailureCode)
	}

	s.atRest(p)
}

// Somebody else who has the key is reported by the audit, and the wallet signs nothing more.
func TestBitcoinMasterKeyUsedElsewhere(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.fund(2_000_000)
	stolen := s.signElsewhere(700_000, 2_000_000)
	must(t, s.driver.Broadcast(t.Context(), stolen))
	s.mine(4)

	if text := s.audited(false); !strings.Contains(text, "foreign_transaction") ||
		!strings.Contains(text, string(s.master.Address)) {
		t.Errorf("the audit says:\n%s", text)
	}

	p := s.payOut(s.node.address(t), 100_000)
	s.mine(4)

	if got := s.payout(p.ID); got.Status != payout.Pending {
		t.Errorf("with a wallet that somebody else uses a payout is %s", got.Status)
	}

	must(t, s.engine.Acknowledge(t.Context(), s.slug, stolen.TxHash, payments.Foreign))
	s.pass(time.Minute)
	s.mine(4)
	s.pass(time.Minute)

	if got := s.payout(p.ID); got.Status != payout.Confirmed {
		t.Errorf("once it is acknowledged the payout is %s %s", got.Status, got.FailureCode)
	}
}

// Somebody else who has the key takes the coin of a payout that another one rests on. The first fails, the other
// is built again with its own coin, once a person has looked.
func TestBitcoinConflictFromOutside(t *testing.T) {
	t.Parallel()

	s := stepBitcoin(t)
	s.fund(5_000_000, 3_000_000)

	lower := s.payOut(s.node.address(t), 4_500_000)
	upper := s.payOut(s.node.address(t), 3_200_000) // change and the other coin

	if in := s.outgoing(upper).Attempts[0].Signed.Inputs; len(in) != 2 {
		t.Fatalf("the upper payout spends %v", in)
	}

	stolen := s.signElsewhere(700_000, 5_000_000)
	s.mineThese(hex.EncodeToString(stolen.Raw))
	s.node.mineEmpty(t, 3)
	s.pass(time.Minute)

	if got := s.payout(upper.ID); got.Status != payout.Processing {
		t.Errorf("before a person has looked the upper payout is %s %s", got.Status, got.FailureCode)
	}

	must(t, s.engine.Acknowledge(t.Context(), s.slug, stolen.TxHash, payments.Foreign))
	s.pass(time.Minute)
	s.mine(4)
	s.pass(10 * time.Minute)

	a, b := s.payout(lower.ID), s.payout(upper.ID)
	if a.FailureCode != wallet.FailConflict || a.Conflict.Own || a.Conflict.TxHash != stolen.TxHash {
		t.Errorf("the lower payout is %s %s against %+v", a.Status, a.FailureCode, a.Conflict)
	}

	if b.Status != payout.Confirmed || s.node.holds(t, b.Destination) != b.Amount {
		t.Errorf("the upper one is %s %s", b.Status, b.FailureCode)
	}

	s.refused("the dead bytes of the upper payout", s.raw(s.outgoing(upper), 0))
	s.atRest(lower, upper)
}

// signElsewhere spends the master wallet's coin of an amount beside the engine.
func (s *steppedBitcoin) signElsewhere(satoshi, of uint64) chain.Signed {
	t := s.t
	t.Helper()

	type unspentCoin struct {
		Txid   string
		Vout   uint32
		Height uint64
		Amount json.Number
	}

	var unspent struct{ Unspents []unspentCoin }
	s.node.call(t, &unspent, "scantxoutset", "start", []string{"addr(" + string(s.master.Address) + ")"})

	i := slices.IndexFunc(unspent.Unspents, func(c unspentCoin) bool {
		return decimal.RequireFromString(c.Amount.String()).Shift(8).IntPart() == int64(of)
	})
	coin := unspent.Unspents[i]
	order := chain.Order{
		From:   s.master,
		MaxFee: chain.Units(100_000),
		Outputs: []chain.Output{{
			To:      chain.Address(s.node.address(t)),
			AssetID: s.driver.Network().Assets[0].ID,
			Amount:  chain.Units(satoshi),
		}},
		Coins: []chain.Coin{{
			Outpoint: chain.Outpoint{TxHash: coin.Txid, Vout: coin.Vout},
			Owner:    s.master,
			Amount:   chain.Units(of),
			Height:   coin.Height,
		}},
	}

	unsigned, err := s.driver.Build(t.Context(), order)
	must(t, err)

	key, err := s.keys.PublicKey(t.Context(), s.master.Key)
	must(t, err)
	signatures, err := s.keys.Sign(t.Context(), chain.SignRequest{
		Network:  s.slug,
		Unsigned: unsigned.Raw,
		Payloads: unsigned.Payloads,
	})
	must(t, err)

	signed, err := s.driver.Assemble(order, unsigned, []chain.PublicKey{key}, signatures)
	must(t, err)

	return signed
}
