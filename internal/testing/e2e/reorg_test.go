package e2e

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// miner drives a node that mines on demand.
type miner struct {
	t      *testing.T
	client *rpc.Client
}

func (m miner) call(method string, args ...any) {
	m.t.Helper()

	if err := m.client.CallContext(m.t.Context(), nil, method, args...); err != nil {
		m.t.Fatalf("%s: %v", method, err)
	}
}

func (m miner) mine(n int) { m.t.Helper(); m.call("anvil_mine", fmt.Sprintf("0x%x", n)) }

// signedNative returns a signed transfer of ether that is not sent yet.
func (p *payer) signedNative(to chain.Address, v chain.Amount) *types.Transaction {
	p.t.Helper()

	nonce, err := p.client.NonceAt(p.t.Context(), p.address, nil)
	if err != nil {
		p.t.Fatal(err)
	}

	receiver := common.HexToAddress(string(to))

	tx, err := types.SignNewTx(p.key, types.LatestSignerForChainID(p.chainID), &types.DynamicFeeTx{
		ChainID:   p.chainID,
		Nonce:     nonce,
		To:        &receiver,
		Value:     v.Big(),
		Gas:       21_000,
		GasTipCap: big.NewInt(1_000_000_000),
		GasFeeCap: big.NewInt(100_000_000_000),
	})
	if err != nil {
		p.t.Fatal(err)
	}

	return tx
}

func (p *payer) send(tx *types.Transaction) {
	p.t.Helper()

	if err := p.client.SendTransaction(p.t.Context(), tx); err != nil {
		p.t.Fatal(err)
	}
}

// reorgStage starts an anvil that mines on demand and a service on it under the given rule.
func reorgStage(t *testing.T, rule chain.Rule, epoch uint64) (*service, *payer, miner, string) {
	t.Helper()
	node := testenv.Anvil(t, testenv.AnvilOptions{SlotsInAnEpoch: epoch, Args: []string{"--no-mining"}})
	p := newPayer(t, node.URL, node.ChainID)

	client, err := rpc.DialContext(t.Context(), node.URL)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(client.Close)
	m := miner{t, client}
	m.mine(10)

	network := evm.Local(node.ChainID)
	network.Rule = rule

	driver, err := evm.New(evm.Config{Network: network, RPC: node.URL})
	if err != nil {
		t.Fatal(err)
	}

	s := start(t, driver, common.HexToAddress(feeAddress).Hex())

	return s, p, m, network.Slug
}

func (p *payer) tip() uint64 {
	p.t.Helper()

	n, err := p.client.BlockNumber(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}

	return n
}

// A payment that a reorganisation takes out of the chain after it paid an invoice takes the invoice
// back; put in again it is the same payment, pays again, and is settled once.
func TestReorganisationOnAnvil(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	s, p, m, slug := reorgStage(t, chain.RuleConfirmations, 0)
	inv := s.order("100", "ETH", slug)
	due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address
	tx := p.signedNative(to, due)
	p.send(tx)
	m.mine(1)

	paidIn := p.tip()

	s.await(inv.ID, "paid", func(v invoiceView) bool {
		if v.Status != "paid" && p.tip() < paidIn+2 {
			m.mine(1)
		}

		return v.Status == "paid"
	})
	first := s.payments(inv.ID)
	depth := max(p.tip()-paidIn+1, 3)
	m.call("anvil_reorg", depth, []any{})
	m.mine(2)
	s.await(inv.ID, "no longer paid", func(v invoiceView) bool { return v.Status == "open" })

	lost := s.payments(inv.ID)
	if len(lost) != 1 || lost[0].Status != "orphaned" || lost[0].ID != first[0].ID {
		t.Fatalf("after the reorganisation the payments are %+v, before it %+v", lost, first)
	}

	if !s.happened("invoice.payment_reversed") || !s.happened("payment.orphaned") {
		t.Error("nobody was told of the reversal")
	}

	p.send(tx)
	m.mine(1)
	s.await(inv.ID, "paid again", func(v invoiceView) bool {
		if v.Status != "paid" {
			m.mine(1)
		}

		return v.Status == "paid"
	})

	var back []paymentView

	eventually(t, "the settlement is released", func() (bool, string) {
		m.mine(1)

		back = s.payments(inv.ID)

		return len(back) == 1 && back[0].Settlement != nil &&
				back[0].Settlement.Status == "released", fmt.Sprintf(
				"%+v", back,
			)
	})

	if back[0].ID != first[0].ID {
		t.Errorf("the payment came back as %s, it was %s", back[0].ID, first[0].ID)
	}

	set := back[0].Settlement

	master, err := internal.Of(s.engine).Transactions.MasterWallet(t.Context(), slug, s.account.Index)
	if err != nil {
		t.Fatal(err)
	}

	net, fee := amount(t, set.NetReleased), amount(t, set.FeePaid)
	if got := p.balance(master.Address); got != net {
		t.Errorf("the master wallet holds %s, %s were released", got, net)
	}

	if got := p.balance(chain.Address(common.HexToAddress(feeAddress).Hex())); got != fee {
		t.Errorf("the fee address holds %s, %s were paid", got, fee)
	}

	if due != net.Add(fee).Add(amount(t, set.NetworkFees)) || !p.balance(to).IsZero() {
		t.Errorf(
			"due %s = net %s + fee %s + network fees %s does not balance, %s is left",
			due, net, fee, set.NetworkFees, p.balance(to),
		)
	}
}

// Under the finalized rule the same reorganisation breaks what the node itself had called final:
// the network stops, and says at which height.
func TestReorganisationBelowFinalityOnAnvil(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	s, p, m, slug := reorgStage(t, chain.RuleFinalized, 1)
	m.mine(3)

	inv := s.order("100", "ETH", slug)
	p.send(p.signedNative(inv.Options[0].Address, amount(t, inv.Options[0].AmountDue)))
	m.mine(1)

	paidIn := p.tip()

	s.await(inv.ID, "paid", func(v invoiceView) bool {
		if v.Status != "paid" && p.tip() < paidIn+3 {
			m.mine(1)
		}

		return v.Status == "paid"
	})
	m.call("anvil_reorg", max(p.tip()-paidIn+1, 3), []any{})
	m.mine(1)
	eventually(t, "the network is stopped", func() (bool, string) {
		h, err := s.engine.Health(context.Background())
		if err != nil {
			t.Fatal(err)
		}

		n := h.Networks[0]

		return strings.Contains(n.Stopped, "final") && strings.Contains(n.Stopped, "block") &&
				!h.OK(), fmt.Sprintf(
				"%+v", n,
			)
	})
	s.await(
		inv.ID, "still paid: nothing is decided by a machine",
		func(v invoiceView) bool { return v.Status == "paid" },
	)
}
