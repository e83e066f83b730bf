//go:build unix

package solana_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/twonodes"
)

// One node of two that lies about prices costs at most the quiet price. A single node costs at most what
// Config.MaxPriorityPrice allows; rent that it makes up is reserved only, as the network's program takes what it is.
func TestWhatALyingNodeMayCost(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
	s.fund(from, 10*sol, 1_000_000)
	s.fund(deposit, sol, 0)

	known, fresh := newAddress(t), newAddress(t)
	s.fund(chain.Party{Address: known}, sol, 1)

	pay := func(asset chain.Asset, to chain.Address) func(s *sender) (chain.Amount, error) {
		order := chain.Order{
			From:    from,
			Outputs: []chain.Output{{To: to, AssetID: asset.ID, Amount: chain.Units(1_000)}},
		}

		return func(s *sender) (chain.Amount, error) {
			order := order

			most, err := s.d.EstimateFee(t.Context(), order)
			if err != nil {
				return most, err
			}

			order.MaxFee = most
			unsigned, err := s.d.Build(t.Context(), order)

			return unsigned.MaxFee, err
		}
	}

	kinds := map[string]func(s *sender) (chain.Amount, error){
		"payout of SOL":                    pay(s.native(), known),
		"payout of tokens":                 pay(s.token(), known),
		"payout of tokens to a new holder": pay(s.token(), fresh),
		"release of SOL": func(s *sender) (chain.Amount, error) {
			steps, err := s.d.PlanSweep(t.Context(), chain.SweepRequest{
				Asset:   s.native(),
				Deposit: deposit,
				Master:  from,
				Amount:  chain.Units(sol),
			})
			if err != nil {
				return chain.Amount{}, err
			}

			return steps[len(steps)-1].Order.MaxFee, nil
		},
	}

	answers := func(asked string, forge func(result any) any) func(string, []any, any) (any, int) {
		return func(method string, _ []any, result any) (any, int) {
			if method == asked {
				return forge(result), 0
			}

			return result, 0
		}
	}
	price := func(price int) func(string, []any, any) (any, int) {
		return answers("getRecentPrioritizationFees", func(any) any {
			return []any{map[string]any{"slot": 1, "prioritizationFee": price}}
		})
	}
	rent := func(times int64) func(string, []any, any) (any, int) {
		return answers("getMinimumBalanceForRentExemption", func(result any) any {
			lamports, _ := result.(json.Number).Int64()
			return lamports * times
		})
	}

	half := func(result any) any {
		lamports, _ := result.(json.Number).Int64()
		return lamports / 2
	}

	lies := map[string]func(string, []any, any) (any, int){
		"a price of 0":             price(0),
		"a price of 0.1 lamports":  price(100_000),
		"half the rent":            answers("getMinimumBalanceForRentExemption", half),
		"a price of 9,000,000":     price(9_000_000_000_000),
		"9 times the rent":         rent(9),
		"a million times the rent": rent(1_000_000),
	}

	honest := map[string]chain.Amount{}

	for kind, cost := range kinds {
		var err error

		honest[kind], err = cost(s)
		must(t, err)
	}

	for _, lie := range slices.Sorted(maps.Keys(lies)) {
		liar := newFaultyNode(t, n)
		liar.set(lies[lie])

		nodes := map[string][]string{
			"alone":         {liar.URL},
			"first of two":  {liar.URL, n.URL},
			"second of two": {n.URL, liar.URL},
		}

		for _, place := range slices.Sorted(maps.Keys(nodes)) {
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				via := s.with(nodes[place]...)
				cost, err := kinds[kind](via)
				t.Logf("%-26s %-14s %-33s at most %-16s honest %-10s Health: %-14s %v",
					lie, place, kind, cost, honest[kind], twonodes.Named(via.d), err)

				// 1.4 million units at the highest price of one lamport, or at the quiet one.
				most := honest[kind].Mul(2).Add(chain.Units(4_000))
				if place == "alone" {
					most = honest[kind].Mul(9).Add(chain.Units(2_800_000))
				}

				switch code := fault.Code(err); {
				case place == "alone" && code == "insufficient_funds": // no wallet holds such a rent
				case err != nil && code != "nodes_disagree" && code != "fee_above_maximum":
					t.Errorf("%s, %s, %s: %v", lie, place, kind, err)
				case err == nil && most.Less(cost):
					t.Errorf("%s, %s, %s: %s, an honest node costs %s", lie, place, kind, cost, honest[kind])
				}
			}
		}
	}
}
