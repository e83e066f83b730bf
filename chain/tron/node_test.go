//go:build unix

package tron_test

// What only a node shows and the driver suite does not ask for.

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
	"github.com/seed-8ee7f392/payments/internal/testenv"
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
	b := &harness{chainWithToken: c, t: t, d: c.driver(t, change...), signer: freshSigner(t)}
	b.native, _ = b.d.Network().Native()
	b.usdt, _ = b.d.Network().Asset("USDT")

	return b
}

func (b *harness) must(err error) {
	b.t.Helper()

	if err != nil {
		b.t.Fatal(err)
	}
}

// party returns an address of ours that was not used before.
func (b *harness) party() chain.Party {
	b.t.Helper()
	b.keys++
	ref := chain.KeyRef{Family: chain.Tron, Role: chain.RoleDeposit, Index: b.keys}
	key, err := b.signer.PublicKey(b.t.Context(), ref)
	b.must(err)
	address, err := b.d.DeriveAddress(key)
	b.must(err)

	return chain.Party{Key: ref, Address: address}
}

func (b *harness) stranger() chain.Address {
	b.t.Helper()
	a, err := b.NewAddress(b.t.Context())
	b.must(err)

	return a
}

// wallet is an address of ours with so many TRX.
func (b *harness) wallet(trx uint64) chain.Party {
	b.t.Helper()
	p := b.party()
	b.must(b.Fund(b.t.Context(), p.Address, b.native, chain.Units(trx*1_000_000)))

	return p
}

func (b *harness) order(from chain.Party, a chain.Asset, to chain.Address, sum uint64) chain.Order {
	return chain.Order{
		From:    from,
		Outputs: []chain.Output{{To: to, AssetID: a.ID, Amount: chain.Units(sum)}},
		MaxFee:  chain.Units(1_000_000_000),
	}
}

func (b *harness) sign(order chain.Order) chain.Signed {
	b.t.Helper()
	u, err := b.d.Build(b.t.Context(), order)
	b.must(err)
	key, err := b.signer.PublicKey(b.t.Context(), order.From.Key)
	b.must(err)
	signatures, err := b.signer.Sign(
		b.t.Context(),
		chain.SignRequest{Network: "tron-private", Unsigned: u.Raw, Payloads: u.Payloads},
	)
	b.must(err)
	s, err := b.d.Assemble(order, u, []chain.PublicKey{key}, signatures)
	b.must(err)

	return s
}

func (b *harness) mine(n int) { b.t.Helper(); b.must(b.Mine(b.t.Context(), n)) }

// include sends a transaction and makes a block.
func (b *harness) include(s chain.Signed) chain.TxStatus {
	b.t.Helper()
	b.must(b.d.Broadcast(b.t.Context(), s))
	b.mine(1)
	status, err := b.d.Status(b.t.Context(), s)
	b.must(err)

	if status.State != chain.TxIncluded {
		b.t.Fatalf("a transaction that was sent is %+v", status)
	}

	return status
}

func (b *harness) control(name string, args map[string]any) testenv.TronState {
	b.t.Helper()
	s, err := b.Control(b.t.Context(), name, args)
	b.must(err)

	return s
}

func (b *harness) balance(of chain.Address, a chain.Asset) chain.Amount {
	b.t.Helper()
	head, err := b.d.Head(b.t.Context())
	b.must(err)
	got, err := b.d.Balances(b.t.Context(), head.Tip, []chain.Holding{{Address: of, AssetID: a.ID}})
	b.must(err)

	return got[0]
}

// latestBlock returns the newest block as the scan shows it.
func (b *harness) latestBlock() chain.Block {
	b.t.Helper()
	head, err := b.d.Head(b.t.Context())
	b.must(err)
	blocks, err := b.d.Blocks(b.t.Context(), head.Tip.Height, head.Tip.Height)
	b.must(err)

	return blocks[0]
}

func wantFault(t *testing.T, err, word error, code string) {
	t.Helper()

	if !errors.Is(err, word) || (code != "" && fault.Code(err) != code) {
		t.Errorf("%v (code %q), want %v with code %q", err, fault.Code(err), word, code)
	}
}

