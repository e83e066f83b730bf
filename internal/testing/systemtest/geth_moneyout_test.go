package systemtest

import (
	"context"
	"crypto/ecdsa"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/params"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/moneyout/ethereum"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/payout"
)

// simulatedChainID is the chain of every simulated.Backend.
const simulatedChainID = 1337

// geth is an engine over go-ethereum's node, and somebody else who uses the network.
type geth struct {
	*ethereum.Harness
	t       *testing.T
	backend *simulated.Backend
	other   *ecdsa.PrivateKey
	nonce   uint64
}

// newGeth starts a node whose blocks hold exactly two of the largest transactions there are.
func newGeth(t *testing.T) *geth {
	t.Helper()

	if testing.Short() {
		t.Skip("runs a node; run without -short")
	}

	backend, url := gethNode(t, func(_ *node.Config, c *ethconfig.Config) {
		c.Genesis.GasLimit, c.Miner.GasCeil = 2*params.MaxTxGas, 2*params.MaxTxGas
		c.RPCTxFeeCap = 0 // none
	})

	other, err := crypto.HexToECDSA(testenv.WellKnownDevAccounts[0].Key)
	if err != nil {
		t.Fatal(err)
	}

	g := &geth{t: t, backend: backend, other: other}
	g.Harness = ethereum.New(t, ethereum.Config{
		URL:     url,
		ChainID: simulatedChainID,
		Mine: func(blocks int) {
			for range blocks {
				backend.Commit()
			}
		},
		Fund: func(to chain.Address, amount chain.Amount) {
			address := common.HexToAddress(string(to))
			g.send(
				types.DynamicFeeTx{
					To:        &address,
					Value:     amount.Big(),
					Gas:       params.TxGas,
					GasTipCap: big.NewInt(params.GWei),
				},
			)
		},
	})
	g.Fund(chain.Pow10(18).Mul(10))

	return g
}

// send makes a transaction of the other's.
func (g *geth) send(tx types.DynamicFeeTx) {
	g.t.Helper()
	tx.ChainID, tx.Nonce = big.NewInt(simulatedChainID), g.nonce
	tx.GasFeeCap = big.NewInt(100 * params.GWei)
	signed, err := types.SignNewTx(g.other, types.LatestSignerForChainID(tx.ChainID), &tx)
	g.Must(err)
	g.Must(g.backend.Client().SendTransaction(g.t.Context(), signed))
	g.nonce++
}

// crowdOut makes a block that cannot hold a transaction: contract creations that offer a wei more
// per gas run into an invalid instruction, which takes all of their gas.
func (g *geth) crowdOut(tx *types.Transaction) {
	g.t.Helper()

	const invalid = 0xfe
	for range 2 {
		g.send(
			types.DynamicFeeTx{
				Gas:       params.MaxTxGas,
				GasTipCap: new(big.Int).Add(tx.GasTipCap(), common.Big1),
				Data:      []byte{invalid},
			},
		)
	}

	g.pending()
	g.Mine(1)

	if h := g.tip(); h.GasUsed != h.GasLimit {
		g.t.Fatalf("the block has room for %d", h.GasLimit-h.GasUsed)
	}
}

// pending waits until the pool offers all of the other's transactions to the next block, which it does a moment
// after it took them.
func (g *geth) pending() {
	g.t.Helper()

	ctx, cancel := context.WithTimeout(g.t.Context(), 10*time.Second)
	defer cancel()

	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()

	for {
		next, err := g.backend.Client().PendingNonceAt(ctx, crypto.PubkeyToAddress(g.other.PublicKey))
		g.Must(err)

		if next >= g.nonce {
			return
		}

		<-tick.C
	}
}

func (g *geth) tip() *types.Header {
	g.t.Helper()
	h, err := g.backend.Client().HeaderByNumber(g.t.Context(), nil)
	g.Must(err)

	return h
}

// bytes returns the transaction that a payout has in the pool or in a block now.
func (g *geth) bytes(p payout.Payout) *types.Transaction {
	g.t.Helper()

	tx, _, err := g.backend.Client().TransactionByHash(g.t.Context(), common.HexToHash(p.TxHash))
	if err != nil {
		g.t.Fatalf("the node does not know %s: %v", p.TxHash, err)
	}

	return tx
}

