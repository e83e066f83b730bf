package agree_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

type endpoint struct{ failover.Node }

// nodes returns nodes named a, b, c.
func nodes() *failover.Set[*endpoint] {
	s := &failover.Set[*endpoint]{
		Network: "net",
		Log:     slog.New(slog.DiscardHandler),
		Keep:    true,
		Verify:  func(context.Context, *endpoint) error { return nil },
	}
	for _, host := range []string{"a", "b", "c"} {
		s.Nodes = append(s.Nodes, &endpoint{Node: failover.Node{Host: host}})
	}

	return s
}

// A balance is what two nodes say; nothing is concluded of one of which each says something else, and one that a node
// says alone is named.
func TestBalancesAreWhatTwoNodesSay(t *testing.T) {
	const none, unreadable = 0, 1 // no answer at all; a contract that does not answer

	holdings := []chain.Holding{{Address: "first"}, {Address: "second"}}

	for name, c := range map[string]struct {
		says        map[string][2]uint64 // by node
		want        [2]uint64
		disputed    []int
		provisional []int
		asked       string
	}{
		"two agree at once": {
			says:  map[string][2]uint64{"a": {7, 8}, "b": {7, 8}, "c": {9, 9}},
			want:  [2]uint64{7, 8},
			asked: "ab",
		},
		"the third decides one": {
			says:  map[string][2]uint64{"a": {7, 8}, "b": {7, 9}, "c": {6, 9}},
			want:  [2]uint64{7, 9},
			asked: "abc",
		},
		"the first lies alone": {
			says:  map[string][2]uint64{"a": {7, 8}, "b": {5, 6}, "c": {5, 6}},
			want:  [2]uint64{5, 6},
			asked: "abc",
		},
		"all differ about one": {
			says:     map[string][2]uint64{"a": {7, 8}, "b": {7, 9}, "c": {7, 10}},
			want:     [2]uint64{7, 0},
			disputed: []int{1},
			asked:    "abc",
		},
		"two differ, the third is down": {
			says:     map[string][2]uint64{"a": {7, 8}, "b": {5, 8}},
			want:     [2]uint64{0, 8},
			disputed: []int{0},
			asked:    "abc",
		},
		"one alone answers": {
			says:        map[string][2]uint64{"b": {7, 8}},
			want:        [2]uint64{7, 8},
			provisional: []int{0, 1},
			asked:       "abc",
		},
		"the others cannot read one": {
			says:        map[string][2]uint64{"a": {7, 8}, "b": {unreadable, 8}},
			want:        [2]uint64{7, 8},
			provisional: []int{0},
			asked:       "abc",
		},
		"another one cannot read it": {
			says:  map[string][2]uint64{"a": {7, 8}, "b": {unreadable, 8}, "c": {7, 8}},
			want:  [2]uint64{7, 8},
			asked: "abc",
		},
		"the first cannot read it": {
			says:     map[string][2]uint64{"a": {unreadable, 8}, "b": {7, 8}},
			want:     [2]uint64{unreadable, 8},
			disputed: []int{0},
			asked:    "ab",
		},
		"nobody answers beside the first": {
			says:        map[string][2]uint64{"a": {7, 8}},
			want:        [2]uint64{7, 8},
			provisional: []int{0, 1},
			asked:       "abc",
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			read := func(
				_ context.Context,
				e *endpoint,
				of []chain.Holding,
			) (out []chain.Amount, bad []chain.UnreadableHolding, err error) {
				asked += e.Host

				says, answers := c.says[e.Host]
				if !answers {
					return nil, nil, e.Garbled("down")
				}

				for i, h := range of {
					said := says[slices.Index(holdings, h)]
					out = append(out, chain.Units(said))

					if said == unreadable {
						bad = append(bad, chain.UnreadableHolding{
							Holding: h,
							Index:   i,
							Err: fault.New(
								fault.State, "reverted", "the contract reverts",
							),
						})
					}
				}

				return out, bad, nil
			}

			amounts, err := agree.Balances(t.Context(), nodes(), 1, none, holdings, read)

			var disputed, provisional []int

			if unreadable, ok := errors.AsType[*chain.UnreadableError](err); ok {
				for _, u := range unreadable.Holdings {
					if u.Provisional {
						provisional = append(provisional, u.Index)
					} else {
						disputed = append(disputed, u.Index)
					}
				}
			} else if err != nil {
				t.Fatal(err)
			}

			want := []chain.Amount{chain.Units(c.want[0]), chain.Units(c.want[1])}
			if !slices.Equal(amounts, want) || !slices.Equal(disputed, c.disputed) ||
				!slices.Equal(provisional, c.provisional) || asked != c.asked {
				t.Errorf(
					"got %v, disputed %v, provisional %v, asked %s",
					amounts,
					disputed,
					provisional,
					asked,
				)
			}
		})
	}
}

// Where one node is configured its word counts.
func TestBalanceOfTheOnlyNodeCounts(t *testing.T) {
	only := nodes()
	only.Nodes = only.Nodes[:1]

	read := func(
		context.Context, *endpoint, []chain.Holding,
	) ([]chain.Amount, []chain.UnreadableHolding, error) {
		return []chain.Amount{chain.Units(7)}, nil, nil
	}

	amounts, err := agree.Balances(t.Context(), only, 1, 0, []chain.Holding{{Address: "first"}}, read)
	if err != nil || !slices.Equal(amounts, []chain.Amount{chain.Units(7)}) {
		t.Errorf("got %v, %v", amounts, err)
	}
}
