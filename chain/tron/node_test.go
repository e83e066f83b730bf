//go:build unix

package tron_test

// Scenarios on a node that the conformance suite does not have.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// harness is a driver on a fake node with a signer.
type harness struct {
	*chainWithToken
	t      *testing.T
	d      *tron.Driver
	signer chain.Signer
	native chain.Asset
	usdt   chain.Asset
	keys   uint32
}

func newHarness(t *testing.T, o testenv.TronOptions, change ...func(*tron.Config)) *harness {
	t.Helper()
	c := startChain(t, o)
	h := &harness{chainWithToken: c, t: t, d: c.driver(t, change...), signer: freshSigner(t)}
	h.native, _ = h.d.Network().Native()
	h.usdt, _ = h.d.Network().Asset("USDT")

	return h
}

func (h *harness) must(err error) {
	h.t.Helper()

	if err != nil {
		h.t.Fatal(err)
	}
}

// party returns an address of ours that was not used before.
func (h *harness) party() chain.Party {
	h.t.Helper()
	h.keys++
	ref := chain.KeyRef{Family: chain.Tron, Role: chain.RoleDeposit, Index: h.keys}
	key, err := h.signer.PublicKey(h.t.Context(), ref)
	h.must(err)
	address, err := h.d.DeriveAddress(key)
	h.must(err)

	return chain.Party{Key: ref, Address: address}
}

func (h *harness) stranger() chain.Address {
	h.t.Helper()
	a, err := h.NewAddress(h.t.Context())
	h.must(err)

	return a
}

// wallet is an address of ours with so many TRX.
func (h *harness) wallet(trx uint64) chain.Party {
	h.t.Helper()
	p := h.party()
	h.must(h.Fund(h.t.Context(), p.Address, h.native, chain.Units(trx*1_000_000)))

	return p
}

func (h *harness) order(from chain.Party, a chain.Asset, to chain.Address, sum uint64) chain.Order {
	return chain.Order{
		From:    from,
		Outputs: []chain.Output{{To: to, AssetID: a.ID, Amount: chain.Units(sum)}},
		MaxFee:  chain.Units(1_000_000_000),
	}
}

func (h *harness) sign(order chain.Order) chain.Signed {
	h.t.Helper()
	u, err := h.d.Build(h.t.Context(), order)
	h.must(err)

	return h.signed(order, u)
}

func (h *harness) signed(order chain.Order, u chain.Unsigned) chain.Signed {
	h.t.Helper()
	key, err := h.signer.PublicKey(h.t.Context(), order.From.Key)
	h.must(err)
	signatures, err := h.signer.Sign(
		h.t.Context(),
		chain.SignRequest{Network: "tron-private", Unsigned: u.Raw, Payloads: u.Payloads},
	)
	h.must(err)
	s, err := h.d.Assemble(order, u, []chain.PublicKey{key}, signatures)
	h.must(err)

	return s
}

func (h *harness) mine(n int) { h.t.Helper(); h.must(h.Mine(h.t.Context(), n)) }

// include sends a transaction and makes a block.
func (h *harness) include(s chain.Signed) chain.TxStatus {
	h.t.Helper()
	h.must(h.d.Broadcast(h.t.Context(), s))
	h.mine(1)
	status, err := h.d.Status(h.t.Context(), s)
	h.must(err)

	if status.State != chain.TxIncluded {
		h.t.Fatalf("a transaction that was sent is %+v", status)
	}

	return status
}

func (h *harness) control(name string, args map[string]any) testenv.TronState {
	h.t.Helper()
	s, err := h.Control(h.t.Context(), name, args)
	h.must(err)

	return s
}

func (h *harness) balance(of chain.Address, a chain.Asset) chain.Amount {
	h.t.Helper()
	head, err := h.d.Head(h.t.Context())
	h.must(err)
	got, err := h.d.Balances(h.t.Context(), head.Tip, []chain.Holding{{Address: of, AssetID: a.ID}})
	h.must(err)

	return got[0]
}

