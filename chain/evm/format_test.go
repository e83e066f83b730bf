package evm

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
)

// blockOf returns a verification of a recorded block.
func blockOf(t *testing.T, network chain.Network, file string) *verification {
	t.Helper()

	driver, err := newDriver(Config{Network: network, RPC: "http://node.invalid"})
	if err != nil {
		t.Fatal(err)
	}

	raw, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}

	v := &verification{driver: driver, node: driver.nodes.Nodes[0], block: new(blockJSON)}
	if err := json.Unmarshal(raw, v.block); err != nil {
		t.Fatal(err)
	}

	if _, err := v.block.check(v.node, uint64(*v.block.Number)); err != nil {
		t.Fatal(err)
	}

	return v
}

// pass runs checks that must find nothing.
func (v *verification) pass(t *testing.T, checks ...func() error) {
	t.Helper()
	v.leaveOutStateSync()

	for i, check := range checks {
		if err := check(); err != nil || len(v.reasons) > 0 {
			t.Fatalf("check %d: %v, %q", i, err, v.reasons)
		}
	}
}

// Block 274 of an OP-stack network after Canyon: a deposit, whose receipt's encoding holds its nonce.
func TestOPStackBlockVerifies(t *testing.T) {
	v := blockOf(t, Optimism, "op-block.json")

	var status, gas, nonce, version hexutil.Uint64 = 1, 0xb76d, 0x111, depositReceiptVersion

	v.receipts = []*receiptJSON{
		{Status: &status, CumulativeGasUsed: &gas, DepositNonce: &nonce, DepositReceiptVersion: &version},
	}
	v.pass(t, v.checkHeader, v.checkTransactions, v.checkReceipts, v.checkSenders, v.checkPrices)

	tx := &v.block.Transactions[0]
	if tx.Nonce == nil || *tx.Nonce != 0x111 || tx.spend(false).Shared {
		t.Errorf("it uses up %+v", tx.spend(false))
	}

	v.receipts[0].DepositReceiptVersion = nil // left out by some providers
	v.pass(t, v.checkReceipts)

	v.receipts[0].DepositNonce = new(hexutil.Uint64)
	if err := v.checkReceipts(); err == nil {
		t.Error("another nonce was accepted")
	}

	tx.raw = []byte(`{"type":"0x7e","from":"0x0000000000000000000000000000000000000001"}`)

	if err := v.checkTransactions(); err == nil {
		t.Error("another deposit was accepted")
	}
}

// Block 350791066 of Arbitrum One, as a provider gives it that pads numbers with zeros: ArbOS's own
// transaction and three signed ones.
func TestArbitrumBlockVerifies(t *testing.T) {
	v := blockOf(t, Arbitrum, "arbitrum-block.json")
	v.pass(t, v.checkHeader, v.checkTransactions, v.checkSenders)

	if spend := v.block.Transactions[0].spend(false); !spend.Shared || spend.Sender != canonical(arbOS) {
		t.Errorf("ArbOS uses up %+v", spend)
	}

	if spend := v.block.Transactions[3].spend(false); spend.Nonce != 0x47a57c || spend.Shared {
		t.Errorf("the last one uses up %+v", spend)
	}

	v.block.Transactions[2].From = new(common.Address)
	if err := v.checkSenders(); err == nil {
		t.Error("another sender was accepted")
	}
}

// The transaction types whose encoding is not Ethereum's own, by network.
func TestEveryNetworkHasItsFormat(t *testing.T) {
	catalogue := []chain.Network{
		Ethereum, Sepolia, Base, BaseSepolia, Optimism, OPSepolia, Arbitrum, ArbitrumSepolia, Polygon,
		PolygonAmoy, BNB, BNBTestnet,
	}
	for _, network := range catalogue {
		if formats[network.ChainID] == nil {
			t.Errorf("network %s has no row in formats", network.Slug)
		}
	}

	if len(formats) != len(catalogue) {
		t.Errorf("%d rows for %d networks", len(formats), len(catalogue))
	}

	// Every network that the package declares is in the list above.
	source, err := os.ReadFile("networks.go")
	if err != nil {
		t.Fatal(err)
	}

	if declared := strings.Count(string(source), " = chain.Network{"); declared != len(catalogue) {
		t.Errorf("networks.go declares %d networks, the test knows %d", declared, len(catalogue))
	}

	for chainID, types := range map[uint64][]uint8{
		Base.ChainID:     {opDeposit},
		Polygon.ChainID:  {polygonStateSync},
		Arbitrum.ChainID: {0x64, 0x65, 0x66, 0x68, 0x69, 0x6a, 0x78},
		fakeLocal:        {0x64, 0x65, 0x66, 0x68, 0x69, 0x6a, 0x78, opDeposit},
	} {
		format := formatOf(chain.Network{ChainID: chainID})

		for kind := range 256 {
			want := kind <= 4
			for _, known := range types {
				want = want || int(known) == kind
			}

			if format.knows(uint8(kind)) != want {
				t.Errorf("chain %d, type %#x: known %t, want %t", chainID, kind, !want, want)
			}
		}
	}
}

// fakeLocal is a chain id outside the catalogue.
const fakeLocal = 4242
