//go:build unix

package tron_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/twonodes"
)

// One of two nodes that is dead or slow, or names an old newest block: blocks are read, what confirms waits for two, as
// does the fee of transactions, which no block proves, and the node is named.
func TestWhatOneOfTwoNodesStops(t *testing.T) {
	for _, trouble := range []string{twonodes.Dead, twonodes.Slow, twonodes.Behind} {
		for i, place := range twonodes.Places {
			h := newHarness(t, testenv.TronOptions{SolidLag: 1})
			from := h.wallet(100_000)
			known := h.wallet(1).Address
			h.mine(5)

			ill := newProxy(t, h.TronNode)
			urls := []string{h.URL, h.URL}
			urls[i] = ill.URL

			if trouble == twonodes.Behind {
				stale := frozenTip(t, h)
				h.mine(2)
				ill.intercept(stale)
			}

			d := h.driver(t, viaNodes(urls...), func(c *tron.Config) {
				c.Timeout = 2 * time.Second
				c.HTTPClient = &http.Client{Transport: twonodes.Transport{
					Host:    strings.TrimPrefix(ill.URL, "http://"),
					Trouble: trouble,
				}}
			})

			answers := twonodes.Of(t.Context(), d, h.order(from, h.native, known, 1_000))
			answers.Print(t, "tron", trouble, place)
			answers.Check(t, trouble, place, false)
		}
	}
}