func TestCheck(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{})
	b.must(b.d.Check(t.Context()))
	miscounted := b.driver(t, func(c *tron.Config) { c.Network.Assets[1].Decimals = 18 })
	wantFault(t, miscounted.Check(t.Context()), fault.Stopped, "token_mismatch")
	none := b.driver(t, func(c *tron.Config) { c.Network.Assets[1].Contract = b.stranger() })
	wantFault(t, none.Check(t.Context()), fault.Stopped, "token_mismatch")
	mainnet := b.driver(t, func(c *tron.Config) { c.Network = tron.Mainnet })
	wantFault(t, mainnet.Check(t.Context()), fault.Stopped, "chain_id_mismatch")
}

// Every place money can go that is not an ordinary active account.
func TestDestinations(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{})
	from := b.wallet(1_000)
	b.must(b.Fund(t.Context(), from.Address, b.usdt, chain.Units(100_000_000)))
	listed := b.stranger()
	data, err := b.input("setBlackListed", listed, true)
	b.must(err)
	_, err = b.call(t.Context(), b.token, 0, data, energyLimit)
	b.must(err)
	b.mine(1)

	zero := chain.Address("T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb")
	for name, order := range map[string]chain.Order{
		"TRX to a contract":              b.order(from, b.native, chain.Address(b.forwarder), 5_000_000),
		"TRX to a token's contract":      b.order(from, b.native, chain.Address(b.token), 5_000_000),
		"USDT to its own contract":       b.order(from, b.usdt, chain.Address(b.token), 5_000_000),
		"USDT to an address on its list": b.order(from, b.usdt, listed, 5_000_000),
		"TRX to the zero address":        b.order(from, b.native, zero, 5_000_000),
		"USDT to the zero address":       b.order(from, b.usdt, zero, 5_000_000),
		"TRX to oneself":                 b.order(from, b.native, from.Address, 5_000_000),
		"TRX to an address of another form": b.order(
			from, b.native, "0xa614f803b6fd780986a42c78ec9c7f77e6ded13c", 5_000_000,
		),
	} {
		_, err := b.d.Build(t.Context(), order)
		if wantFault(t, err, fault.Invalid, "destination_not_payable"); t.Failed() {
			t.Fatal(name)
		}
	}

	// A contract can hold tokens, and an address that was never active can be paid both.
	toContract := b.sign(b.order(from, b.usdt, chain.Address(b.forwarder), 5_000_000))
	inactive := b.stranger()

	coin, tokens := b.sign(
		b.order(from, b.native, inactive, 5_000_000),
	), b.sign(
		b.order(from, b.usdt, inactive, 7_000_000),
	)
	for _, signed := range []chain.Signed{toContract, coin, tokens} {
		if status := b.include(signed); status.Reverted {
			t.Errorf("%+v", status)
		}
	}

	if got := b.balance(chain.Address(b.forwarder), b.usdt); got != chain.Units(5_000_000) {
		t.Errorf("the contract holds %s", got)
	}

	if c, u := b.balance(
		inactive, b.native,
	), b.balance(
		inactive, b.usdt,
	); c != chain.Units(5_000_000) ||
		u != chain.Units(7_000_000) {
		t.Errorf("%s and %s arrived at the address that was never active", c, u)
	}
}

// Activating an account costs 1 TRX and 0.1 TRX in place of bandwidth, and both are foreseen.
func TestActivationIsCounted(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{})
	from, to := b.wallet(100), b.stranger()
	order := b.order(from, b.native, to, 5_000_000)
	order.MaxFee = chain.Units(1_099_999)
	_, err := b.d.Build(t.Context(), order)
	wantFault(t, err, fault.Limited, "fee_above_maximum")
	order.MaxFee, err = b.d.EstimateFee(t.Context(), order)
	b.must(err)

	if order.MaxFee != chain.Units(1_650_000) {
		t.Errorf("the estimate is %s, want one and a half of 1100000", order.MaxFee)
	}

	if status := b.include(b.sign(order)); status.Fee != chain.Units(1_100_000) {
		t.Errorf("the first payment cost %s, want 1100000", status.Fee)
	}

	if status := b.include(b.sign(order)); !status.Fee.IsZero() {
		t.Errorf("the second payment cost %s though the day's allowance covers it", status.Fee)
	}

	poor := b.wallet(3)
	_, err = b.d.Build(t.Context(), b.order(poor, b.native, b.stranger(), 2_000_000))
	wantFault(t, err, fault.State, "insufficient_funds")
}

