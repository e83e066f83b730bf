//go:build unix

package evm_test

// Behaviour of real nodes that the driver suite does not cover.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// fixture is a driver on a real node, with a signer.
type fixture struct {
	*controls
	t      *testing.T
	driver *evm.Driver
	signer chain.Signer
	native chain.Asset
	token  chain.Asset
}

func newFixture(t *testing.T, change ...func(*evm.Config)) *fixture {
	n := usdtNode(t)
	b := &fixture{controls: newControls(t, n), t: t, driver: n.driver(t, change...), signer: freshSigner(t)}
	b.native, _ = b.driver.Network().Native()
	b.token, _ = b.driver.Network().Asset("USDT")

	return b
}

func (b *fixture) must(err error) {
	b.t.Helper()

	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *fixture) party(index uint32) chain.Party {
	b.t.Helper()

	ref := chain.KeyRef{Family: chain.EVM, Role: chain.RoleDeposit, Index: index}
	key, err := b.signer.PublicKey(b.t.Context(), ref)
	b.must(err)
	address, err := b.driver.DeriveAddress(key)
	b.must(err)

	return chain.Party{Key: ref, Address: address}
}

func (b *fixture) sign(order chain.Order) chain.Signed {
	b.t.Helper()
	unsigned, err := b.driver.Build(b.t.Context(), order)
	b.must(err)
	key, err := b.signer.PublicKey(b.t.Context(), order.From.Key)
	b.must(err)

	request := chain.SignRequest{Network: "local", Unsigned: unsigned.Raw, Payloads: unsigned.Payloads}
	signatures, err := b.signer.Sign(b.t.Context(), request)
	b.must(err)
	signed, err := b.driver.Assemble(order, unsigned, []chain.PublicKey{key}, signatures)
	b.must(err)

	return signed
}

// include broadcasts a transaction and returns its status once a block includes it.
func (b *fixture) include(signed chain.Signed) chain.TxStatus {
	b.t.Helper()
	b.must(b.driver.Broadcast(b.t.Context(), signed))
	b.must(b.Mine(b.t.Context(), 1))

	var st chain.TxStatus

	b.eventually(func() (err error) {
		if st, err = b.driver.Status(b.t.Context(), signed); err == nil && st.State != chain.TxIncluded {
			err = fmt.Errorf("it is %s", st.State)
		}

		return err
	})

	return st
}

func (b *fixture) eventually(condition func() error) {
	b.t.Helper()

	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()

	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()

	for {
		err := condition()
		if err == nil {
			return
		}

		select {
		case <-ctx.Done():
			b.t.Fatal(err)
		case <-tick.C:
		}
	}
}

func (b *fixture) balance(of chain.Address, a chain.Asset) chain.Amount {
	b.t.Helper()
	head, err := b.driver.Head(b.t.Context())
	b.must(err)
	got, err := b.driver.Balances(b.t.Context(), head.Tip, []chain.Holding{{Address: of, AssetID: a.ID}})
	b.must(err)

	return got[0]
}

func TestRealCheck(t *testing.T) {
	b := newFixture(t)
	b.must(b.driver.Check(t.Context()))
	wrong := b.node.driver(t, func(c *evm.Config) { c.Network.ChainID = 1 })
	wantFault(t, wrong.Check(t.Context()), fault.Stopped, "chain_id_mismatch")
	miscounted := b.node.driver(t, func(c *evm.Config) { c.Network.Assets[1].Decimals = 18 })
	wantFault(t, miscounted.Check(t.Context()), fault.Stopped, "token_mismatch")
	nowhere := b.node.driver(t, func(c *evm.Config) {
		c.Network.Assets[1].Contract = chain.Address(newRandomAddress().Hex())
	})
	wantFault(t, nowhere.Check(t.Context()), fault.Stopped, "token_mismatch")
}

