package ingest_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// lies are what one node of two says, of the transactions of honest payers and of the newest block.
var lies = map[string]func(hashes []string, tip uint64, fake chain.Block) sim.NodeFaults{
	"denies": func(hashes []string, _ uint64, _ chain.Block) sim.NodeFaults {
		return sim.NodeFaults{Denies: hashes}
	},
	"receipts without logs": func(hashes []string, _ uint64, _ chain.Block) sim.NodeFaults {
		return sim.NodeFaults{EmptyReceipts: hashes}
	},
	"blocks without logs": func(hashes []string, _ uint64, _ chain.Block) sim.NodeFaults {
		return sim.NodeFaults{DropsLogs: hashes}
	},
	"blocks without logs and bloom": func(hashes []string, _ uint64, _ chain.Block) sim.NodeFaults {
		return sim.NodeFaults{DropsLogs: hashes, DropsBloom: true}
	},
	"behind": func([]string, uint64, chain.Block) sim.NodeFaults { return sim.NodeFaults{Behind: 2} },
	"jumps":  func([]string, uint64, chain.Block) sim.NodeFaults { return sim.NodeFaults{Jump: 2} },
	"syncs":  func([]string, uint64, chain.Block) sim.NodeFaults { return sim.NodeFaults{Syncing: true} },
	"another block": func(_ []string, tip uint64, fake chain.Block) sim.NodeFaults {
		return sim.NodeFaults{Blocks: map[uint64]chain.Block{tip: fake}}
	},
}

// Row 43 of the pitfalls and more: of two nodes one lies, in turns. What honest payers pay is credited once,
// and what only a lie shows never.
func TestTwoNodesLieInTurns(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(lies)) {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{Nodes: 2, NoFinality: true})
			honest, robbed := w.sell("USDX", dollars(100)), w.sell("SIM", coin(1))

			var hashes []string

			for i := range 12 {
				if i%4 == 1 {
					hashes = append(hashes, w.chain.Pay(addressOf(honest), "USDX", dollars(20)))
				}

				tip := w.chain.Mine(1)
				fake := chain.Block{Transfers: []chain.Transfer{{
					TxHash:  "5ca1ab1e",
					To:      addressOf(robbed),
					AssetID: robbed.Options[0].AssetID,
					Amount:  coin(1),
				}}}
				w.chain.SetNode(i%2, lies[name](hashes, tip.Height, fake))
				w.chain.SetNode(1-i%2, sim.NodeFaults{})
				w.struggle()
			}

			for i := range 2 {
				w.chain.SetNode(i, sim.NodeFaults{})
			}

			w.mine(6)
			w.want(honest, invoice.Underpaid, dollars(60), chain.Amount{})

			for _, p := range w.payments(robbed.ID) {
				if p.Status == invoice.Confirmed || !p.ConfirmedAt.IsZero() {
					t.Errorf("a payment that only a lie shows is %s", p.Status)
				}
			}

			for _, e := range w.events(robbed.ID) {
				if e.Type == "invoice.paid" {
					t.Error("an invoice was paid by a lie")
				}
			}
		})
	}
}

// One node alone, however long its own branch is, confirms nothing where two are configured.
func TestBranchOfOneNodeConfirmsNothing(t *testing.T) {
	w := newHarness(t, sim.Config{Nodes: 2, NoFinality: true})
	robbed := w.sell("SIM", coin(1))
	branch := map[uint64]chain.Block{}
	parent := ""

	for i := range 8 {
		tip := w.chain.Mine(1)
		b := chain.Block{Ref: chain.Ref{Hash: fmt.Sprintf("fa15e%d", i)}, Parent: parent}

		if i == 0 {
			b.Transfers = []chain.Transfer{{
				TxHash:  "5ca1ab1e",
				To:      addressOf(robbed),
				AssetID: robbed.Options[0].AssetID,
				Amount:  coin(1),
			}}
		}

		parent, branch[tip.Height] = b.Hash, b
		w.chain.SetNode(0, sim.NodeFaults{Blocks: branch})
		w.pass(2 * time.Second)
		w.struggle()
	}

	if p := w.only(robbed.ID); p.Status == invoice.Confirmed {
		t.Errorf("a payment in a branch that only one node has is %s", p.Status)
	}

	w.chain.SetNode(0, sim.NodeFaults{})
	w.mine(3)
	w.want(robbed, invoice.Open, chain.Amount{}, chain.Amount{})
}