// Where the day's allowance covers the bandwidth a sweep costs nothing, and moves all but one sun.
func TestFreeBandwidth(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{})
	from, to := b.wallet(10), b.wallet(1).Address
	order := b.order(from, b.native, to, 10_000_000)
	order.SubtractFee = true

	signed := b.sign(order)
	if signed.Outputs[0].Amount != chain.Units(9_999_999) {
		t.Errorf("the sweep moves %s of 10000000", signed.Outputs[0].Amount)
	}

	if signed.MaxFee.Less(chain.Units(200_000)) {
		t.Errorf(
			"the sweep may cost %s at most, though the allowance can be used up before it",
			signed.MaxFee,
		)
	}

	if status := b.include(signed); !status.Fee.IsZero() || b.balance(from.Address, b.native) != chain.Units(1) {
		t.Errorf("it cost %s, %s is left", status.Fee, b.balance(from.Address, b.native))
	}
}

// The fee of a sweep whose amount takes a byte less because of the fee is found out.
func TestSweepIsExactAtEverySize(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{Parameters: map[string]int64{"getFreeNetLimit": 0}})

	to := b.wallet(1).Address
	for _, sum := range []uint64{
		1<<21 - 1,
		1 << 21,
		1<<21 + 267_000,
		1<<21 + 268_000,
		1<<21 + 300_000,
		1 << 28,
		1<<28 + 268_000,
	} {
		from := b.party()
		b.must(b.Fund(t.Context(), from.Address, b.native, chain.Units(sum)))
		order := b.order(from, b.native, to, sum)
		order.SubtractFee = true
		signed := b.sign(order)
		status := b.include(signed)

		left := b.balance(from.Address, b.native)
		if got := signed.Outputs[0].Amount.Add(status.Fee).
			Add(left); got != chain.Units(sum) ||
			chain.Units(1_000).Less(left) {
			t.Errorf(
				"of %d sun %s arrived, the fee is %s and %s is left",
				sum, signed.Outputs[0].Amount, status.Fee, left,
			)
		}
	}
}

// Energy is simulated: its price is in the estimate, stake takes it away, and the fee limit bounds it.
func TestEnergy(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{Parameters: map[string]int64{"getFreeNetLimit": 0}})
	from, to := b.wallet(1_000), b.stranger()
	b.must(b.Fund(t.Context(), from.Address, b.usdt, chain.Units(100_000_000)))
	order := b.order(from, b.usdt, to, 1_000_000)
	first := b.sign(order)

	status := b.include(first)
	if first.MaxFee.Less(status.Fee) || status.Fee.Less(chain.Units(1_000_000)) ||
		first.MaxFee.Cmp(status.Fee.Add(status.Fee)) > 0 {
		t.Errorf("a transfer may cost %s and cost %s", first.MaxFee, status.Fee)
	}

	// Ten times dearer energy: the same maximum no longer covers it.
	order.MaxFee = first.MaxFee

	b.control("energyfactor", map[string]any{"value": 10})
	_, err := b.d.Build(t.Context(), order)
	wantFault(t, err, fault.Limited, "fee_above_maximum")
	b.control("energyfactor", map[string]any{"value": 1})

	// A transfer that takes more than was foreseen runs out of energy, and costs no more than its maximum.
	tight := b.sign(order)
	b.control("energyfactor", map[string]any{"value": 10})

	if status = b.include(tight); !status.Reverted || len(status.Transfers) != 0 || tight.MaxFee.Less(status.Fee) {
		t.Errorf("with ten times the energy the transfer is %+v, it may cost %s", status, tight.MaxFee)
	}

	b.control("energyfactor", map[string]any{"value": 1})

	b.control(
		"stake",
		map[string]any{
			"address": testenv.TronHex(string(from.Address)),
			"energy":  10_000_000,
			"net":     1_000_000,
		},
	)

	if status = b.include(b.sign(order)); status.Reverted || !status.Fee.IsZero() {
		t.Errorf("with staked energy and bandwidth a transfer is %+v", status)
	}
}

