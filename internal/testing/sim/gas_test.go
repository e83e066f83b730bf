package sim_test

import (
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// gasNetwork is a network whose rules of gas change at block 10, with a funded master wallet.
type gasNetwork struct {
	*sim.Chain
	t      *testing.T
	signer *sim.Signer
	wallet chain.Party
}

func newGasNetwork(t *testing.T, config sim.Config) gasNetwork {
	t.Helper()

	config.Clock = fixed
	c := sim.New(config)
	n := gasNetwork{Chain: c, t: t, signer: sim.NewSigner(1, nil)}
	n.wallet = n.signer.Party(chain.RoleMaster, 0, c)
	n.Fund(n.wallet.Address, "SIM", chain.Pow10(20))
	n.Fund(n.wallet.Address, "USDX", chain.Pow10(12))

	return n
}

// order pays an asset to an address, at the wallet's next nonce.
func (n gasNetwork) order(to chain.Address, symbol string) chain.Order {
	network := n.Network()
	asset, _ := network.Asset(symbol)

	nonce, err := n.Nonce(n.t.Context(), n.wallet.Address)
	if err != nil {
		n.t.Fatal(err)
	}

	return chain.Order{
		From:    n.wallet,
		Outputs: []chain.Output{{To: to, AssetID: asset.ID, Amount: chain.Units(1_000)}},
		MaxFee:  chain.Pow10(18),
		Nonce:   nonce,
	}
}

// send signs an order and puts it into the pool.
func (n gasNetwork) send(order chain.Order) chain.Signed {
	n.t.Helper()

	tx := sign(n.t, n.Chain, n.signer, order)
	if err := n.Broadcast(n.t.Context(), tx); err != nil {
		n.t.Fatal(err)
	}

	return tx
}

func (n gasNetwork) status(tx chain.Signed) chain.TxStatus {
	n.t.Helper()

	status, err := n.Status(n.t.Context(), tx)
	if err != nil {
		n.t.Fatal(err)
	}

	return status
}

// From a height on transfers take other gas: what a receiver holds decides, as on a network after Amsterdam. What was
// signed before and takes more runs out of gas, costs what it had, and moves nothing.
func TestGasRulesChangeAtAHeight(t *testing.T) {
	n := newGasNetwork(t, sim.Config{GasForks: []sim.GasFork{{From: 10, Rules: sim.AmsterdamGas()}}})
	fresh := func() chain.Address { return n.NewAddress() }

	// Before: a payment to anybody takes as much.
	before := n.send(n.order(fresh(), "SIM"))
	n.Mine(1)

	price := chain.Units(sim.DefaultBaseFee + sim.DefaultPriority)
	if s := n.status(before); s.Reverted || s.Fee != price.Mul(sim.GasNative) {
		t.Errorf("before: %+v", s)
	}

	n.MineEmpty(7) // up to block 8

	crossing := n.send(n.order(fresh(), "SIM")) // signed for block 9, included in block 10
	n.MineEmpty(1)
	n.Mine(1)

	status := n.status(crossing)
	if !status.Reverted || status.Fee != price.Mul(sim.GasNative) || status.Block.Height != 10 {
		t.Errorf("across: %+v", status)
	}

	if ranOut, err := n.RanOutOfGas(t.Context(), crossing); err != nil || !ranOut {
		t.Errorf("RanOutOfGas = %t, %v", ranOut, err)
	}

	if got := n.Balance(crossing.Outputs[0].To, "SIM"); !got.IsZero() {
		t.Errorf("it moved %s", got)
	}

	for _, c := range []struct {
		what   string
		symbol string
		to     chain.Address
		used   uint64
	}{
		{"coin to a new account", "SIM", fresh(), sim.GasNative + 183_600},
		{"coin to a used account", "SIM", before.Outputs[0].To, sim.GasNative},
		{"a token to a new holder", "USDX", fresh(), 168_000},
		{"a token to a holder", "USDX", n.wallet.Address, 70_000},
	} {
		tx := n.send(n.order(c.to, c.symbol))
		n.Mine(1)

		s := n.status(tx)
		if s.Reverted || s.Fee != price.Mul(c.used) {
			t.Errorf("%s: %+v, want a fee of %s", c.what, s, price.Mul(c.used))
		}

		if ranOut, err := n.RanOutOfGas(t.Context(), tx); err != nil || ranOut {
			t.Errorf("%s: RanOutOfGas = %t, %v", c.what, ranOut, err)
		}
	}
}

// A fork may take less gas of transactions than blocks took before: what was signed with more fits no block any more.
func TestGasAboveTheNetworksMostFitsNoBlock(t *testing.T) {
	forks := []sim.GasFork{
		{From: 3, Rules: sim.GasRules{Native: sim.GasNative, Token: sim.GasToken, Most: 1 << 24}},
	}
	n := newGasNetwork(t, sim.Config{GasForks: forks})
	n.SetNode(0, sim.NodeFaults{Gas: 20_000_000})

	order := n.order(n.NewAddress(), "SIM")
	tx := n.send(order)

	if fits, err := n.Fits(t.Context(), tx); err != nil || !fits {
		t.Errorf("before: Fits = %t, %v", fits, err)
	}

	n.MineEmpty(2)
	n.Mine(1)

	if s := n.status(tx); s.State != chain.TxUnknown {
		t.Errorf("it is %+v", s)
	}

	if fits, err := n.Fits(t.Context(), tx); err != nil || fits {
		t.Errorf("after: Fits = %t, %v", fits, err)
	}

	n.SetNode(0, sim.NodeFaults{})

	order.Replaces = &tx
	again := n.send(order)
	n.Mine(1)

	if s := n.status(again); s.State != chain.TxIncluded || s.Reverted {
		t.Errorf("the replacement is %+v", s)
	}
}

// What one node of several says of prices costs at most twice what the network asks for; one alone may say that much.
// Gas has to be said alike by two.
func TestDriverBoundsWhatANodeSaysOfPrices(t *testing.T) {
	usual := chain.Units(2*sim.DefaultBaseFee + sim.DefaultPriority).Mul(sim.GasNative)
	tip := chain.Units(sim.DefaultPriority).Mul(sim.GasNative)

	for name, c := range map[string]struct {
		faults     sim.NodeFaults
		alone, two chain.Amount // the most that the transaction may cost
		code       [2]string    // of the refusal, alone and with two
	}{
		"a high tip":      {faults: sim.NodeFaults{Priority: 1 << 50}, alone: usual.Add(tip), two: usual.Add(tip)},
		"a high base fee": {faults: sim.NodeFaults{BaseFee: 1 << 50}, alone: usual.Mul(2), two: usual.Mul(2)},
		"no tip":          {faults: sim.NodeFaults{Priority: 1}, alone: usual, two: usual},
		"no base fee":     {faults: sim.NodeFaults{BaseFee: 1}, alone: usual, two: usual},
		"much gas": {
			faults: sim.NodeFaults{Gas: 1_000_000},
			alone:  usual.Mul(48),
			code:   [2]string{"", "nodes_disagree"},
		},
		"gas that no block takes": {
			faults: sim.NodeFaults{Gas: 1 << 32},
			two:    usual,
			code:   [2]string{"node_unavailable", ""},
		},
		"a little more gas": {faults: sim.NodeFaults{Gas: 22_000}, alone: usual.Mul(2), two: usual.Mul(2)},
	} {
		for nodes := 1; nodes <= 2; nodes++ {
			for liar := range nodes {
				n := newGasNetwork(t, sim.Config{Nodes: nodes})
				n.SetNode(liar, c.faults)

				unsigned, err := n.Build(t.Context(), n.order(n.NewAddress(), "SIM"))
				if fault.Code(err) != c.code[nodes-1] {
					t.Errorf("%s, node %d of %d: %v", name, liar, nodes, err)
				}

				if most := []chain.Amount{c.alone, c.two}[nodes-1]; most.Less(unsigned.MaxFee) {
					t.Errorf(
						"%s, node %d of %d: %s, want at most %s",
						name,
						liar,
						nodes,
						unsigned.MaxFee,
						most,
					)
				}
			}
		}
	}
}

// Blocks of 200 milliseconds bear whole seconds, as on networks that make several a second.
func TestBlocksOfOneSecondShareIt(t *testing.T) {
	n := sim.New(sim.Config{Clock: fixed, WholeSeconds: true})

	var seconds []int64

	for range 10 {
		n.Advance(200_000_000)

		seconds = append(seconds, n.Mine(1).Time.UnixMilli()%1000)
	}

	if slices.ContainsFunc(seconds, func(ms int64) bool { return ms != 0 }) {
		t.Errorf("milliseconds of blocks: %v", seconds)
	}
}
