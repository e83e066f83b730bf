//go:build unix

package tron_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// A node whose answers contradict another's is demoted: the next one is asked first for a while.
func TestADemotedNodeIsNotPreferred(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	h.mine(5)

	var (
		mu    sync.Mutex
		order string // of the nodes that were asked for their newest block
	)

	proxies := []*proxy{newProxy(t, h.TronNode), newProxy(t, h.TronNode)}
	for i, name := range []string{"a", "b"} {
		proxies[i].intercept(func(path string, ask func() answer) answer {
			if strings.Contains(path, "getnowblock") {
				mu.Lock()
				order += name
				mu.Unlock()
			}

			return ask()
		})
	}

	d := h.driver(t, viaNodes(proxies[0].URL, proxies[1].URL))

	for _, want := range []string{"a", "b"} {
		order = ""

		_, err := d.Head(t.Context())
		h.must(err)

		if !strings.HasPrefix(order, want) {
			t.Errorf("the nodes were asked in the order %q, want %q first", order, want)
		}

		d.DemoteNode("it contradicts itself")
	}
}
