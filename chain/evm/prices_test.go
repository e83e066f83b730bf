package evm_test

// What one node may cost: prices, gas and rules of gas that a node names.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/twonodes"
)

// lies are what a node makes up of prices and gas.
var lies = map[string]func(n *fakeNode, c rpcCall) (any, bool){
	"tip of 1,000,000 gwei": func(_ *fakeNode, c rpcCall) (any, bool) {
		return hexutil.Uint64(1_000_000_000_000_000), c.Method == "eth_maxPriorityFeePerGas"
	},
	"tip of 20,000 gwei": func(_ *fakeNode, c rpcCall) (any, bool) {
		return hexutil.Uint64(20_000_000_000_000), c.Method == "eth_maxPriorityFeePerGas"
	},
	"base fee of 20,000 gwei": func(n *fakeNode, c rpcCall) (any, bool) {
		if c.Method != "eth_getBlockByNumber" || c.param(0) != "latest" {
			return nil, false
		}

		header := maps.Clone(n.blocks[len(n.blocks)-1].json(false))
		header["baseFeePerGas"] = hexutil.Uint64(20_000_000_000_000)

		return header, true
	},
	"no tip": func(_ *fakeNode, c rpcCall) (any, bool) {
		return hexutil.Uint64(0), c.Method == "eth_maxPriorityFeePerGas"
	},
	"base fee of 1 wei": func(n *fakeNode, c rpcCall) (any, bool) {
		if c.Method != "eth_getBlockByNumber" || c.param(0) != "latest" {
			return nil, false
		}

		header := maps.Clone(n.blocks[len(n.blocks)-1].json(false))
		header["baseFeePerGas"] = hexutil.Uint64(1)

		return header, true
	},
	"gas of 1": func(_ *fakeNode, c rpcCall) (any, bool) {
		return hexutil.Uint64(1), c.Method == "eth_estimateGas"
	},
	"L1 data fee of 1 ETH": func(_ *fakeNode, c rpcCall) (any, bool) { return l1Fee(c, chain.Pow10(18)) },
	"L1 data fee of 0":     func(_ *fakeNode, c rpcCall) (any, bool) { return l1Fee(c, chain.Amount{}) },
	"gas of 2,000,000,000": func(_ *fakeNode, c rpcCall) (any, bool) {
		return hexutil.Uint64(2_000_000_000), c.Method == "eth_estimateGas"
	},
	"gas of 30,000,000": func(_ *fakeNode, c rpcCall) (any, bool) {
		return hexutil.Uint64(30_000_000), c.Method == "eth_estimateGas"
	},
}

// l1Oracle is the contract that names L1 data fees, and l1Fee what it answers.
const l1Oracle = "0x420000000000000000000000000000000000000F"

func l1Fee(c rpcCall, fee chain.Amount) (any, bool) {
	word := fee.Bytes32()

	return hexutil.Bytes(word[:]),
		c.Method == "eth_call" &&
			strings.Contains(strings.ToLower(string(c.Params[0])), strings.ToLower(l1Oracle))
}

// moneyOut are the kinds of transactions with the most that one may cost, in wei.
var moneyOut = map[string]func(driver *evm.Driver) (chain.Amount, error){
	"payout of 1,000 wei": func(driver *evm.Driver) (chain.Amount, error) {
		order := nativeOrder(driver)
		order.Outputs[0].Amount, order.MaxFee = chain.Units(1000), chain.Pow10(26)
		unsigned, err := driver.Build(context.Background(), order)

		return unsigned.MaxFee, err
	},
	"native sweep": func(driver *evm.Driver) (chain.Amount, error) {
		order := nativeOrder(driver)
		order.SubtractFee, order.MaxFee, order.Outputs[0].Amount = true, chain.Pow10(26), chain.Pow10(18)
		unsigned, err := driver.Build(context.Background(), order)

		return unsigned.MaxFee, err
	},
	"top-up of a token release": func(driver *evm.Driver) (chain.Amount, error) {
		token, _ := driver.Network().Asset("USDX")

		steps, err := driver.PlanSweep(context.Background(), chain.SweepRequest{
			Asset:   token,
			Deposit: chain.Party{Address: sender().Address},
			Master:  chain.Party{Address: chain.Address(payee.Hex())},
			Amount:  chain.Units(20_000_000_000),
		})
		if err != nil {
			return chain.Amount{}, err
		}

		return steps[len(steps)-1].Order.MaxFee, nil
	},
	"estimate of a payout": func(driver *evm.Driver) (chain.Amount, error) {
		return driver.EstimateFee(context.Background(), nativeOrder(driver))
	},
}

