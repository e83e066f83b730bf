//go:build unix

package solana_test

import (
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
)

// TestOlderBackendAfterVersion1 has a transaction of version 1 read, and then the node replaced by an older one that
// refuses to be asked for that version: what it can show is read from it all the same.
func TestOlderBackendAfterVersion1(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	bad := newFaultyNode(t, n)
	to, other := newAddress(t), newAddress(t)

	through := func(c *solana.Config) { c.RPC = bad.URL }
	follows := []*followed{
		newFollowed(t, n.driver(t, through), to, other),
		newFollowed(t, n.byAddress(t, through), to, other),
	}

	pay := func(form string, to chain.Address) string {
		t.Helper()

		var paid struct{ Signature string }
		runWallet(t, map[string]any{
			"do":       "pay",
			"url":      n.URL,
			"secret":   n.authority.String(),
			"to":       to,
			"lamports": "7000000",
			"form":     form,
		}, &paid)
		must(t, n.SolanaNode.Mine(3))

		for _, f := range follows {
			f.steps(10)
		}

		return paid.Signature
	}

	for _, f := range follows {
		f.steps(2)
	}

	first := pay("v1", to)

	bad.set(func(method string, params []any, result any) (any, int) {
		if len(params) > 1 {
			options, _ := params[1].(map[string]any)
			if asked, _ := options["maxSupportedTransactionVersion"].(float64); asked > 0 {
				return refusal(-32602), 0
			}
		}

		return result, 0
	})

	second := pay("v0", other)

	for _, f := range follows {
		f.wants(to, first)
		f.wants(other, second)
	}

	bad.set(nil) // and by a newer one again

	third := pay("v1", to)

	for _, f := range follows {
		f.wants(to, first, third)
	}
}