// latestBlock returns the newest block as the scan shows it.
func (h *harness) latestBlock() chain.Block {
	h.t.Helper()
	head, err := h.d.Head(h.t.Context())
	h.must(err)
	blocks, err := h.d.Blocks(h.t.Context(), head.Tip.Height, head.Tip.Height)
	h.must(err)

	return blocks[0]
}

func wantFault(t *testing.T, err, word error, code string) {
	t.Helper()

	if !errors.Is(err, word) || (code != "" && fault.Code(err) != code) {
		t.Errorf("%v (code %q), want %v with code %q", err, fault.Code(err), word, code)
	}
}

// blacklist has the token's issuer put an address on its black list.
func (h *harness) blacklist(listed chain.Address) {
	h.t.Helper()
	data, err := h.input("setBlackListed", listed, true)
	h.must(err)
	_, err = h.call(h.t.Context(), h.token, 0, data, energyLimit)
	h.must(err)
	h.mine(2)
}

func TestCheck(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	h.must(h.d.Check(t.Context()))
	miscounted := h.driver(t, func(c *tron.Config) { c.Network.Assets[1].Decimals = 18 })
	wantFault(t, miscounted.Check(t.Context()), fault.Stopped, "token_mismatch")
	none := h.driver(t, func(c *tron.Config) { c.Network.Assets[1].Contract = h.stranger() })
	wantFault(t, none.Check(t.Context()), fault.Stopped, "token_mismatch")
	mainnet := h.driver(t, func(c *tron.Config) { c.Network = tron.Mainnet })
	wantFault(t, mainnet.Check(t.Context()), fault.Stopped, "chain_id_mismatch")
}

// Every kind of destination beside an active account.
func TestDestinations(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from := h.wallet(1_000)
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(100_000_000)))
	listed := h.stranger()
	h.blacklist(listed)

	zero := chain.Address("T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb")
	for name, order := range map[string]chain.Order{
		"TRX to a contract":              h.order(from, h.native, chain.Address(h.forwarder), 5_000_000),
		"TRX to a token's contract":      h.order(from, h.native, chain.Address(h.token), 5_000_000),
		"USDT to its own contract":       h.order(from, h.usdt, chain.Address(h.token), 5_000_000),
		"USDT to an address on its list": h.order(from, h.usdt, listed, 5_000_000),
		"TRX to the zero address":        h.order(from, h.native, zero, 5_000_000),
		"USDT to the zero address":       h.order(from, h.usdt, zero, 5_000_000),
		"TRX to oneself":                 h.order(from, h.native, from.Address, 5_000_000),
		"TRX to an address of another form": h.order(
			from, h.native, "0xa614f803b6fd780986a42c78ec9c7f77e6ded13c", 5_000_000,
		),
	} {
		_, err := h.d.Build(t.Context(), order)
		if wantFault(t, err, fault.Invalid, "destination_not_payable"); t.Failed() {
			t.Fatal(name)
		}
	}

	// A contract can hold tokens, and an address that was never active can be paid both.
	toContract := h.sign(h.order(from, h.usdt, chain.Address(h.forwarder), 5_000_000))
	inactive := h.stranger()

	coin := h.sign(h.order(from, h.native, inactive, 5_000_000))
	tokens := h.sign(h.order(from, h.usdt, inactive, 7_000_000))

	for _, signed := range []chain.Signed{toContract, coin, tokens} {
		if status := h.include(signed); status.Reverted {
			t.Errorf("%+v", status)
		}
	}

	if got := h.balance(chain.Address(h.forwarder), h.usdt); got != chain.Units(5_000_000) {
		t.Errorf("the contract holds %s", got)
	}

	trx, usdt := h.balance(inactive, h.native), h.balance(inactive, h.usdt)
	if trx != chain.Units(5_000_000) || usdt != chain.Units(7_000_000) {
		t.Errorf("%s and %s arrived at the address that was never active", trx, usdt)
	}
}