// A fee-on-transfer token delivers less than the input says (Ethplorer #224): what arrived counts.
func TestRealFeeOnTransferCountsWhatArrived(t *testing.T) {
	b := newFixture(t)
	from, to := b.party(1), b.party(2)
	b.must(b.Fund(t.Context(), from.Address, b.native, chain.Pow10(18)))
	b.must(b.Fund(t.Context(), from.Address, b.token, chain.Units(1_000_000)))
	input, err := b.abi.Pack("setFee", big.NewInt(100))
	b.must(err)
	b.must(b.call(t.Context(), new(common.Hash), "eth_sendTransaction", map[string]any{
		"from": testenv.WellKnownDevAccounts[0].Address,
		"to":   b.node.token,
		"data": hexutil.Bytes(input),
	}))
	b.must(b.Mine(t.Context(), 1))
	st := b.include(b.sign(chain.Order{
		From:    from,
		Outputs: []chain.Output{{To: to.Address, AssetID: b.token.ID, Amount: chain.Units(1_000_000)}},
		MaxFee:  chain.Pow10(17),
	}))

	var arrived chain.Amount

	for _, tr := range st.Transfers {
		if tr.To == to.Address {
			arrived = arrived.Add(tr.Amount)
		}
	}

	if want := chain.Units(990_000); arrived != want || b.balance(to.Address, b.token) != want {
		t.Errorf("%s by log, %s by balance, want %s", arrived, b.balance(to.Address, b.token), want)
	}
}

// A cancellation sends nothing to oneself at the nonce and replaces what is pending there.
func TestRealCancellation(t *testing.T) {
	b := newFixture(t)
	from := b.party(1)
	b.must(b.Fund(t.Context(), from.Address, b.native, chain.Pow10(18)))
	order := chain.Order{
		From: from,
		Outputs: []chain.Output{
			{To: chain.Address(newRandomAddress().Hex()), AssetID: b.native.ID, Amount: chain.Units(5)},
		},
		MaxFee: chain.Pow10(17),
	}
	first := b.sign(order)
	b.must(b.driver.Broadcast(t.Context(), first))
	order.Replaces, order.Outputs = &first, []chain.Output{{To: from.Address, AssetID: b.native.ID}}
	cancel := b.sign(order)

	st := b.include(cancel)
	if len(st.Transfers) != 0 || b.balance(from.Address, b.native) != chain.Pow10(18).Sub(st.Fee) {
		t.Errorf("%+v, %s left", st, b.balance(from.Address, b.native))
	}

	b.must(b.Mine(t.Context(), 1)) // final: 2 confirmations

	if st, err := b.driver.Status(t.Context(), first); err != nil || st.State != chain.TxUnknown {
		t.Errorf("the displaced transaction is %+v, %v", st, err)
	}

	blocks, err := b.driver.Blocks(t.Context(), st.Block.Height, st.Block.Height)
	b.must(err)

	used := chain.Spend{Sender: from.Address, Nonce: first.Nonce, By: cancel.TxHash}
	if !slices.Contains(blocks[0].Spent, used) || blocks[0].Unverified != "" {
		t.Errorf("the block proves %+v, want %+v; %s", blocks[0].Spent, used, blocks[0].Unverified)
	}
}

// A native release leaves the amount reserved for the L1 data fee; the amounts still balance.
func TestRealReleaseWithL1Fee(t *testing.T) {
	oracle := newRandomAddress()
	b := newFixture(t, func(c *evm.Config) { c.L1GasPriceOracle = chain.Address(oracle.Hex()) })
	// PUSH32 10^12, PUSH1 0 MSTORE, PUSH1 32 PUSH1 0 RETURN
	word := chain.Pow10(12).Bytes32()
	code := append(append([]byte{0x7f}, word[:]...), 0x60, 0, 0x52, 0x60, 32, 0x60, 0, 0xf3)
	b.must(b.call(t.Context(), nil, "anvil_setCode", oracle, hexutil.Bytes(code)))
	b.must(b.Mine(t.Context(), 1))
	deposit, master := b.party(1), b.party(2)
	gross := chain.Pow10(17).Add(chain.Units(7))
	b.must(b.Fund(t.Context(), deposit.Address, b.native, gross))

	request := chain.SweepRequest{Asset: b.native, Deposit: deposit, Master: master, Amount: gross}
	steps, err := b.driver.PlanSweep(t.Context(), request)
	b.must(err)

	if len(steps) != 1 {
		t.Fatalf("%+v", steps)
	}

	signed := b.sign(steps[0].Order)
	st := b.include(signed)

	left, swept := b.balance(deposit.Address, b.native), b.balance(master.Address, b.native)
	if want := chain.Pow10(12).Mul(5).Share(chain.Units(1), chain.Units(4)); left != want {
		t.Errorf("%s left, want the %s set aside for the L1 data fee", left, want)
	}

	if swept.Add(st.Fee).Add(left) != gross || swept != signed.Outputs[0].Amount {
		t.Errorf("gross %s, swept %s, fee %s, left %s", gross, swept, st.Fee, left)
	}
}

