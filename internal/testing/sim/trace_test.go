package sim_test

import (
	"encoding/json"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// trace returns everything that a driver shows of a network after the same calls, as JSON.
func trace(t *testing.T, seed uint64) string {
	t.Helper()

	c := sim.New(sim.Config{Clock: fixed, Seed: seed, Nodes: 3})
	wallet := newWallet(t, c, 100)
	token := asset(t, c, "USDX").ID
	to := c.NewAddress()
	fates := map[string]sim.OrphanFate{}

	var out []any

	c.SetToken("USDX", sim.TokenRules{FeeBPS: 10, Log: sim.LogGrossThenFee})
	c.SetNode(1, sim.NodeFaults{Behind: 1})
	c.SetNode(2, sim.NodeFaults{Blocks: map[uint64]chain.Block{1: {}, 2: {}, 3: {}}, Jump: 1})

	for i := range uint64(12) {
		hashes := []string{
			c.Pay(to, "USDX", dollars(i)),
			c.PayInternal(to, coin(i)),
			c.PayFailing(to, "SIM", coin(i)),
			c.TransferFrom(to, c.NewAddress(), "USDX", dollars(i/2)),
			c.LogTransfer(to, to, "USDX", dollars(i)),
			c.PayVariable(chain.Output{}, func(height, branch uint64) sim.Result {
				return sim.Result{
					Outputs: []chain.Output{{To: to, AssetID: token, Amount: dollars(height + branch)}},
				}
			}),
		}
		for j, hash := range hashes {
			fates[hash] = sim.OrphanFate(uint64(j) % 3)
		}

		broadcast(t, c, wallet.sign(t, wallet.order(t, i)))

		pool, err := c.Pool(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		out = append(out, pool)

		if i%3 == 2 {
			c.Mine(1)
		}
	}

	c.Fork(sim.Fork{Depth: 3, Each: fates})

	for range 3 {
		pool, err := c.Pool(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		blocks, err := c.Blocks(t.Context(), 0, 5)
		if err != nil {
			t.Fatal(err)
		}

		out = append(out, pool, blocks)

		c.DemoteNode("test")
	}

	c.Mine(1)

	out = append(out, blockAt(t, c, 6), c.Balance(to, "USDX"))

	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

func TestSameSeedSameTrace(t *testing.T) {
	first := trace(t, 1)
	for range 5 {
		if again := trace(t, 1); again != first {
			t.Fatalf("the same calls show\n%s\nand\n%s", first, again)
		}
	}

	if trace(t, 2) == first {
		t.Error("two seeds show the same")
	}
}
