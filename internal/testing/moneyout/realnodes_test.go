//go:build unix

package moneyout_test

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/btcsuite/btcd/address/v2/base58"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	solanago "github.com/gagliardetto/solana-go"
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

func noError(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// opened returns a function that makes a driver.
func opened(open func() (payments.ChainDriver, error)) func(t *testing.T) payments.ChainDriver {
	return func(t *testing.T) payments.ChainDriver {
		t.Helper()

		driver, err := open()
		noError(t, err)

		return driver
	}
}

// bytesOf are those of an address that nobody has the key of.
func bytesOf() []byte {
	b := make([]byte, common.AddressLength)
	_, _ = rand.Read(b) // never fails

	return b
}

func anvilNode(t *testing.T) realNode {
	t.Helper()

	anvil := testenv.Anvil(t, testenv.AnvilOptions{SlotsInAnEpoch: 1, Args: []string{"--no-mining"}})
	node, err := rpc.DialContext(t.Context(), anvil.URL)
	noError(t, err)
	t.Cleanup(node.Close)

	return realNode{
		asset:  "ETH",
		amount: milli(10),
		driver: opened(func() (payments.ChainDriver, error) {
			return evm.New(evm.Config{Network: evm.Local(anvil.ChainID), RPC: anvil.URL})
		}),
		fund: func(t *testing.T, to chain.Address) {
			t.Helper()
			noError(t, node.Call(nil, "anvil_setBalance", to, hexutil.EncodeBig(coin(1).Big())))
		},
		mine: func(t *testing.T) { t.Helper(); noError(t, node.Call(nil, "evm_mine")) },
		stranger: func(*testing.T) string {
			return common.BytesToAddress(bytesOf()).Hex()
		},
		held: func(t *testing.T, of string) chain.Amount {
			t.Helper()

			var v hexutil.Big
			noError(t, node.Call(&v, "eth_getBalance", of, "latest"))

			held, err := chain.AmountFromBig((*big.Int)(&v))
			noError(t, err)

			return held
		},
	}
}

func bitcoindNode(t *testing.T) realNode {
	t.Helper()

	node := testenv.Bitcoind(t, testenv.BitcoindOptions{Args: []string{"-keypool=10"}})
	call := func(t *testing.T, out any, method string, params ...any) {
		t.Helper()
		noError(t, node.Call(t.Context(), out, method, params...))
	}
	address := func(t *testing.T) (made string) {
		t.Helper()
		call(t, &made, "getnewaddress", "", "bech32")

		return made
	}
	mine := func(t *testing.T) { t.Helper(); call(t, nil, "generatetoaddress", 1, address(t)) }

	call(t, nil, "createwallet", "payers")
	call(t, nil, "generatetoaddress", 120, address(t))

	return realNode{
		asset:  "BTC",
		amount: chain.Units(100_000),
		driver: opened(func() (payments.ChainDriver, error) {
			return bitcoin.New(bitcoin.Config{Network: bitcoin.Regtest, RPC: node.URL})
		}),
		fund: func(t *testing.T, to chain.Address) {
			t.Helper()

			for range 5 { // outputs, so that no payout waits for the change of another
				call(t, nil, "sendtoaddress", to, json.Number("0.1"))
			}
		},
		mine:     mine,
		stranger: address,
		held: func(t *testing.T, of string) chain.Amount {
			t.Helper()

			var received json.Number
			call(t, &received, "getreceivedbyaddress", of, 1)

			held, err := chaindata.AmountFromDecimalFloor(decimal.RequireFromString(received.String()), 8)
			noError(t, err)

			return held
		},
	}
}

// solanaByBlock and solanaByAddress are the two ways of reading Solana.
func solanaByBlock(t *testing.T) realNode {
	t.Helper()

	return solanaNode(
		t,
		func(c solana.Config) (payments.ChainDriver, error) {
			c.WholeBlocks = true
			return solana.New(c)
		},
	)
}

func solanaByAddress(t *testing.T) realNode {
	t.Helper()

	return solanaNode(t, solana.New)
}

func solanaNode(t *testing.T, dial func(solana.Config) (payments.ChainDriver, error)) realNode {
	t.Helper()

	const blockTime = 100 * time.Millisecond

	node := testenv.Solana(t, testenv.SolanaOptions{Finality: 8})
	noError(t, node.Mine(12))

	network := solana.Local(node.GenesisHash)
	network.BlockTime = blockTime

	return realNode{
		asset:  "SOL",
		amount: chain.Units(50_000_000),
		driver: opened(func() (payments.ChainDriver, error) {
			return dial(solana.Config{Network: network, RPC: node.URL})
		}),
		fund: func(t *testing.T, to chain.Address) {
			t.Helper()
			noError(t, node.Airdrop(string(to), 5_000_000_000))
		},
		mine: func(t *testing.T) { t.Helper(); noError(t, node.Mine(1)) },
		stranger: func(t *testing.T) string {
			t.Helper()

			key, err := solanago.NewRandomPrivateKey()
			noError(t, err)

			return key.PublicKey().String()
		},
		held: func(t *testing.T, of string) chain.Amount {
			t.Helper()

			var answer struct{ Value uint64 }
			noError(t, node.Call(&answer, "getBalance", of, map[string]string{"commitment": "confirmed"}))

			return chain.Units(answer.Value)
		},
		forget: func(t *testing.T, below uint64) {
			t.Helper()
			noError(t, node.Prune(below))
			noError(t, node.PruneRecords(below))
		},
	}
}

func tronNode(t *testing.T) realNode {
	t.Helper()

	raw, err := hex.DecodeString(tronFunder.Address[2:])
	noError(t, err)

	return tronNodeOver(testenv.Tron(t, testenv.TronOptions{
		SolidLag: 4,
		Balances: map[string]int64{tronAddress(raw): 1_000_000_000_000_000},
	}))
}

// tronFunder has all TRX of the node: the last account, which is no wallet of the service.
var tronFunder = testenv.WellKnownDevAccounts[9]

func tronAddress(raw []byte) string { return base58.CheckEncode(raw, 0x41) }

func tronNetwork(node *testenv.TronNode, tokens ...chain.Asset) chain.Network {
	network := tron.Private(node.Genesis, tokens...)
	network.BlockTime = 200 * time.Millisecond

	return network
}

// tronNodeOver returns the network of a fake Tron node on which tronFunder has money.
func tronNodeOver(node *testenv.TronNode) realNode {
	return realNode{
		asset:  "TRX",
		amount: chain.Units(10_000_000),
		driver: opened(func() (payments.ChainDriver, error) {
			return tron.New(tron.Config{Network: tronNetwork(node), Nodes: []tron.Node{{URL: node.URL}}})
		}),
		fund: func(t *testing.T, to chain.Address) {
			t.Helper()

			_, err := node.Send(t.Context(), testenv.TronPayment{
				PrivateKey: tronFunder.Key,
				To:         string(to),
				Amount:     1_000_000_000,
			})
			noError(t, err)
		},
		mine: func(t *testing.T) {
			t.Helper()

			_, err := node.Control(t.Context(), "mine", map[string]any{"blocks": 1})
			noError(t, err)
		},
		stranger: func(*testing.T) string { return tronAddress(bytesOf()) },
		held: func(t *testing.T, of string) chain.Amount {
			t.Helper()

			sun, err := node.Balance(t.Context(), of)
			noError(t, err)

			return chain.Units(uint64(sun))
		},
	}
}
