package agree_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

func moved(hash string, index uint32, amount uint64) chain.Transfer {
	return chain.Transfer{TxHash: hash, Index: index, To: "to", Amount: chain.Units(amount)}
}

// block returns a block with transactions that moved something.
func block(transfers ...chain.Transfer) chain.Block {
	b := chain.Block{Ref: chain.Ref{Height: 7, Hash: "seven"}, Transfers: transfers}

	for _, moved := range transfers {
		if !slices.ContainsFunc(b.Spent, func(s chain.Spend) bool { return s.By == moved.TxHash }) {
			b.Spent = append(b.Spent, chain.Spend{By: moved.TxHash, Shared: true})
		}
	}

	return b
}

// spends returns of which transactions a block shows who signed them.
func spends(b chain.Block) (hashes string) {
	for _, spend := range b.Spent {
		hashes += spend.By
	}

	return hashes
}

// Of a block is believed what two nodes show of each transaction; the others are unread.
func TestBlockIsWhatTwoNodesShow(t *testing.T) {
	const internal = chaindata.InternalIndex

	one, two, forged := moved("1", 0, 10), moved("2", 0, 20), moved("1", 0, 99)
	inside, invented := moved("1", internal, 5), moved("1", internal, 500)

	for name, c := range map[string]struct {
		shown  map[string]chain.Block // by node
		want   []chain.Transfer
		unread []string
		spends string // the transactions of which it is shown who signed them
		asked  string
		code   string
	}{
		"two agree": {
			shown:  map[string]chain.Block{"a": block(one, two), "b": block(one, two), "c": block()},
			want:   []chain.Transfer{one, two},
			spends: "12",
			asked:  "ab",
		},
		"the third decides": {
			shown:  map[string]chain.Block{"a": block(forged, two), "b": block(one, two), "c": block(one, two)},
			want:   []chain.Transfer{one, two},
			spends: "12",
			asked:  "abc",
		},
		"nobody agrees about one": {
			shown:  map[string]chain.Block{"a": block(forged, two), "b": block(one, two), "c": block(two)},
			want:   []chain.Transfer{two},
			unread: []string{"1"},
			spends: "12",
			asked:  "abc",
		},
		"two do not show it": {
			shown:  map[string]chain.Block{"a": block(one, two), "b": block(two), "c": block(two)},
			want:   []chain.Transfer{two},
			spends: "2",
			asked:  "abc",
		},
		"one alone": {
			shown: map[string]chain.Block{"b": block(one)},
			asked: "abc",
			code:  "nodes_missing",
		},
		"two nodes, one has another block": {
			shown: map[string]chain.Block{"a": block(one), "b": {}},
			asked: "abc",
			code:  "nodes_disagree",
		},
		"another block": {
			shown: map[string]chain.Block{"a": block(one), "b": {}, "c": {}},
			asked: "abc",
			code:  "block_unknown",
		},
		"an internal transfer that one alone shows": {
			shown:  map[string]chain.Block{"a": block(one, inside), "b": block(one), "c": block(one)},
			want:   []chain.Transfer{one},
			spends: "1",
			asked:  "ab",
		},
		"an internal transfer that one invents": {
			shown:  map[string]chain.Block{"a": block(one, invented), "b": block(one, inside)},
			want:   []chain.Transfer{one},
			spends: "1",
			asked:  "ab",
		},
		"an internal transfer that two show": {
			shown:  map[string]chain.Block{"a": block(one, inside), "b": block(one, inside)},
			want:   []chain.Transfer{one, inside},
			spends: "1",
			asked:  "ab",
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			read := func(_ context.Context, e *endpoint) (chain.Block, error) {
				asked += e.Host

				shown, answers := c.shown[e.Host]

				switch {
				case !answers:
					return chain.Block{}, e.Garbled("down")
				case shown.Hash == "":
					return chain.Block{}, fault.New(fault.NotFound, "block_unknown", "another block")
				}

				return shown, nil
			}

			got, err := agree.Block(t.Context(), nodes(), 1, 0, chain.Ref{Height: 7, Hash: "seven"}, read)
			if fault.Code(err) != c.code || asked != c.asked {
				t.Fatalf("%v, asked %s; want code %q, asked %s", err, asked, c.code, c.asked)
			}

			var unread []string
			for _, u := range got.Unread {
				unread = append(unread, u.TxHash)
			}

			if c.code == "" && spends(got) != c.spends {
				t.Errorf("signed are %s, want %s", spends(got), c.spends)
			}

			if !slices.Equal(got.Transfers, c.want) || !slices.Equal(unread, c.unread) ||
				(got.Unverified != "") != (len(c.unread) > 0) {
				t.Errorf("got %+v, unread %v, unverified %q", got.Transfers, unread, got.Unverified)
			}
		})
	}
}