// A second top-up is planned only if prices rose beyond the first one. The sweep then stays within
// the balance.
func TestRealTokenReleaseAfterPricesRose(t *testing.T) {
	b := newFixture(t)
	deposit, master := b.party(1), b.party(2)
	b.must(b.Fund(t.Context(), deposit.Address, b.token, chain.Units(5_000_000)))
	release := chain.SweepRequest{
		Asset:      b.token,
		Deposit:    deposit,
		Master:     master,
		Amount:     chain.Units(5_000_000),
		FeeAddress: chain.Address(newRandomAddress().Hex()),
	}
	baseFee := func(gwei uint64) {
		b.must(
			b.call(t.Context(), nil, "anvil_setNextBlockBaseFeePerGas", hexutil.Uint64(gwei*1_000_000_000)),
		)
		b.must(b.Mine(t.Context(), 1))
	}
	baseFee(1)

	steps, err := b.driver.PlanSweep(t.Context(), release) // planned though the master wallet is empty
	b.must(err)

	if len(steps) != 2 || steps[0].Kind != chain.StepTopUp || steps[1].Kind != chain.StepSweep {
		t.Fatalf("%+v", steps)
	}

	gas := steps[0].Order.Outputs[0].Amount
	if gas != steps[1].Order.MaxFee {
		t.Errorf("topped up with %s for a sweep of up to %s", gas, steps[1].Order.MaxFee)
	}

	b.must(b.Fund(t.Context(), deposit.Address, b.native, gas))

	release.Done = []chain.StepKind{chain.StepTopUp}

	baseFee(8) // the sweep would cost twice what it was given

	steps, err = b.driver.PlanSweep(t.Context(), release)
	b.must(err)

	if len(steps) != 2 || steps[0].Kind != chain.StepTopUp ||
		steps[0].Order.Outputs[0].Amount != steps[1].Order.MaxFee.Sub(gas) {
		t.Fatalf("%+v, want a second top-up", steps)
	}

	baseFee(2)

	steps, err = b.driver.PlanSweep(t.Context(), release)
	b.must(err)

	if len(steps) != 1 || steps[0].Order.MaxFee != gas {
		t.Fatalf("%+v, want a sweep of up to %s", steps, gas)
	}

	st := b.include(b.sign(steps[0].Order))

	got := b.balance(master.Address, b.token)
	if got != release.Amount || b.balance(deposit.Address, b.native) != gas.Sub(st.Fee) {
		t.Errorf(
			"%s arrived, %s of the gas is left after a fee of %s",
			got, b.balance(deposit.Address, b.native), st.Fee,
		)
	}
}

