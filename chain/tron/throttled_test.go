//go:build unix

package tron_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// A node that refuses two of three calls does not stop the network: each refused call is repeated, and none that was
// answered. Payments are read and a payout is sent within a minute.
func TestTwoThirdsOfCallsRefusedStopNothing(t *testing.T) {
	const refused = 67 // of 100

	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	from, to := h.wallet(1_000), h.stranger()
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(10_000_000)))

	p := newProxy(t, h.TronNode)
	d := h.driver(t, viaNodes(p.URL))

	first, err := h.d.Head(t.Context())
	h.must(err)

	const payments = 20

	paid := h.stranger()
	for range payments {
		_, err := h.Pay(t.Context(), paid, h.usdt, chain.Units(1_000_000))
		h.must(err)
		h.mine(1)
	}

	var (
		mu     sync.Mutex
		random = rand.New(rand.NewPCG(3, 4))
	)

	p.intercept(func(_ string, ask func() answer) answer {
		mu.Lock()
		defer mu.Unlock()

		if random.IntN(100) < refused {
			return answer{status: http.StatusTooManyRequests}
		}

		return ask()
	})

	began := time.Now()

	// A refusal that is left of many is tried again, as the engine does.
	until := func(what string, do func() error) {
		t.Helper()

		for time.Since(began) < time.Minute {
			err := do()
			if err == nil {
				t.Logf("%s: done after %v", what, time.Since(began).Round(time.Millisecond))
				return
			}

			t.Logf("%s: %v", what, err)
		}

		t.Fatalf("%s: not done after %v", what, time.Since(began))
	}

	var head chain.Head

	until("the head", func() (err error) { head, err = d.Head(t.Context()); return err })

	seen := 0

	for next := first.Tip.Height + 1; next <= head.Tip.Height; {
		until("blocks", func() error {
			blocks, err := d.Blocks(t.Context(), next, head.Tip.Height)
			for _, block := range blocks {
				next = block.Height + 1

				for _, moved := range block.Transfers {
					if moved.To == paid {
						seen++
					}
				}
			}

			return err
		})
	}

	if seen != payments {
		t.Errorf("%d of %d payments were read", seen, payments)
	}

	var signed chain.Signed

	until("a payout", func() error {
		order := h.order(from, h.usdt, to, 1_000_000)

		unsigned, err := d.Build(t.Context(), order)
		if err == nil {
			signed = h.signed(order, unsigned)
		}

		return err
	})
	until("its broadcast", func() error { return d.Broadcast(t.Context(), signed) })
}