// A release of 9 USDT that burns 40 TRX says so before anything is burnt; see also internal/e2e,
// where it is held.
func TestDearSweepIsForeseen(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{Parameters: map[string]int64{"getEnergyFee": 420}, EnergyFactor: 7})
	deposit, master := b.party(), b.wallet(1_000)
	b.must(b.Fund(t.Context(), deposit.Address, b.usdt, chain.Units(9_000_000)))
	before := b.balance(master.Address, b.native)
	steps, err := b.d.PlanRelease(t.Context(), chain.Release{
		Asset:      b.usdt,
		Deposit:    deposit,
		Master:     master,
		FeeAddress: b.stranger(),
		Amount:     chain.Units(9_000_000),
	})
	b.must(err)

	if len(steps) != 2 || steps[0].Kind != chain.StepTopUp || steps[1].Kind != chain.StepSweep {
		t.Fatalf("the plan is %+v", steps)
	}

	cost := steps[0].NetworkFee.Add(steps[1].NetworkFee)
	if cost.Less(chain.Units(40_000_000)) {
		t.Errorf("the plan costs %s, want 40 TRX or more", cost)
	}
	// And it is what is really burnt: played to its end, the release costs what was foreseen or less.
	topUp := b.include(b.sign(steps[0].Order))
	sweep := b.include(b.sign(steps[1].Order))

	burnt := topUp.Fee.Add(sweep.Fee)
	if sweep.Reverted || cost.Less(burnt) || burnt.Less(chain.Units(40_000_000)) {
		t.Errorf("foreseen were %s, burnt are %s (%+v)", cost, burnt, sweep)
	}

	spent := before.Sub(b.balance(master.Address, b.native))
	if left := b.balance(deposit.Address, b.native); spent != burnt.Add(left) {
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
			b := newHarness(t, testenv.TronOptions{SolidLag: 3, HideInternal: hidden})
			to := b.wallet(1).Address
			hash, err := b.forward(t.Context(), to, chain.Units(7_000_000), energyLimit)
			b.must(err)
			b.mine(1)

			var got []chain.Transfer

			for _, tr := range b.latestBlock().Transfers {
				if tr.To == to {
					got = append(got, tr)
				}
			}

			if hidden {
				if len(got) != 0 {
					t.Errorf("%+v", got)
				}
			} else if len(got) != 1 || got[0].TxHash != hash || got[0].Index != 1<<20 ||
				got[0].Amount != chain.Units(7_000_000) || got[0].From != chain.Address(b.forwarder) {
				t.Errorf("the internal transfer is %+v", got)
			}

			b.mine(3) // solidified now

			if held := b.balance(to, b.native); held != chain.Units(8_000_000) {
				t.Errorf("the balance is %s, want 8000000", held)
			}
		})
	}
}

// What waits in the pool is in no balance, though the node's account shows it already.
func TestBalanceCountsNoPool(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{})

	to := b.wallet(1).Address
	for _, a := range []chain.Asset{b.native, b.usdt} {
		before := b.balance(to, a)
		_, err := b.Pay(t.Context(), to, a, chain.Units(4_000_000))
		b.must(err)

		if got := b.balance(to, a); got != before {
			t.Errorf("%s %s while the payment waits, before it %s", got, a.Symbol, before)
		}

		b.mine(1)

		if got := b.balance(to, a); got != before.Add(chain.Units(4_000_000)) {
			t.Errorf("%s %s in the payment's block, before it %s", got, a.Symbol, before)
		}
	}

	if shown, err := b.Balance(t.Context(), string(to)); err != nil || shown != 5_000_000 {
		t.Errorf("the node shows %d, %v", shown, err)
	}

	_, err := b.Pay(t.Context(), to, b.native, chain.Units(1))
	b.must(err)

	if shown, err := b.Balance(t.Context(), string(to)); err != nil || shown != 5_000_001 {
		t.Errorf(
			"the node's account shows %d, %v while a payment waits: this test proves nothing then",
			shown, err,
		)
	}
}

// A payment with a memo is a payment.
func TestMemoIsCredited(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{})
	to := b.stranger()
	s, err := b.Send(
		t.Context(),
		testenv.TronPayment{PrivateKey: outsider, To: string(to), Amount: 2_000_000, Memo: "order 7 ✓"},
	)
	b.must(err)
	found, err := b.d.Transaction(t.Context(), "0x"+s.TxID)
	b.must(err)

	if !found.Block.IsZero() || len(found.Transfers) != 1 || found.Transfers[0].To != to {
		t.Errorf("waiting: %+v", found)
	}

	b.mine(1)

	if got := b.latestBlock().Transfers; len(got) != 1 || got[0] != found.Transfers[0] {
		t.Errorf("in the block: %+v, waiting it was %+v", got, found.Transfers)
	}
}