// Activating an account costs 1 TRX and 0.1 TRX in place of bandwidth, and the fee includes both.
func TestActivationIsCounted(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from, to := h.wallet(100), h.stranger()
	order := h.order(from, h.native, to, 5_000_000)
	order.MaxFee = chain.Units(1_099_999)
	_, err := h.d.Build(t.Context(), order)
	wantFault(t, err, fault.Limited, "fee_above_maximum")
	order.MaxFee, err = h.d.EstimateFee(t.Context(), order)
	h.must(err)

	if order.MaxFee != chain.Units(1_650_000) {
		t.Errorf("the estimate is %s, want one and a half of 1100000", order.MaxFee)
	}

	if status := h.include(h.sign(order)); status.Fee != chain.Units(1_100_000) {
		t.Errorf("the first payment cost %s, want 1100000", status.Fee)
	}

	if status := h.include(h.sign(order)); !status.Fee.IsZero() {
		t.Errorf("the second payment cost %s though the day's allowance covers it", status.Fee)
	}

	poor := h.wallet(3)
	_, err = h.d.Build(t.Context(), h.order(poor, h.native, h.stranger(), 2_000_000))
	wantFault(t, err, fault.State, "insufficient_funds")
}

// Where the day's allowance covers the bandwidth a sweep costs nothing, and moves all but one sun.
func TestFreeBandwidth(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from, to := h.wallet(10), h.wallet(1).Address
	order := h.order(from, h.native, to, 10_000_000)
	order.SubtractFee = true

	signed := h.sign(order)
	if signed.Outputs[0].Amount != chain.Units(9_999_999) {
		t.Errorf("the sweep moves %s of 10000000", signed.Outputs[0].Amount)
	}

	if signed.MaxFee.Less(chain.Units(200_000)) {
		t.Errorf(
			"the sweep may cost %s at most, though the allowance can be used up before it",
			signed.MaxFee,
		)
	}

	if status := h.include(
		signed,
	); !status.Fee.IsZero() ||
		h.balance(from.Address, h.native) != chain.Units(1) {
		t.Errorf("it cost %s, %s is left", status.Fee, h.balance(from.Address, h.native))
	}
}

// The fee of a sweep whose amount takes a byte less because of the fee is found out.
func TestSweepIsExactAtEverySize(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{Parameters: map[string]int64{"getFreeNetLimit": 0}})

	to := h.wallet(1).Address
	for _, sum := range []uint64{
		1<<21 - 1,
		1 << 21,
		1<<21 + 267_000,
		1<<21 + 268_000,
		1<<21 + 300_000,
		1 << 28,
		1<<28 + 268_000,
	} {
		from := h.party()
		h.must(h.Fund(t.Context(), from.Address, h.native, chain.Units(sum)))
		order := h.order(from, h.native, to, sum)
		order.SubtractFee = true
		signed := h.sign(order)
		status := h.include(signed)

		left := h.balance(from.Address, h.native)

		moved := signed.Outputs[0].Amount.Add(status.Fee)
		if moved.Add(left) != chain.Units(sum) || chain.Units(1_000).Less(left) {
			t.Errorf(
				"of %d sun %s arrived, the fee is %s and %s is left",
				sum, signed.Outputs[0].Amount, status.Fee, left,
			)
		}
	}
}