// That a transaction is included, what it cost and what it did is what two nodes say.
func TestStatusIsWhatTwoNodesSay(t *testing.T) {
	included := func(fee uint64, final bool) chain.TxStatus {
		return chain.TxStatus{
			State: chain.TxIncluded,
			Block: chain.Ref{Height: 7, Hash: "seven"},
			Final: final,
			Fee:   chain.Units(fee),
		}
	}
	pooled, unknown := chain.TxStatus{State: chain.TxPooled}, chain.TxStatus{State: chain.TxUnknown}

	for name, c := range map[string]struct {
		says  map[string]chain.TxStatus
		fee   uint64
		state chain.TxState
		final bool
		code  string
	}{
		"two agree": {
			says:  map[string]chain.TxStatus{"a": included(5, true), "b": included(5, true)},
			fee:   5,
			state: chain.TxIncluded,
			final: true,
		},
		"one calls it final": {
			says:  map[string]chain.TxStatus{"a": included(5, true), "b": included(5, false)},
			fee:   5,
			state: chain.TxIncluded,
		},
		"the third decides": {
			says: map[string]chain.TxStatus{
				"a": included(9, true),
				"b": included(5, true),
				"c": included(5, true),
			},
			fee:   5,
			state: chain.TxIncluded,
			final: true,
		},
		"two differ": {
			says: map[string]chain.TxStatus{"a": included(9, true), "b": included(5, true)},
			code: "nodes_disagree",
		},
		"one alone": {
			says: map[string]chain.TxStatus{"a": included(5, true)},
			code: "nodes_missing",
		},
		"the other waits": {
			says: map[string]chain.TxStatus{"a": included(5, true), "b": pooled},
			code: "node_behind",
		},
		"the first waits": {
			says:  map[string]chain.TxStatus{"a": pooled, "b": included(5, true)},
			state: chain.TxPooled,
		},
		"another knows it": {
			says:  map[string]chain.TxStatus{"a": unknown, "b": pooled},
			state: chain.TxPooled,
		},
		"another shows it": {
			says: map[string]chain.TxStatus{"a": unknown, "b": included(5, true)},
			code: "node_behind",
		},
		"two others show it": {
			says:  map[string]chain.TxStatus{"a": unknown, "b": included(5, true), "c": included(5, true)},
			fee:   5,
			state: chain.TxIncluded,
			final: true,
		},
		"nobody knows it":  {says: map[string]chain.TxStatus{"a": unknown, "b": unknown}, state: chain.TxUnknown},
		"none can be told": {code: "node_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := agree.Status(
				t.Context(), nodes(), 1, "hash",
				func(_ context.Context, e *endpoint) (chain.TxStatus, error) {
					status, answers := c.says[e.Host]
					if !answers {
						return status, e.Garbled("down")
					}

					return status, nil
				},
			)

			if fault.Code(err) != c.code || err != nil && !errors.Is(err, fault.Unavailable) {
				t.Fatalf("%+v, %v; want code %q", got, err, c.code)
			}

			if got.State != c.state || got.Fee != chain.Units(c.fee) || got.Final != c.final {
				t.Errorf("got %+v", got)
			}
		})
	}
}