// One of two nodes that lies about a price costs nothing: verified blocks bound it. One that lies about gas has the
// transfer wait, or is passed over. A single node costs at most twice what blocks show, or the gas of one block.
func TestWhatALyingNodeMayCost(t *testing.T) {
	honest := map[string]chain.Amount{}
	once := func(c *evm.Config) { c.Attempts, c.L1GasPriceOracle = 1, l1Oracle }
	honestNode := func() *fakeNode {
		n := newFakeNode(5)
		n.answer = func(c rpcCall) (any, bool) { return l1Fee(c, chain.Units(1_000_000_000)) }

		return n
	}

	for kind, cost := range moneyOut {
		var err error
		if honest[kind], err = cost(driverOf(t, honestNode(), once)); err != nil {
			t.Fatal(kind, err)
		}
	}

	for _, lie := range slices.Sorted(maps.Keys(lies)) {
		for _, place := range []string{"alone", "first of two", "second of two"} {
			for _, kind := range slices.Sorted(maps.Keys(moneyOut)) {
				liar := newFakeNode(5)
				fair := honestNode()
				liar.answer = func(c rpcCall) (any, bool) {
					if answer, lied := lies[lie](liar, c); lied {
						return answer, true
					}

					return fair.answer(c)
				}
				nodes, hosts := fakeTransport{"a": liar, "b": fair}, []string{"a"}

				if place != "alone" {
					hosts = append(hosts, "b")
				}

				if place == "second of two" {
					hosts = []string{"b", "a"}
				}

				d := fakeDriver(t, nodes, hosts, once)
				cost, err := moneyOut[kind](d)
				t.Logf(
					"%-26s %-14s %-26s at most %-18s honest %-16s Health: %-14s %v",
					lie, place, kind, cost, honest[kind], twonodes.Named(d), err,
				)

				most := honest[kind] // the estimates of the honest node
				if !strings.HasPrefix(lie, "gas") {
					most = most.Mul(12) // a quiet network may name a tip of 1 gwei instead of 0.1
				}

				switch {
				case err != nil && fault.Code(err) != "nodes_disagree" && fault.Code(err) != "node_unavailable":
					t.Errorf("%s, %s, %s: %v", lie, place, kind, err)
				case place == "alone" && lie == "gas of 30,000,000": // what a block takes: reserved, and given back
				case place == "alone" && lie == "L1 data fee of 1 ETH": // the highest price for all gas: likewise
					if highest := chain.Units(500_000_000_000).Mul(100_000); highest.Less(cost) {
						t.Errorf("%s, %s, %s: %s", lie, place, kind, cost)
					}
				case fault.Code(err) == "nodes_disagree" && twonodes.Named(d) != "disagrees, disagrees":
					t.Errorf(
						"%s, %s, %s: two nodes disagree, Health says %s",
						lie,
						place,
						kind,
						twonodes.Named(d),
					)
				case err == nil && most.Less(cost):
					t.Errorf("%s, %s, %s: %s, an honest node costs %s", lie, place, kind, cost, honest[kind])
				}
			}
		}
	}
}