// barelyMore is a transaction with a wei more per gas, signed by the wallet itself.
func (g *geth) barelyMore(tx *types.Transaction) *types.Transaction {
	g.t.Helper()

	signer := types.LatestSignerForChainID(tx.ChainId())
	more := types.NewTx(&types.DynamicFeeTx{
		ChainID:   tx.ChainId(),
		Nonce:     tx.Nonce(),
		To:        tx.To(),
		Value:     tx.Value(),
		Gas:       tx.Gas(),
		GasTipCap: new(big.Int).Add(tx.GasTipCap(), common.Big1),
		GasFeeCap: new(big.Int).Add(tx.GasFeeCap(), common.Big1),
	})
	keys, err := hdkey.New(testenv.WellKnownDevMnemonic, "")
	g.Must(err)
	master, err := internal.Of(g.Engine).Transactions.MasterWallet(g.t.Context(), g.Network, g.Account.Index)
	g.Must(err)
	signatures, err := keys.Sign(g.t.Context(), chain.SignRequest{
		Network:  g.Network,
		Payloads: []chain.Payload{{Key: master.Key, Data: signer.Hash(more).Bytes()}},
	})
	g.Must(err)
	more, err = more.WithSignature(signer, signatures[0])
	g.Must(err)

	return more
}

// The base fee rises, block by full block, above what the bytes offer. The node refuses a
// replacement that pays a wei more, and takes ours, which confirms.
func TestGethReplacesAStuckTransaction(t *testing.T) {
	g := newGeth(t)
	p := g.Pay(chain.Pow10(15).Mul(100))
	g.Work()

	p = g.Get(p.ID)
	if p.Status != payout.Processing || p.TxHash == "" {
		t.Fatalf("sent as %+v", p)
	}

	first := g.bytes(p)
	for blocks := 0; g.tip().BaseFee.Cmp(first.GasFeeCap()) <= 0; blocks++ {
		if blocks == 40 {
			t.Fatalf(
				"after %d full blocks the base fee is %s, the transaction offers %s",
				blocks, g.tip().BaseFee, first.GasFeeCap(),
			)
		}

		g.crowdOut(first)
	}

	g.Work()

	if got := g.Get(p.ID); got.Status != payout.Processing || got.TxHash != p.TxHash {
		t.Fatalf("at a higher base fee it became %+v", got)
	}

	err := g.backend.Client().SendTransaction(t.Context(), g.barelyMore(first))
	if err == nil || !strings.Contains(err.Error(), txpool.ErrReplaceUnderpriced.Error()) {
		t.Fatalf("to a replacement that pays a wei more the node said %v", err)
	}

	g.Forward(4 * time.Minute)
	g.Work()
	p = g.Get(p.ID)

	second := g.bytes(p)
	if second.Hash() == first.Hash() || second.Nonce() != first.Nonce() {
		t.Fatalf("it was not replaced: %s with nonce %d", second.Hash(), second.Nonce())
	}

	t.Logf(
		"base fee %s; offered %s, tip %s; replaced by %s, tip %s",
		g.tip().BaseFee, first.GasFeeCap(), first.GasTipCap(), second.GasFeeCap(),
		second.GasTipCap(),
	)
	g.Mine(1)

	included := g.Becomes(p.ID, payout.Included, 0)
	if included.TxHash != second.Hash().Hex() {
		t.Errorf("%s is in the block, want the replacement %s", included.TxHash, second.Hash())
	}

	g.Arrived(g.Becomes(p.ID, payout.Confirmed, 4))
}

// Another branch, as long as its own, takes the transaction out of its block. The node has it in
// its pool again, where others pay more, or has forgotten it; either way the same bytes confirm.
func TestGethReorganisation(t *testing.T) {
	for _, test := range []struct {
		name    string
		after   payout.Status
		depth   int
		forgets bool
	}{
		{"after included", payout.Included, 1, false},
		{"after included, forgotten", payout.Included, 1, true},
		{"after confirmed", payout.Confirmed, 3, false},
		{"after confirmed, forgotten", payout.Confirmed, 3, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newGeth(t)
			p := g.Becomes(g.Pay(chain.Pow10(15).Mul(100)).ID, test.after, test.depth)
			g.Reorganised(p, func() { g.branch(p, test.depth, test.forgets) })
		})
	}
}

// branch replaces the newest blocks by as many in which a payout is not.
func (g *geth) branch(without payout.Payout, depth int, forgets bool) {
	g.t.Helper()
	tx := g.bytes(without)
	parent, err := g.backend.Client().
		HeaderByNumber(g.t.Context(), new(big.Int).Sub(g.tip().Number, big.NewInt(int64(depth))))
	g.Must(err)
	g.Must(g.backend.Fork(parent.Hash()))

	if forgets {
		g.backend.Rollback()
		g.Mine(depth)
	} else {
		for range depth {
			g.crowdOut(tx)
		}
	}

	_, pooled, err := g.backend.Client().TransactionByHash(g.t.Context(), common.HexToHash(without.TxHash))
	if knows := err == nil; knows == forgets || knows && !pooled {
		g.t.Fatalf("the node knows the transaction: %v, in its pool: %v (%v)", knows, pooled, err)
	}
}
