package e2e

import (
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
	"github.com/seed-8ee7f392/payments/invoice"
)

// lyingStage is a service over anvil behind two providers, the first of which can lie, and a token whose fee
// can be changed. Blocks are made on demand.
type lyingStage struct {
	*service
	p      *payer
	m      miner
	tok    *token
	liar   *provider
	slug   string
	setFee func(basisPoints int64) []byte
}

// receiptWithoutLogs empties the receipts that are asked for by hash.
func receiptWithoutLogs(c rpcCall, a *rpcAnswer) {
	if c.Method == "eth_getTransactionReceipt" {
		edit(a, func(r *map[string]json.RawMessage) {
			if *r != nil {
				(*r)["logs"] = json.RawMessage("[]")
			}
		})
	}
}

func newLyingStage(t *testing.T) lyingStage {
	t.Helper()

	node := testenv.Anvil(t, testenv.AnvilOptions{})
	p := newPayer(t, node.URL, node.ChainID)
	tok := p.deploy(contracts.USDTLike, "USDT")

	client, err := rpc.DialContext(t.Context(), node.URL)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(client.Close)

	parsed, err := abi.JSON(strings.NewReader(contracts.USDTLike.ABI))
	if err != nil {
		t.Fatal(err)
	}

	m := miner{t, client}
	m.call("evm_setAutomine", false)
	m.mine(10)

	liar, honest := newProvider(t, node.URL), newProvider(t, node.URL)
	network := evm.Local(node.ChainID, tok.asset)
	network.Rule, network.Confirmations = chain.RuleConfirmations, 3

	driver, err := evm.New(evm.Config{
		Network:    network,
		RPCs:       []string{liar.URL, honest.URL},
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	if err != nil {
		t.Fatal(err)
	}

	s := start(t, driver, common.HexToAddress(feeAddress).Hex())

	return lyingStage{
		s,
		p,
		m,
		tok,
		liar,
		network.Slug,
		func(basisPoints int64) []byte {
			data, err := parsed.Pack("setFee", big.NewInt(basisPoints))
			if err != nil {
				t.Fatal(err)
			}

			return data
		},
	}
}

// watched makes an invoice over 100 USDT whose network is followed.
func (s lyingStage) watched() invoiceView {
	s.t.Helper()

	inv := s.order("100", "USDT", s.slug)
	s.await(inv.ID, "watched: the network is followed", func(invoiceView) bool {
		c, followed, err := internal.Of(s.engine).Store().Cursor(s.t.Context(), s.slug)
		return err == nil && followed && c.At.Height > 0
	})

	return inv
}

// transfer sends a transfer of tokens into the pool.
func (s lyingStage) transfer(to chain.Address, v chain.Amount) *types.Transaction {
	s.t.Helper()

	return s.tok.contract.transact(new(big.Int), "transfer", common.HexToAddress(string(to)), v.Big())
}

func (s lyingStage) hint(inv invoiceView, tx *types.Transaction) {
	s.t.Helper()

	eventually(s.t, "the hint is found", func() (bool, string) {
		result, err := s.engine.Invoices.Hint(s.t.Context(), inv.ID, tx.Hash().Hex())
		return err == nil && result == invoice.HintFound, string(result)
	})
}

// arrivedOnly mines until the invoice is underpaid by what its address holds, which is 1 %.
func (s lyingStage) arrivedOnly(inv invoiceView, due chain.Amount) {
	s.t.Helper()

	address := inv.Options[0].Address
	v := s.await(inv.ID, "underpaid by what arrived", func(v invoiceView) bool {
		if v.Status != "underpaid" {
			s.m.mine(1)
		}

		return v.Status == "underpaid" || v.Status == "paid"
	})

	held := s.tok.balance(address)
	if held.Mul(100) != due {
		s.t.Fatalf("%s arrived, want a hundredth of %s", held, due)
	}

	if v.Status != "underpaid" || v.Options[0].Paid != held.String() {
		s.t.Errorf("the invoice is %s with %s paid, on chain is %s", v.Status, v.Options[0].Paid, held)
	}

	if all := s.payments(
		inv.ID,
	); len(all) != 1 || all[0].Amount != held.String() ||
		all[0].Status != "confirmed" {
		s.t.Errorf("the payments are %+v", all)
	}
}

// Row 35 of the pitfalls on a real node: a token takes 99 % of what a hint showed before it was mined, and
// the preferred node says nothing of logs by hash.
func TestHintBeforeMiningOnAnvil(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	s := newLyingStage(t)
	s.liar.instruct(lie{answer: receiptWithoutLogs})

	inv := s.watched()
	due := amount(t, inv.Options[0].AmountDue)

	s.tok.contract.transactRaw(new(big.Int), s.setFee(9900))
	s.m.mine(1)

	tx := s.transfer(inv.Options[0].Address, due)
	s.hint(inv, tx)
	s.await(inv.ID, "pending", func(v invoiceView) bool { return v.Status == "pending" })
	s.arrivedOnly(inv, due)
}

// Row 35 of the pitfalls on a real node: a reorganisation of one block puts the same transaction behind another
// that changes what it does.
func TestVariablePayerIsReorganisedOnAnvil(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	s := newLyingStage(t)
	inv := s.watched()
	due := amount(t, inv.Options[0].AmountDue)

	tx := s.transfer(inv.Options[0].Address, due)
	s.m.mine(1)
	s.hint(inv, tx)
	s.await(inv.ID, "pending", func(v invoiceView) bool { return v.Status == "pending" })

	s.liar.instruct(lie{answer: receiptWithoutLogs})

	if held := s.tok.balance(inv.Options[0].Address); held != due {
		t.Fatalf("%s arrived on the first branch, want %s", held, due)
	}

	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}

	change := map[string]any{
		"from": testenv.WellKnownDevAccounts[1].Address,
		"to":   string(s.tok.asset.Contract),
		"data": hexutil.Encode(s.setFee(9900)),
		"gas":  "0x30d40",
	}
	s.m.call("anvil_reorg", 1, []any{[]any{change, 0}, []any{hexutil.Encode(raw), 0}})
	s.arrivedOnly(inv, due)
}
