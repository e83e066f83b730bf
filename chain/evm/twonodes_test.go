package evm_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/internal/testing/twonodes"
)

// One of two nodes that is dead, slow, behind or on another fork: blocks are read and transactions priced, what
// confirms waits for two, and the node is named. TestOneOfTwoNodesIsGone shows Config.Alone.
func TestWhatOneOfTwoNodesStops(t *testing.T) {
	for _, trouble := range []string{twonodes.Dead, twonodes.Slow, twonodes.Behind, twonodes.Forked} {
		for i, place := range twonodes.Places {
			synctest.Test(t, func(t *testing.T) {
				nodes := []*fakeNode{newFakeNode(20), newFakeNode(20)}
				handlers, hosts := []http.Handler{nodes[0], nodes[1]}, []string{"a", "b"}

				switch trouble {
				case twonodes.Dead:
					handlers[i] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						w.WriteHeader(http.StatusBadGateway)
					})
				case twonodes.Slow:
					handlers[i] = nil // no answer within the timeout
				case twonodes.Behind:
					nodes[i].blocks = nodes[i].blocks[:len(nodes[i].blocks)-2]
				case twonodes.Forked:
					nodes[i].blocks = nodes[i].blocks[:2]
					for range 19 {
						nodes[i].extend("other")
					}
				}

				d := fakeDriver(
					t, fakeTransport{"a": handlers[0], "b": handlers[1]}, hosts,
					func(c *evm.Config) { c.Attempts, c.Timeout = 1, 10*time.Second },
				)

				answers := twonodes.Of(t.Context(), d, nativeOrder(d))
				answers.Print(t, "evm", trouble, place)
				answers.Check(t, trouble, place, true)
			})
		}
	}
}