// Blocks with room show what was offered, by our own transactions maybe: their price does not rise by it, whatever a
// node names. What full blocks paid may be doubled, once for all that they held.
func TestOwnTransactionsRaiseNoPrice(t *testing.T) {
	for name, c := range map[string]struct {
		nodes int
		full  bool
		most  uint64
	}{
		"alone":                       {nodes: 1, most: 1_000_000_000},
		"first of two":                {nodes: 2, most: 1_000_000_000},
		"alone, the blocks are full":  {nodes: 1, full: true, most: 6_000_000_000},
		"of two, the blocks are full": {nodes: 2, full: true, most: 3_000_000_000},
	} {
		liar, honest := newFakeNode(5), newFakeNode(5)
		liar.answer = func(c rpcCall) (any, bool) {
			return hexutil.Uint64(1_000_000_000_000_000), c.Method == "eth_maxPriorityFeePerGas"
		}
		hosts := []string{"a", "b"}[:c.nodes]
		driver := fakeDriver(t, fakeTransport{"a": liar, "b": honest}, hosts, func(config *evm.Config) {
			config.Attempts = 1
		})

		paid := uint64(3_000_000_000)

		for range 10 {
			_, _, tx := build(t, driver, nativeOrder(driver))
			if tip := tx.GasTipCap().Uint64(); tip > c.most {
				t.Fatalf("%s: a tip of %d", name, tip)
			}

			if !c.full {
				paid = tx.GasTipCap().Uint64()
			}

			for _, n := range []*fakeNode{liar, honest} {
				n.update(func(n *fakeNode) {
					n.extend("main")

					newest := &n.blocks[len(n.blocks)-1]
					newest.full, newest.txs[0]["maxPriorityFeePerGas"] = c.full, hexutil.Uint64(paid)

					n.seal(len(n.blocks) - 1)
				})
			}
		}
	}
}

// Two nodes that agree about a price above what blocks show are believed, the lower of them.
func TestTheLowerOfTwoPricesCounts(t *testing.T) {
	tip := func(wei uint64) *fakeNode {
		n := newFakeNode(5)
		n.answer = func(c rpcCall) (any, bool) {
			return hexutil.Uint64(wei), c.Method == "eth_maxPriorityFeePerGas"
		}

		return n
	}

	for _, hosts := range [][]string{{"a", "b"}, {"b", "a"}} {
		nodes := fakeTransport{"a": tip(7_000_000_000), "b": tip(5_000_000_000)}
		driver := fakeDriver(t, nodes, hosts)
		_, _, tx := build(t, driver, nativeOrder(driver))
		wantNumber(t, "the tip", tx.GasTipCap(), chain.Units(5_000_000_000))

		driver = fakeDriver(t, nodes, hosts, func(c *evm.Config) { c.MaxGasPrice = 4_000_000_000 })
		_, _, tx = build(t, driver, nativeOrder(driver))
		wantNumber(t, "the highest tip", tx.GasTipCap(), chain.Units(3_000_000_000))
	}
}

// A network that asks for more than the highest price has transactions wait.
func TestHighestGasPrice(t *testing.T) {
	driver := driverOf(t, newFakeNode(5), func(c *evm.Config) { c.MaxGasPrice = 999_999_999 })
	_, err := driver.Build(t.Context(), nativeOrder(driver))
	wantFault(t, err, fault.Limited, "fee_above_maximum")

	if !strings.Contains(err.Error(), "MaxGasPrice") {
		t.Errorf("%v does not name the setting", err)
	}
}

// Prices within what verified blocks paid need no second node: one of two is gone, and the other one decides.
func TestBoundedPriceNeedsNoSecondNode(t *testing.T) {
	driver := fakeDriver(t, fakeTransport{"a": newFakeNode(5)}, []string{"a", "b"})
	_, _, tx := build(t, driver, nativeOrder(driver))
	wantNumber(t, "the tip", tx.GasTipCap(), chain.Units(100_000_000))
}

// Amsterdam's rules (EIP-2780, EIP-8037): a transfer to an account that exists takes less than 21,000 gas, one that
// creates the account 204,600.
func TestNoGasScheduleIsAssumed(t *testing.T) {
	n := newFakeNode(5)
	estimate := uint64(15_000)
	n.answer = func(c rpcCall) (any, bool) { return hexutil.Uint64(estimate), c.Method == "eth_estimateGas" }
	driver := driverOf(t, n)

	for _, estimate = range []uint64{12_000, 15_000, 21_000, 204_600} {
		order := nativeOrder(driver)
		order.SubtractFee = true

		unsigned, _, tx := build(t, driver, order)
		if tx.Gas() != estimate ||
			unsigned.Outputs[0].Amount.Add(unsigned.MaxFee) != order.Outputs[0].Amount {
			t.Errorf("an estimate of %d: gas %d, %s of %s", estimate, tx.Gas(), unsigned.Outputs[0].Amount,
				order.Outputs[0].Amount)
		}
	}
}