// Two equal payments built at the same time are two transactions, and both arrive.
func TestTwoEqualPaymentsInOneSecond(t *testing.T) {
	at := time.Now()
	b := newHarness(t, testenv.TronOptions{}, func(c *tron.Config) { c.Now = func() time.Time { return at } })
	from, to := b.wallet(100), b.wallet(1).Address
	order := b.order(from, b.native, to, 3_000_000)

	one, two := b.sign(order), b.sign(order)
	if one.TxHash == two.TxHash {
		t.Fatalf("both are %s", one.TxHash)
	}

	b.must(b.d.Broadcast(t.Context(), one))
	b.must(b.d.Broadcast(t.Context(), two))
	b.mine(1)

	if got := b.balance(to, b.native); got != chain.Units(7_000_000) {
		t.Errorf("the destination has %s after 1 and twice 3 TRX", got)
	}

	for _, signed := range []chain.Signed{one, two} {
		status, err := b.d.Status(t.Context(), signed)
		if err != nil || status.State != chain.TxIncluded || len(status.Transfers) != 1 ||
			status.Transfers[0].TxHash != signed.TxHash {
			t.Errorf("%s is %+v, %v", signed.TxHash, status, err)
		}
	}
}

// A node of one's own serves its two interfaces at two ports.
func TestTwoInterfacesAtTwoURLs(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{SolidLag: 2})
	b.mine(5)
	one, two := newProxy(t, b.TronNode), newProxy(t, b.TronNode)
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

	d := b.driver(
		t,
		func(c *tron.Config) { c.Nodes, c.Attempts = []tron.Node{{URL: one.URL, SolidityURL: two.URL}}, 1 },
	)
	b.must(d.Check(t.Context()))

	head, err := d.Head(t.Context())
	if err != nil || head.Tip.Height != 5 || head.Final.Height != 3 || two.requests.Load() == 0 {
		t.Errorf("%+v, %v", head, err)
	}

	swapped := b.driver(t, func(c *tron.Config) { c.Nodes, c.Attempts = []tron.Node{{URL: one.URL}}, 1 })
	wantFault(t, swapped.Check(t.Context()), fault.Unavailable, "node_unavailable")
}

func TestPrunedHeightStops(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{})
	b.mine(200)
	b.control("prune", map[string]any{"below": 190})
	_, err := b.d.RefAt(t.Context(), 5)
	wantFault(t, err, fault.Stopped, "node_pruned")
	_, err = b.d.Blocks(t.Context(), 5, 10)
	wantFault(t, err, fault.Stopped, "node_pruned")

	if _, err := b.d.RefAt(t.Context(), 195); err != nil {
		t.Error(err)
	}

	ref := chain.Ref{Height: 10, Hash: b.latestBlock().Hash}
	_, err = b.d.Balances(t.Context(), ref, []chain.Holding{{Address: b.stranger(), AssetID: b.native.ID}})
	wantFault(t, err, fault.Unavailable, "block_too_old")
}

// A whole wallet can be followed through a fork: a release, a top-up and payments, with balances
// right at every block.
func TestBalancesAgreeWithTheNodeAtEveryBlock(t *testing.T) {
	b := newHarness(t, testenv.TronOptions{SolidLag: 5})
	from, to := b.wallet(500), b.stranger()
	b.must(b.Fund(t.Context(), from.Address, b.usdt, chain.Units(50_000_000)))

	type sight struct {
		at   chain.Ref
		coin int64
	}

	var seen []sight

	look := func() {
		head, err := b.d.Head(t.Context())
		b.must(err)
		// nothing waits: the newest state is that of the newest block
		coin, err := b.Balance(t.Context(), string(from.Address))
		b.must(err)

		seen = append(seen, sight{head.Tip, coin})
	}

	for range 6 {
		b.include(b.sign(b.order(from, b.native, to, 3_000_000)))
		look()
		b.include(b.sign(b.order(from, b.usdt, to, 1_000_000)))
		look()
	}

	for _, s := range seen {
		got, err := b.d.Balances(
			t.Context(), s.at, []chain.Holding{{Address: from.Address, AssetID: b.native.ID}},
		)
		b.must(err)

		if got[0] != chain.Units(uint64(s.coin)) {
			t.Errorf("at block %d the balance is %s, the node said %d then", s.at.Height, got[0], s.coin)
		}
	}

	b.must(b.Fork(t.Context(), 2))
	_, err := b.d.Balances(
		context.Background(), seen[len(seen)-1].at,
		[]chain.Holding{{Address: from.Address, AssetID: b.native.ID}},
	)
	wantFault(t, err, fault.Unavailable, "")
}
