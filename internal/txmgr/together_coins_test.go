package txmgr_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/follow"
)

// Several payouts in one transaction that spends outputs, and crashes of the processes that make one.

// coinNode is a network that spends outputs and pays several destinations at once. What it is sent
// it includes ten seconds later, whatever it spends: a second transaction for one payout would
// show.
type coinNode struct {
	*outputs
	w    *harness
	sent map[string]coinTx
	// displaced is set when another transaction has the coins.
	displaced bool
}

type coinTx struct {
	signed chain.Signed
	at     time.Time
}

func (n *coinNode) MaxOutputs() int { return 8 }

func (n *coinNode) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	if err := n.w.process.Call("build"); err != nil {
		return chain.Unsigned{}, err
	}

	u, err := n.outputs.Build(ctx, order)
	u.Raw = fmt.Appendf(u.Raw, " of %v at %s", order.Outputs, n.w.now)
	u.MaxFee = chain.Units(10)

	return u, err
}

func (n *coinNode) Broadcast(ctx context.Context, signed chain.Signed) error {
	return n.w.process.Do("broadcast", func() error {
		own, err := n.w.store.OwnTransactions(ctx, network, []string{signed.TxHash})
		if err != nil || len(own) != 1 {
			n.w.t.Errorf("bytes were sent before they were stored: %s %v %v", signed.TxHash, own, err)
		}

		if _, known := n.sent[signed.TxHash]; !known {
			n.sent[signed.TxHash] = coinTx{signed, n.w.now}
		}

		return nil
	})
}

func (n *coinNode) Status(_ context.Context, signed chain.Signed) (chain.TxStatus, error) {
	if err := n.w.process.Call("status"); err != nil {
		return chain.TxStatus{}, err
	}

	if s, known := n.status[signed.TxHash]; known {
		return s, nil
	}

	tx, known := n.sent[signed.TxHash]
	switch {
	case !known:
		return chain.TxStatus{State: chain.TxUnknown}, nil
	case n.w.now.Before(tx.at.Add(10 * time.Second)):
		return chain.TxStatus{State: chain.TxPooled}, nil
	}

	if n.displaced {
		return chain.TxStatus{State: chain.TxUnknown}, nil
	}

	status := chain.TxStatus{State: chain.TxIncluded, Block: block(20, "a", nil).Ref, Fee: signed.MaxFee}
	for _, out := range signed.Outputs {
		status.Transfers = append(
			status.Transfers,
			chain.Transfer{TxHash: signed.TxHash, To: out.To, AssetID: out.AssetID, Amount: out.Amount},
		)
	}

	return status, nil
}

// read stores block 20 with what was sent ten seconds ago, and ten seconds later two on top of it.
func (n *coinNode) read() {
	mined, final := block(20, "a", nil), false

	for hash, tx := range n.sent {
		_, waits := n.status[hash]
		if waits || n.w.now.Before(tx.at.Add(10*time.Second)) {
			continue
		}

		if n.displaced {
			hash = "thief"
		}

		for _, in := range tx.signed.Inputs {
			mined.Spent = append(mined.Spent, chain.Spend{Outpoint: in, By: hash})
		}

		final = !n.w.now.Before(tx.at.Add(20 * time.Second))
	}

	switch {
	case final:
		n.w.scripted(buried(mined, "a"))
	case len(mined.Spent) > 0:
		n.w.scripted(follow.Batch{Blocks: []chain.Block{mined}})
	}
}

func newCoinNode(t *testing.T, coins int) (*harness, *coinNode) {
	t.Helper()
	w, driver := newOutputs(t, coins)
	node := &coinNode{outputs: driver, w: w, sent: map[string]coinTx{}}
	w.driver = func() chain.Driver { return node }
	w.reader = node.read
	w.processes = 0
	w.outbox = w.boot("coins")

	return w, node
}

func TestCoinsOfABatch(t *testing.T) {
	for name, displaced := range map[string]bool{"confirmed": false, "displaced": true} {
		t.Run(name, func(t *testing.T) {
			w, node := newCoinNode(t, 1)
			ids := w.three()
			w.work()
			w.carried(ids...)

			if got := w.coins(); got[0].ReservedBy != ids[0] {
				t.Fatalf("reserved as %+v", got)
			}

			want, holder := wallet.Confirmed, ids[0]

			if displaced {
				node.displaced = true
				want, holder = wallet.Failed, ""
			}

			w.until(ids[0], want)
			w.carried(ids...)

			if got := w.coins(); got[0].ReservedBy != holder {
				t.Errorf("the coin is held by %q, want %q", got[0].ReservedBy, holder)
			}
		})
	}
}

// A replacement of a batch pays the same, from a coin of the first.
func TestReplacedBatchOfCoins(t *testing.T) {
	for _, careless := range []bool{false, true} {
		w, node := newCoinNode(t, 3)
		node.careless = careless
		ids := w.three()
		w.work()
		node.status[w.get(ids[0]).TxHash] = chain.TxStatus{State: chain.TxPooled}
		w.wait(4 * time.Minute)
		w.carried(ids...)

		if got := w.get(ids[0]); len(got.Attempts) != map[bool]int{false: 2, true: 1}[careless] {
			t.Errorf("careless %v: %d attempts", careless, len(got.Attempts))
		}
	}
}

// Pitfall 13 for a batch. A process dies at every update and every call of its node.
func TestBatchSurvivesCrashAtEveryStep(t *testing.T) {
	harnesses := map[string]func(t *testing.T) (*harness, func()){
		"nonces": func(t *testing.T) (*harness, func()) {
			w := newHarness(t, together)

			return w, func() {
				if nonce, err := w.chain.Nonce(t.Context(), w.master().Address); err != nil || nonce != 1 {
					t.Errorf("%d transactions, %v", nonce, err)
				}
			}
		},
		"coins": func(t *testing.T) (*harness, func()) {
			w, node := newCoinNode(t, 3)

			return w, func() {
				paid := map[chain.Output]int{}

				for _, tx := range node.sent {
					for _, o := range tx.signed.Outputs {
						paid[o]++
					}
				}

				for out, n := range paid {
					if n != 1 {
						t.Errorf("%+v was paid %d times", out, n)
					}
				}

				if len(paid) != 3 || len(node.sent) != 1 {
					t.Errorf("%d payments in %d transactions", len(paid), len(node.sent))
				}
			}
		},
	}
	for name, newHarness := range harnesses {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after=%v", name, after), func(t *testing.T) {
				for at := 1; ; at++ {
					w, once := newHarness(t)
					ids := w.three()
					w.process.Arm(at, after)

					for _, id := range ids {
						w.until(id, wallet.Confirmed)
					}

					killed := w.processes > 1
					w.process.Disarm()
					w.carried(ids...)
					once()

					if !killed {
						if at < 10 {
							t.Fatalf("only %d calls were counted", at)
						}

						t.Logf("%d crashes survived", at-1)

						return
					}

					if t.Failed() {
						t.Fatalf("killed at call %d", at)
					}
				}
			})
		}
	}
}