// Energy is simulated: its price is in the estimate, stake takes it away, and the fee limit bounds it.
func TestEnergy(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{Parameters: map[string]int64{"getFreeNetLimit": 0}})
	from, to := h.wallet(1_000), h.stranger()
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(100_000_000)))
	order := h.order(from, h.usdt, to, 1_000_000)

	var err error

	order.MaxFee, err = h.d.EstimateFee(t.Context(), order)
	h.must(err)

	first := h.sign(order)

	status := h.include(first)
	if first.MaxFee.Less(status.Fee) || status.Fee.Less(chain.Units(1_000_000)) ||
		first.MaxFee.Cmp(status.Fee.Add(status.Fee)) > 0 {
		t.Errorf("a transfer may cost %s and cost %s", first.MaxFee, status.Fee)
	}

	// Ten times dearer energy: the same maximum no longer covers it.
	order.MaxFee = first.MaxFee

	h.control("energyfactor", map[string]any{"value": 10})
	_, err = h.d.Build(t.Context(), order)
	wantFault(t, err, fault.Limited, "fee_above_maximum")
	h.control("energyfactor", map[string]any{"value": 1})

	// A transfer that takes more than was foreseen runs out of energy, and costs no more than its maximum.
	tight := h.sign(order)
	h.control("energyfactor", map[string]any{"value": 10})

	if status = h.include(
		tight,
	); !status.Reverted || len(status.Transfers) != 0 ||
		tight.MaxFee.Less(status.Fee) {
		t.Errorf("with ten times the energy the transfer is %+v, it may cost %s", status, tight.MaxFee)
	}

	h.control("energyfactor", map[string]any{"value": 1})

	h.control(
		"stake",
		map[string]any{
			"address": testenv.TronHex(string(from.Address)),
			"energy":  10_000_000,
			"net":     1_000_000,
		},
	)

	if status = h.include(h.sign(order)); status.Reverted || !status.Fee.IsZero() {
		t.Errorf("with staked energy and bandwidth a transfer is %+v", status)
	}
}

// A release of 9 USDT that burns 40 TRX says so before anything is burnt; see also internal/testing/e2e,
// where it is held.
func TestDearSweepIsForeseen(t *testing.T) {
	h := newHarness(
		t, testenv.TronOptions{Parameters: map[string]int64{"getEnergyFee": 420}, EnergyFactor: 7},
	)
	deposit, master := h.party(), h.wallet(1_000)
	h.must(h.Fund(t.Context(), deposit.Address, h.usdt, chain.Units(9_000_000)))
	before := h.balance(master.Address, h.native)
	steps, err := h.d.PlanSweep(t.Context(), chain.SweepRequest{
		Asset:      h.usdt,
		Deposit:    deposit,
		Master:     master,
		FeeAddress: h.stranger(),
		Amount:     chain.Units(9_000_000),
	})
	h.must(err)

	if len(steps) != 2 || steps[0].Kind != chain.StepTopUp || steps[1].Kind != chain.StepSweep {
		t.Fatalf("the plan is %+v", steps)
	}

	cost := steps[0].NetworkFee.Add(steps[1].NetworkFee)
	if cost.Less(chain.Units(40_000_000)) {
		t.Errorf("the plan costs %s, want 40 TRX or more", cost)
	}
	// And it is what is really burnt: played to its end, the release costs what was foreseen or less.
	topUp := h.include(h.sign(steps[0].Order))
	sweep := h.include(h.sign(steps[1].Order))

	burnt := topUp.Fee.Add(sweep.Fee)
	if sweep.Reverted || cost.Less(burnt) || burnt.Less(chain.Units(40_000_000)) {
		t.Errorf("foreseen were %s, burnt are %s (%+v)", cost, burnt, sweep)
	}

	spent := before.Sub(h.balance(master.Address, h.native))
	if left := h.balance(deposit.Address, h.native); spent != burnt.Add(left) {
		t.Errorf(
			"the master wallet spent %s, %s is burnt and %s left at the deposit address",
			spent, burnt, left,
		)
	}
}

