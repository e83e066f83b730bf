//go:build unix

package moneyout_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/internal/testing/moneyout/ethereum"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/payout"
)

func onAnvil(t *testing.T) *ethereum.Harness {
	t.Helper()
	anvil := testenv.Anvil(t, testenv.AnvilOptions{SlotsInAnEpoch: 1, Args: []string{"--no-mining"}})
	w := ethereum.New(t, ethereum.Config{URL: anvil.URL, ChainID: anvil.ChainID})
	w.Fund(coin(10))

	return w
}

// The base fee rises above what the bytes offer: they are replaced, and the replacement confirms.
func TestAnvilReplacesAStuckTransaction(t *testing.T) {
	w := onAnvil(t)
	gwei := big.NewInt(1e9)
	w.Call(nil, "anvil_setNextBlockBaseFeePerGas", hexutil.EncodeBig(new(big.Int).Mul(gwei, big.NewInt(10))))
	w.Mine(1)
	p := w.Pay(milli(100))
	w.Work()
	p = w.Get(p.ID)

	first := p.TxHash
	if p.Status != payout.Processing || first == "" {
		t.Fatalf("sent as %+v", p)
	}
	// The maximum is one and a half of what is offered first; a price in between can be paid by a
	// replacement alone.
	const gas = 21_000

	base := new(big.Int).Div(new(big.Int).Mul(p.MaxNetworkFee.Big(), big.NewInt(3)), big.NewInt(4*gas))
	for range 3 {
		w.Call(nil, "anvil_setNextBlockBaseFeePerGas", hexutil.EncodeBig(base))
		w.Mine(1)
		w.Work()

		if got := w.Get(p.ID); got.Status != payout.Processing || got.TxHash != first {
			t.Fatalf("at a higher base fee it became %+v", got)
		}
	}

	w.Forward(4 * time.Minute)
	w.Work()

	replaced := w.Get(p.ID)
	if replaced.TxHash == first {
		t.Fatal("it was not replaced")
	}

	w.Call(nil, "anvil_setNextBlockBaseFeePerGas", hexutil.EncodeBig(base))
	w.Mine(1)

	p = w.Becomes(p.ID, payout.Included, 0)
	if p.TxHash != replaced.TxHash {
		t.Errorf("%s is in the block, want the replacement %s", p.TxHash, replaced.TxHash)
	}

	w.Arrived(w.Becomes(p.ID, payout.Confirmed, 4))
}

// A reorganisation takes the transaction out of its block, and the node forgets it: the same bytes
// are sent again.
func TestAnvilReorganisation(t *testing.T) {
	for _, test := range []struct {
		after payout.Status
		depth int
		mine  int
	}{{payout.Included, 1, 1}, {payout.Confirmed, 6, 4}} {
		t.Run("after "+string(test.after), func(t *testing.T) {
			w := onAnvil(t)
			for range test.depth { // what is read below them is where both branches part
				w.Mine(1)
				w.Work()
			}

			p := w.Becomes(w.Pay(milli(100)).ID, test.after, test.mine)
			w.Reorganised(p, func() {
				w.Call(nil, "anvil_setCoinbase", common.BytesToAddress([]byte("another miner")))
				w.Call(nil, "anvil_reorg", test.depth, []any{})
			})
		})
	}
}
