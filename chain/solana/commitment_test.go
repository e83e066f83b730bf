//go:build unix

package solana_test

import (
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
)

// TestNothingDependsOnTheEarlierCommitment has a node refuse commitment "confirmed" with -32602, from the start on or
// while it is read: payments are credited and payouts are confirmed at "finalized" alone.
func TestNothingDependsOnTheEarlierCommitment(t *testing.T) {
	for _, c := range []struct {
		name   string
		before int // payments before the node refuses
	}{
		{"refused from the start", 0},
		{"refused from one day on", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNode(t, solanago.TokenProgramID)
			s := newSender(t, n)
			from, to := s.party(chain.RoleMaster, 1), newAddress(t)
			s.fund(from, sol, 2_000_000)

			refuse := func() { must(t, n.Commitments("processed", "finalized")) }
			if c.before == 0 {
				refuse()
			}

			follows := []*followed{
				newFollowed(t, n.driver(t), to),
				newFollowed(t, n.byAddress(t), to),
			}

			for _, f := range follows {
				f.steps(2)
			}

			var paid []string

			for i := range 4 {
				if i > 0 && i == c.before {
					refuse()
				}

				paid = append(paid, n.pay(t, to, nativeAsset, 5_000_000), n.pay(t, to, n.asset, 3_000))
				must(t, n.SolanaNode.Mine(5))

				for _, f := range follows {
					f.steps(12)
				}
			}

			for _, f := range follows {
				f.wants(to, paid...)

				if f.cursor.Final.IsZero() || f.cursor.Stopped != "" {
					t.Errorf("the network stands at %+v", f.cursor)
				}
			}

			for _, asset := range []chain.Asset{s.native(), s.token()} {
				tx := s.sign(chain.Order{
					From:    from,
					Outputs: []chain.Output{{To: to, AssetID: asset.ID, Amount: chain.Units(1_000_000)}},
				})
				must(t, s.d.Broadcast(t.Context(), tx))
				must(t, n.SolanaNode.Mine(1))

				// In a block that is not final it is on its way.
				status, err := s.d.Status(t.Context(), tx)
				if err != nil || status.State != chain.TxPooled {
					t.Errorf("in a block that is not final: %+v, %v", status, err)
				}

				must(t, n.SolanaNode.Mine(4))

				for name, read := range map[string]chain.Sender{"by block": s.d, "by address": s.d.Histories()} {
					status, err := read.Status(t.Context(), tx)
					if err != nil || status.State != chain.TxIncluded || !status.Final || status.Reverted {
						t.Errorf("%s, in a final block: %+v, %v", name, status, err)
					}
				}
			}
		})
	}
}