// Coin that a contract sends on is seen, with an index of its own; where a node hides it, balances
// still show it.
func TestInternalTransfers(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		t.Run(fmt.Sprintf("hidden %v", hidden), func(t *testing.T) {
			h := newHarness(t, testenv.TronOptions{SolidLag: 3, HideInternal: hidden})
			to := h.wallet(1).Address
			hash, err := h.forward(t.Context(), to, chain.Units(7_000_000), energyLimit)
			h.must(err)
			h.mine(1)

			var got []chain.Transfer

			for _, tr := range h.latestBlock().Transfers {
				if tr.To == to {
					got = append(got, tr)
				}
			}

			if hidden {
				if len(got) != 0 {
					t.Errorf("%+v", got)
				}
			} else if len(got) != 1 || got[0].TxHash != hash || got[0].Index != 1<<20 ||
				got[0].Amount != chain.Units(7_000_000) || got[0].From != chain.Address(h.forwarder) {
				t.Errorf("the internal transfer is %+v", got)
			}

			h.mine(3) // solidified now

			if held := h.balance(to, h.native); held != chain.Units(8_000_000) {
				t.Errorf("the balance is %s, want 8000000", held)
			}
		})
	}
}

// What waits in the pool is in no balance, though the node's account shows it already.
func TestBalanceCountsNoPool(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})

	to := h.wallet(1).Address
	for _, a := range []chain.Asset{h.native, h.usdt} {
		before := h.balance(to, a)
		_, err := h.Pay(t.Context(), to, a, chain.Units(4_000_000))
		h.must(err)

		if got := h.balance(to, a); got != before {
			t.Errorf("%s %s while the payment waits, before it %s", got, a.Symbol, before)
		}

		h.mine(1)

		if got := h.balance(to, a); got != before.Add(chain.Units(4_000_000)) {
			t.Errorf("%s %s in the payment's block, before it %s", got, a.Symbol, before)
		}
	}

	if shown, err := h.Balance(t.Context(), string(to)); err != nil || shown != 5_000_000 {
		t.Errorf("the node shows %d, %v", shown, err)
	}

	_, err := h.Pay(t.Context(), to, h.native, chain.Units(1))
	h.must(err)

	if shown, err := h.Balance(t.Context(), string(to)); err != nil || shown != 5_000_001 {
		t.Errorf(
			"the node's account shows %d, %v while a payment waits: this test proves nothing then",
			shown, err,
		)
	}
}

// A payment with a memo is a payment.
func TestMemoIsCredited(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	to := h.stranger()
	s, err := h.Send(
		t.Context(),
		testenv.TronPayment{PrivateKey: outsider, To: string(to), Amount: 2_000_000, Memo: "order 7 ✓"},
	)
	h.must(err)
	found, err := h.d.Transaction(t.Context(), "0x"+s.TxID)
	h.must(err)

	if !found.Block.IsZero() || len(found.Transfers) != 1 || found.Transfers[0].To != to {
		t.Errorf("waiting: %+v", found)
	}

	h.mine(1)

	if got := h.latestBlock().Transfers; len(got) != 1 || got[0] != found.Transfers[0] {
		t.Errorf("in the block: %+v, waiting it was %+v", got, found.Transfers)
	}
}

// Two equal payments built at the same time are two transactions, and both arrive.
func TestTwoEqualPaymentsInOneSecond(t *testing.T) {
	at := time.Now()
	h := newHarness(t, testenv.TronOptions{}, func(c *tron.Config) { c.Now = func() time.Time { return at } })
	from, to := h.wallet(100), h.wallet(1).Address
	order := h.order(from, h.native, to, 3_000_000)

	one, two := h.sign(order), h.sign(order)
	if one.TxHash == two.TxHash {
		t.Fatalf("both are %s", one.TxHash)
	}

	h.must(h.d.Broadcast(t.Context(), one))
	h.must(h.d.Broadcast(t.Context(), two))
	h.mine(1)

	if got := h.balance(to, h.native); got != chain.Units(7_000_000) {
		t.Errorf("the destination has %s after 1 and twice 3 TRX", got)
	}

	for _, signed := range []chain.Signed{one, two} {
		status, err := h.d.Status(t.Context(), signed)
		if err != nil || status.State != chain.TxIncluded || len(status.Transfers) != 1 ||
			status.Transfers[0].TxHash != signed.TxHash {
			t.Errorf("%s is %+v, %v", signed.TxHash, status, err)
		}
	}
}