// Steps that the master wallet pays are planned with the receiver and the value that they will have, also while it
// cannot pay for them: as if it held the money, and from a node that refuses that with what it holds.
func TestTopUpIsPlannedWithItsCost(t *testing.T) {
	for name, c := range map[string]struct {
		balance   uint64
		overrides bool
		refusal   any // of state overrides
	}{
		"funded":                       {balance: 1_000_000_000_000_000_000},
		"unfunded":                     {balance: 7, overrides: true},
		"unfunded, no state overrides": {balance: 7, refusal: rpcError{-32602, "too many arguments, want at most 2"}},
		"unfunded, null for them":      {balance: 7},
	} {
		n := newFakeNode(5)
		master := chain.Party{Address: sender().Address}
		deposit := chain.Party{Address: chain.Address(payee.Hex())}

		n.answer = func(call rpcCall) (any, bool) {
			switch call.Method {
			case "eth_getBalance":
				if strings.EqualFold(call.param(0), string(master.Address)) {
					return hexutil.Uint64(c.balance), true
				}

				return "0x0", true
			case "eth_estimateGas":
				if len(call.Params) > 2 && !c.overrides {
					return c.refusal, true
				}

				return estimateOf(call, c.balance), true
			}

			return nil, false
		}
		driver := driverOf(t, n)
		token, _ := driver.Network().Asset("USDX")

		steps, err := driver.PlanSweep(t.Context(), chain.SweepRequest{
			Asset:   token,
			Deposit: deposit,
			Master:  master,
			Amount:  chain.Units(5_000_000),
		})
		if err != nil || len(steps) != 2 {
			t.Fatalf("%s: %+v, %v", name, steps, err)
		}

		if want := chain.Units(1_100_000_000).Mul(204_600); steps[0].NetworkFee != want {
			t.Errorf("%s: the top-up costs %s, want %s", name, steps[0].NetworkFee, want)
		}
	}
}

// What a top-up brought is proven by its block: a node that says that the address holds nothing causes no second one.
func TestTopUpIsMadeOnceWhateverABalanceSays(t *testing.T) {
	n := newFakeNode(5)
	deposit := chain.Party{Address: chain.Address(payee.Hex())}

	n.answer = func(call rpcCall) (any, bool) {
		return "0x0", call.Method == "eth_getBalance" &&
			strings.EqualFold(call.param(0), string(deposit.Address))
	}
	driver := driverOf(t, n)
	token, _ := driver.Network().Asset("USDX")
	release := chain.SweepRequest{
		Asset:   token,
		Deposit: deposit,
		Master:  chain.Party{Address: sender().Address},
		Amount:  chain.Units(5_000_000),
	}

	steps, err := driver.PlanSweep(t.Context(), release)
	if err != nil || len(steps) != 2 || steps[0].Kind != chain.StepTopUp {
		t.Fatalf("%+v, %v", steps, err)
	}

	release.Done, release.Residue = []chain.StepKind{chain.StepTopUp}, steps[0].Order.Outputs[0].Amount

	steps, err = driver.PlanSweep(t.Context(), release)
	if err != nil || len(steps) != 1 || steps[0].Kind != chain.StepSweep {
		t.Errorf("after the top-up the plan is %+v, %v", steps, err)
	}
}

// estimateOf estimates as Amsterdam does: a transfer of coin to an account that does not exist takes 204,600 gas, of
// nothing 15,000.
func estimateOf(call rpcCall, balance uint64) any {
	var message struct {
		Value hexutil.Big   `json:"value"`
		Data  hexutil.Bytes `json:"data"`
	}

	must(json.Unmarshal(call.Params[0], &message))

	value, over := message.Value.ToInt(), len(call.Params) > 2

	switch {
	case len(message.Data) > 0:
		return hexutil.Uint64(51_447)
	case value.Sign() == 0:
		return hexutil.Uint64(15_000)
	case !over && value.Cmp(chain.Units(balance).Big()) > 0:
		return rpcError{-32000, "insufficient funds for transfer"}
	}

	return hexutil.Uint64(204_600)
}