func TestRealReleaseThatCannotBe(t *testing.T) {
	b := newFixture(t)
	deposit, master := b.party(1), b.party(2)
	release := chain.SweepRequest{
		Asset:      b.native,
		Deposit:    deposit,
		Master:     master,
		Amount:     chain.Pow10(17),
		FeeAddress: chain.Address(newRandomAddress().Hex()),
	}
	_, err := b.driver.PlanSweep(t.Context(), release)
	wantFault(t, err, fault.State, "funds_missing")
	b.must(b.Fund(t.Context(), deposit.Address, b.native, chain.Pow10(17)))
	release.Fee = chain.Pow10(17)
	_, err = b.driver.PlanSweep(t.Context(), release)
	wantFault(t, err, fault.State, "uneconomic")

	release.Fee, release.FeeAddress = chain.Pow10(14), ""
	_, err = b.driver.PlanSweep(t.Context(), release)
	wantFault(t, err, fault.Invalid, "not_releasable")

	release.FeeAddress = chain.Address(newRandomAddress().Hex())

	b.must(b.Freeze(t.Context(), master.Address, b.native)) // a contract that refuses coin
	b.must(b.Mine(t.Context(), 1))
	_, err = b.driver.PlanSweep(t.Context(), release)
	wantFault(t, err, fault.Invalid, "not_releasable")

	release.Asset, release.Amount, release.Fee = b.token, chain.Units(100), chain.Amount{}
	_, err = b.driver.PlanSweep(t.Context(), release)
	wantFault(t, err, fault.State, "funds_missing")
	b.must(b.Fund(t.Context(), deposit.Address, b.token, chain.Units(100)))
	input, err := b.abi.Pack("setBlackListed", common.HexToAddress(string(deposit.Address)), true)
	b.must(err)
	b.must(b.call(t.Context(), new(common.Hash), "eth_sendTransaction", map[string]any{
		"from": testenv.WellKnownDevAccounts[0].Address,
		"to":   b.node.token,
		"data": hexutil.Bytes(input),
	}))
	b.must(b.Mine(t.Context(), 1))
	_, err = b.driver.PlanSweep(t.Context(), release)
	wantFault(t, err, fault.Invalid, "not_releasable")
}

// The preferred of two nodes stops in the middle of a scan.
func TestRealFailover(t *testing.T) {
	b := newFixture(t)
	backup := b.url
	first := testenv.Anvil(t, testenv.AnvilOptions{Args: []string{"--no-mining"}})
	driver, err := evm.NewDriver(evm.Config{
		Network: evm.Local(testenv.DefaultChainID, b.asset),
		RPCs:    []string{first.URL, backup},
	})
	b.must(err)

	if _, err := driver.Head(t.Context()); err != nil {
		t.Fatal(err)
	}

	first.Kill()

	blocks, err := driver.Blocks(t.Context(), 0, 5)
	if err != nil || len(blocks) != 6 {
		t.Errorf("%d blocks, %v", len(blocks), err)
	}

	if _, err := driver.Transaction(t.Context(), common.MaxHash.Hex()); !errors.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// Blocks of a real node verify, with every kind of transaction that it takes.
func TestRealBlocksVerify(t *testing.T) {
	b := newFixture(t)
	to := newRandomAddress()

	for _, fields := range []map[string]any{
		{"type": "0x0", "gasPrice": "0x174876e800"},
		{
			"type":     "0x1",
			"gasPrice": "0x174876e800",
			"accessList": []any{
				map[string]any{"address": to, "storageKeys": []common.Hash{{1}}},
			},
		},
		{"type": "0x2", "maxFeePerGas": "0x174876e800", "maxPriorityFeePerGas": "0x1"},
		{"type": "0x2", "to": nil, "data": "0x6000"}, // creates a contract
	} {
		tx := map[string]any{
			"from":  testenv.WellKnownDevAccounts[0].Address,
			"to":    to,
			"value": "0x5",
			"gas":   "0x30d40",
		}
		maps.Copy(tx, fields)
		b.must(b.call(t.Context(), new(common.Hash), "eth_sendTransaction", tx))
	}

	_, err := b.PayFailing(t.Context(), chain.Address(to.Hex()), b.token, chain.Units(1))
	b.must(err)
	b.must(b.Mine(t.Context(), 1))
	head, err := b.driver.Head(t.Context())
	b.must(err)

	transfers, spent, failed := 0, 0, 0

	for next := uint64(0); next <= head.Tip.Height; {
		blocks, err := b.driver.Blocks(t.Context(), next, head.Tip.Height)
		b.must(err)

		for _, block := range blocks {
			if block.Unverified != "" {
				t.Errorf("block %d: %s", block.Height, block.Unverified)
			}

			for _, transfer := range block.Transfers {
				if transfer.To == chain.Address(to.Hex()) {
					transfers++
				}
			}

			for _, spend := range block.Spent {
				spent++

				if spend.Failed {
					failed++
				}
			}
		}

		next += uint64(len(blocks))
	}

	if transfers != 3 || failed != 1 || spent < 5 {
		t.Errorf("%d transfers, %d transactions, %d of them failed", transfers, spent, failed)
	}
}