// A node of one's own serves its two interfaces at two ports.
func TestTwoInterfacesAtTwoURLs(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 2})
	h.mine(5)
	one, two := newProxy(t, h.TronNode), newProxy(t, h.TronNode)
	only := func(prefix string) func(path string, ask func() answer) answer {
		return func(path string, ask func() answer) answer {
			if !strings.HasPrefix(path, prefix) {
				return answer{status: http.StatusNotFound}
			}

			return ask()
		}
	}
	one.intercept(only("/wallet/"))
	two.intercept(only("/walletsolidity/"))

	d := h.driver(
		t,
		func(c *tron.Config) { c.Nodes, c.Attempts = []tron.Node{{URL: one.URL, SolidityURL: two.URL}}, 1 },
	)
	h.must(d.Check(t.Context()))

	head, err := d.Head(t.Context())
	if err != nil || head.Tip.Height != 5 || head.Final.Height != 3 || two.requests.Load() == 0 {
		t.Errorf("%+v, %v", head, err)
	}

	swapped := h.driver(t, func(c *tron.Config) { c.Nodes, c.Attempts = []tron.Node{{URL: one.URL}}, 1 })
	wantFault(t, swapped.Check(t.Context()), fault.Unavailable, "node_unavailable")
}

func TestPrunedHeightStops(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	h.mine(200)
	h.control("prune", map[string]any{"below": 190})
	_, err := h.d.RefAt(t.Context(), 5)
	wantFault(t, err, fault.Stopped, "node_pruned")
	_, err = h.d.Blocks(t.Context(), 5, 10)
	wantFault(t, err, fault.Stopped, "node_pruned")

	if _, err := h.d.RefAt(t.Context(), 195); err != nil {
		t.Error(err)
	}

	ref := chain.Ref{Height: 10, Hash: h.latestBlock().Hash}
	_, err = h.d.Balances(t.Context(), ref, []chain.Holding{{Address: h.stranger(), AssetID: h.native.ID}})
	wantFault(t, err, fault.Unavailable, "block_too_old")
}

// A whole wallet can be followed through a fork: a release, a top-up and payments, with balances
// right at every block.
func TestBalancesAgreeWithTheNodeAtEveryBlock(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 5})
	from, to := h.wallet(500), h.stranger()
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(50_000_000)))

	type observation struct {
		at   chain.Ref
		coin int64
	}

	var seen []observation

	look := func() {
		head, err := h.d.Head(t.Context())
		h.must(err)
		// nothing waits: the newest state is that of the newest block
		coin, err := h.Balance(t.Context(), string(from.Address))
		h.must(err)

		seen = append(seen, observation{head.Tip, coin})
	}

	for range 6 {
		h.include(h.sign(h.order(from, h.native, to, 3_000_000)))
		look()
		h.include(h.sign(h.order(from, h.usdt, to, 1_000_000)))
		look()
	}

	for _, s := range seen {
		got, err := h.d.Balances(
			t.Context(), s.at, []chain.Holding{{Address: from.Address, AssetID: h.native.ID}},
		)
		h.must(err)

		if got[0] != chain.Units(uint64(s.coin)) {
			t.Errorf("at block %d the balance is %s, the node said %d then", s.at.Height, got[0], s.coin)
		}
	}

	h.must(h.Fork(t.Context(), 2))
	_, err := h.d.Balances(
		context.Background(), seen[len(seen)-1].at,
		[]chain.Holding{{Address: from.Address, AssetID: h.native.ID}},
	)
	wantFault(t, err, fault.Unavailable, "")
}