// struggle has the engine do what it can, with nodes that may not answer.
func (w *harness) struggle() {
	w.t.Helper()

	for range 20 {
		did, err := w.engine.Step(w.t.Context())
		if err != nil {
			w.t.Log(err)
		}

		if !did {
			return
		}
	}
}

// While the honest one of two nodes is some blocks behind, the other does not decide by itself what an address holds;
// what is really there is found at a block that both have.
func TestNodeThatIsAheadInventsNoBalance(t *testing.T) {
	w := newHarness(t, sim.Config{})
	unpaid, paid := w.sell("SIM", coin(1)), w.sell("SIM", coin(2))

	w.mu.Lock()
	w.behind = 3
	w.mu.Unlock()

	w.chain.PayInternal(addressOf(paid), coin(2))
	w.mine(40)

	w.want(unpaid, invoice.Open, chain.Amount{}, chain.Amount{})
	w.want(paid, invoice.Paid, coin(2), chain.Amount{})
}

// While one of several nodes answers alone, what only its balances show is detected and waits. Once two answer it is
// compared again: what was there is confirmed, what was made up is dropped.
func TestBalanceOfOneNodeAloneConfirmsNothing(t *testing.T) {
	w := newHarness(t, sim.Config{})
	unpaid, paid := w.sell("SIM", coin(1)), w.sell("SIM", coin(2))
	sold := w.deposit()

	w.mine(2)
	w.setAlone(coin(1))
	w.chain.PayInternal(addressOf(paid), coin(1))
	w.pass(time.Hour) // no deposit address is compared more often
	w.mine(40)

	for _, of := range []string{unpaid.ID, paid.ID, sold.ID} {
		if p := w.only(of); p.Status != invoice.Detected || p.TxHash != "" {
			t.Errorf("while one node answers alone the payment is %s", p.Status)
		}
	}

	w.setAlone(chain.Amount{})
	w.mine(40)

	w.want(unpaid, invoice.Open, chain.Amount{}, chain.Amount{})
	w.want(paid, invoice.Underpaid, coin(1), chain.Amount{})

	if p := w.only(sold.ID); p.Status != invoice.Dropped {
		t.Errorf("what was made up is %s", p.Status)
	}
}

// What two nodes have shown is neither corrected nor dropped by what one says alone.
func TestBalanceOfOneNodeAloneCorrectsNothing(t *testing.T) {
	w := newHarness(t, sim.Config{})
	paid := w.sell("SIM", coin(1))

	w.chain.PayInternal(addressOf(paid), coin(1))
	w.pass(time.Minute)
	w.mine(1)

	seen := w.only(paid.ID)
	if seen.Status != invoice.Detected {
		t.Fatalf("the payment is %s", seen.Status)
	}

	w.setAlone(coin(3))
	w.mine(40)

	if p := w.only(paid.ID); p.Status != invoice.Detected || p.Amount != coin(1) || p.Block != seen.Block {
		t.Errorf("by one node's word the payment is %s over %s since %d", p.Status, p.Amount, p.Block.Height)
	}

	w.setAlone(chain.Amount{})
	w.mine(40)
	w.want(paid, invoice.Paid, coin(1), chain.Amount{})
}

// setAlone has one node answer alone and add to the coin of every address; zero has two nodes answer.
func (w *harness) setAlone(adds chain.Amount) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.alone = adds
}
