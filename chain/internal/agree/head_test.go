package agree_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// chainOf is what a node shows: its blocks up to a tip, on a branch of its own from a height on, where that is not 0.
type chainOf struct {
	tip, safe, final uint64
	branch           uint64
	pace             time.Duration // 12 s where it is 0
}

func (c chainOf) at(height uint64) chain.Ref {
	hash := fmt.Sprint("block ", height)
	if c.branch > 0 && height >= c.branch {
		hash += " of a branch"
	}

	at := time.Unix(0, 0).Add(time.Duration(height) * cmp.Or(c.pace, 12*time.Second))

	return chain.Ref{Height: height, Hash: hash, Time: at.Truncate(time.Second)}
}

func (c chainOf) head() chain.Head {
	head := chain.Head{Tip: c.at(c.tip)}
	if c.safe > 0 {
		head.Safe = c.at(c.safe)
	}

	if c.final > 0 {
		head.Final = c.at(c.final)
	}

	return head
}

// The head that is agreed on is the newest block that two nodes have, and the lower of what two name as safe and final.
func TestHeadIsWhatTwoNodesHave(t *testing.T) {
	for name, c := range map[string]struct {
		shows            map[string]chainOf // by node; one without is not there
		nodes            int
		tip, safe, final uint64
		code             string
		named            map[string]chain.NodeTrouble
	}{
		"one node": {
			shows: map[string]chainOf{"a": {tip: 100, safe: 90, final: 80}},
			nodes: 1, tip: 100, safe: 90, final: 80,
		},
		"two alike": {
			shows: map[string]chainOf{"a": {tip: 100, safe: 90, final: 80}, "b": {tip: 100, safe: 90, final: 80}},
			nodes: 2, tip: 100, safe: 90, final: 80,
		},
		"the lower of two": {
			shows: map[string]chainOf{"a": {tip: 100, safe: 90, final: 80}, "b": {tip: 99, safe: 60, final: 50}},
			nodes: 2, tip: 99, safe: 60, final: 50,
		},
		"one calls its tip final": {
			shows: map[string]chainOf{"a": {tip: 100, safe: 100, final: 100}, "b": {tip: 100, safe: 90, final: 80}},
			nodes: 2, tip: 100, safe: 90, final: 80,
		},
		"one names none: depth stands in": {
			shows: map[string]chainOf{"a": {tip: 100, safe: 100, final: 100}, "b": {tip: 100}},
			nodes: 2, tip: 100, safe: 85, final: 85,
		},
		"none names any": {
			shows: map[string]chainOf{"a": {tip: 100}, "b": {tip: 100}},
			nodes: 2, tip: 100,
		},
		"one is two blocks behind": {
			shows: map[string]chainOf{"a": {tip: 100}, "b": {tip: 98}},
			nodes: 2, tip: 98,
			named: map[string]chain.NodeTrouble{"b": chain.NodeBehind},
		},
		"one is one block behind": {
			shows: map[string]chainOf{"a": {tip: 100}, "b": {tip: 99}},
			nodes: 2, tip: 99,
		},
		"two of three are far": {
			shows: map[string]chainOf{"a": {tip: 100}, "b": {tip: 50}, "c": {tip: 100}},
			nodes: 3, tip: 100,
			named: map[string]chain.NodeTrouble{"b": chain.NodeBehind},
		},
		"a fork of one block": {
			shows: map[string]chainOf{"a": {tip: 100}, "b": {tip: 100, branch: 100}},
			nodes: 2, tip: 99,
		},
		"two branches": {
			shows: map[string]chainOf{"a": {tip: 100}, "b": {tip: 100, branch: 50}},
			nodes: 2, code: "nodes_disagree",
			named: map[string]chain.NodeTrouble{"a": chain.NodeDisagrees, "b": chain.NodeDisagrees},
		},
		"two branches of 96 s": {
			shows: map[string]chainOf{"a": {tip: 100}, "b": {tip: 100, branch: 93}},
			nodes: 2, tip: 92,
		},
		"two branches of 108 s": {
			shows: map[string]chainOf{"a": {tip: 100}, "b": {tip: 100, branch: 92}},
			nodes: 2, code: "nodes_disagree",
			named: map[string]chain.NodeTrouble{"a": chain.NodeDisagrees, "b": chain.NodeDisagrees},
		},
		"two branches of 8 s, of short blocks": {
			shows: map[string]chainOf{
				"a": {tip: 1000, final: 500, pace: 200 * time.Millisecond},
				"b": {tip: 1000, final: 500, pace: 200 * time.Millisecond, branch: 960},
			},
			nodes: 2, tip: 936, final: 500,
		},
		"two branches of two minutes, of short blocks": {
			shows: map[string]chainOf{
				"a": {tip: 1000, pace: 200 * time.Millisecond},
				"b": {tip: 1000, pace: 200 * time.Millisecond, branch: 400},
			},
			nodes: 2, code: "nodes_disagree",
			named: map[string]chain.NodeTrouble{"a": chain.NodeDisagrees, "b": chain.NodeDisagrees},
		},
		"a third one decides": {
			shows: map[string]chainOf{"a": {tip: 100, branch: 50}, "b": {tip: 100}, "c": {tip: 99}},
			nodes: 3, tip: 99,
		},
		"one is not there": {
			shows: map[string]chainOf{"a": {tip: 100, final: 80}},
			nodes: 2, code: "nodes_missing",
			named: map[string]chain.NodeTrouble{"b": chain.NodeSilent},
		},
		"none is there": {
			nodes: 2, code: "node_unavailable",
			named: map[string]chain.NodeTrouble{"a": chain.NodeSilent, "b": chain.NodeSilent},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := nodes()
			s.Nodes = s.Nodes[:c.nodes]

			head, err := agree.Head(t.Context(), s, agree.HeadReader[*endpoint]{
				Head: func(_ context.Context, e *endpoint) (chain.Head, error) {
					shown, there := c.shows[e.Host]
					if !there {
						return chain.Head{}, e.Fail(failover.Unreachable, "refused")
					}

					return shown.head(), nil
				},
				At: func(_ context.Context, e *endpoint, height uint64) (chain.Ref, error) {
					if height > c.shows[e.Host].tip {
						return chain.Ref{}, failover.ErrLagging
					}

					return c.shows[e.Host].at(height), nil
				},
				Depth: 16,
			})

			if fault.Code(err) != c.code || head.Tip.Height != c.tip || head.Safe.Height != c.safe ||
				head.Final.Height != c.final {
				t.Errorf(
					"tip %d, safe %d, final %d, %v",
					head.Tip.Height,
					head.Safe.Height,
					head.Final.Height,
					err,
				)
			}

			for _, node := range s.States() {
				if node.Trouble != c.named[node.Name] {
					t.Errorf("node %s is named as %q: %s", node.Name, node.Trouble, node.Why)
				}
			}
		})
	}
}