// A master wallet that delegates to code (EIP-7702) is still that of its key: releases go on, with the gas that the
// code takes. A contract is refused.
func TestReleaseToADelegatedMaster(t *testing.T) {
	for code, payable := range map[string]bool{
		"0x": true,
		"0xef01001000000000000000000000000000000000000001":   true,
		"0xef0100100000000000000000000000000000000000000100": false, // not a designation: 24 bytes
		"0x6000": false,
	} {
		n := newFakeNode(5)
		n.answer = func(c rpcCall) (any, bool) {
			switch c.Method {
			case "eth_getCode":
				return code, true
			case "eth_estimateGas":
				return hexutil.Uint64(23_500), true
			}

			return nil, false
		}
		driver := driverOf(t, n)

		steps, err := driver.PlanSweep(t.Context(), chain.SweepRequest{
			Asset:   nativeAsset(driver),
			Deposit: sender(),
			Master:  chain.Party{Address: chain.Address(payee.Hex())},
			Amount:  chain.Pow10(17),
		})
		if !payable {
			wantFault(t, err, fault.Invalid, "not_releasable")
			continue
		}

		if err != nil {
			t.Errorf("code %s: %v", code, err)
			continue
		}

		_, _, tx := build(t, driver, steps[0].Order)
		if want := map[bool]uint64{true: 23_500, false: 28_200}[code == "0x"]; tx.Gas() != want {
			t.Errorf("code %s: gas %d, want %d", code, tx.Gas(), want)
		}
	}
}

func nativeAsset(driver *evm.Driver) chain.Asset {
	network := driver.Network()
	native, _ := network.Native()

	return native
}

// A release of native coin never pays more than half of what it moves, however much prices rise until it is signed.
func TestNativeReleasePaysAtMostHalf(t *testing.T) {
	driver := driverOf(t, newFakeNode(5))
	amount := chain.Units(1_350_000_000).Mul(21_000).Mul(3)

	steps, err := driver.PlanSweep(t.Context(), chain.SweepRequest{
		Asset:   nativeAsset(driver),
		Deposit: sender(),
		Master:  chain.Party{Address: chain.Address(payee.Hex())},
		Amount:  amount,
	})
	if err != nil {
		t.Fatal(err)
	}

	if most := amount.Share(chain.Units(1), chain.Units(2)); most.Less(steps[0].Order.MaxFee) {
		t.Errorf("it may cost %s of %s", steps[0].Order.MaxFee, amount)
	}
}

// What no block can take is known as that, and its replacement has other gas.
func TestReplacementOfBytesThatNoBlockTakes(t *testing.T) {
	n := newFakeNode(5)
	estimate := uint64(29_000_000)
	n.answer = func(c rpcCall) (any, bool) { return hexutil.Uint64(estimate), c.Method == "eth_estimateGas" }

	order := nativeOrder(driverOf(t, n))
	order.MaxFee = chain.Pow10(20)
	_, first, tx := build(t, driverOf(t, n), order)

	if tx.Gas() != 29_000_000 {
		t.Fatalf("gas %d", tx.Gas())
	}

	driver := driverOf(t, n, func(c *evm.Config) { c.MaxGas = 1 << 24 })
	if fits, err := driver.Fits(t.Context(), first); err != nil || fits {
		t.Errorf("Fits = %t, %v", fits, err)
	}

	estimate, order.Replaces = 21_000, &first

	_, second, tx := build(t, driver, order)
	if fits, err := driver.Fits(t.Context(), second); err != nil || !fits || tx.Gas() > 1<<24 {
		t.Errorf("the replacement has %d gas; Fits = %t, %v", tx.Gas(), fits, err)
	}
}

// Bytes with less gas than their call takes fit no block, whoever estimated it: one of two nodes that asks for more
// replaces nothing.
func TestBytesOfTooLittleGasFitNoBlock(t *testing.T) {
	estimate := uint64(20_000)
	lying, honest := newFakeNode(5), newFakeNode(5)

	for _, n := range []*fakeNode{lying, honest} {
		n.answer = func(c rpcCall) (any, bool) { return hexutil.Uint64(estimate), c.Method == "eth_estimateGas" }
	}

	alone := driverOf(t, lying)
	_, little, _ := build(t, alone, nativeOrder(alone))

	if fits, err := alone.Fits(t.Context(), little); err != nil || !fits {
		t.Errorf("while the node estimates as little: Fits = %t, %v", fits, err)
	}

	estimate = 21_000

	if fits, err := alone.Fits(t.Context(), little); err != nil || fits {
		t.Errorf("20,000 gas for a transfer of 21,000: Fits = %t, %v", fits, err)
	}

	_, enough, _ := build(t, alone, nativeOrder(alone))
	lying.answer = func(c rpcCall) (any, bool) { return hexutil.Uint64(900_000), c.Method == "eth_estimateGas" }

	two := fakeDriver(t, fakeTransport{"a": lying, "b": honest}, []string{"a", "b"})
	if fits, err := two.Fits(t.Context(), enough); err != nil || !fits {
		t.Errorf("where one of two nodes estimates 900,000: Fits = %t, %v", fits, err)
	}
}

// A cancel takes more gas than bytes that a node estimated too little for, and outbids their price: what it may cost is
// estimated with both.
func TestEstimateCoversWhatIsDisplaced(t *testing.T) {
	n := newFakeNode(5)
	estimate, tip := uint64(30), uint64(900_000_000)
	n.answer = func(c rpcCall) (any, bool) {
		switch c.Method {
		case "eth_estimateGas":
			return hexutil.Uint64(estimate), true
		case "eth_maxPriorityFeePerGas":
			return hexutil.Uint64(tip), true
		}

		return nil, false
	}

	driver := driverOf(t, n)
	order := nativeOrder(driver)
	_, displaced, _ := build(t, driver, order)

	estimate, tip = 21_000, 1
	order.Replaces = &displaced

	var err error

	if order.MaxFee, err = driver.EstimateFee(t.Context(), order); err != nil {
		t.Fatal(err)
	}

	if _, err := driver.Build(t.Context(), order); err != nil {
		t.Error(err)
	}
}

// A sweep that used all of its gas, or all that a call inside it was given, ran out of it; one that its contract
// refused did not.
func TestRanOutOfGas(t *testing.T) {
	for used, want := range map[uint64]bool{100_000: true, 98_600: true, 40_000: false} {
		n := newFakeNode(5)
		n.update(func(n *fakeNode) {
			n.blocks[3].receipts[0]["status"] = "0x0"
			n.blocks[3].receipts[0]["gasUsed"] = hexutil.Uint64(used)
			n.blocks[3].receipts[0]["logs"] = []jsonObject{}
			n.seal(3)
		})

		ranOut, err := driverOf(t, n).RanOutOfGas(t.Context(), signedIn(n, 3))
		if err != nil || ranOut != want {
			t.Errorf("%d of 100,000 gas: %t, %v", used, ranOut, err)
		}
	}

	n := newFakeNode(5)
	if ranOut, err := driverOf(t, n).RanOutOfGas(t.Context(), signedIn(n, 3)); err != nil || ranOut {
		t.Errorf("one that succeeded: %t, %v", ranOut, err)
	}

	_, err := driverOf(t, n).RanOutOfGas(t.Context(), chain.Signed{TxHash: fmt.Sprintf("0x%064x", 1)})
	wantFault(t, err, fault.NotFound, "transaction_unknown")
}

// signedIn returns the transaction of a fake block as one of ours.
func signedIn(n *fakeNode, height int) chain.Signed {
	tx := new(types.Transaction)
	recode(n.blocks[height].txs[0], tx)

	raw, err := tx.MarshalBinary()
	must(err)

	return chain.Signed{TxHash: tx.Hash().Hex(), Raw: raw}
}
