package failover_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

var (
	isDown = &failover.Failure{Host: "n", What: "down"}
	above  = fault.New(fault.NotFound, "block_unknown", "above the tip")
)

// scripted has each node give a hash or an error.
func scripted(answers map[string]any) func(context.Context, *endpoint) (string, error) {
	return func(_ context.Context, e *endpoint) (string, error) {
		if hash, ok := answers[e.Host].(string); ok {
			return hash, nil
		}

		return "", answers[e.Host].(error)
	}
}

// What two nodes give alike is agreed on; the only node's word counts. Nodes that disagree are named.
func TestTwoNodesAgree(t *testing.T) {
	for name, c := range map[string]struct {
		answers   map[string]any // by host; a node without one is not configured
		want      string         // what is agreed on, or the code of the error
		disagrees string         // the hosts that are named for it
	}{
		"one node":                     {map[string]any{"a": "h"}, "h", ""},
		"the only node is down":        {map[string]any{"a": isDown}, "node_unavailable", ""},
		"both have it":                 {map[string]any{"a": "h", "b": "h"}, "h", ""},
		"the second has another":       {map[string]any{"a": "h", "b": "other"}, "nodes_disagree", "ab"},
		"the second fails":             {map[string]any{"a": "h", "b": isDown}, "nodes_missing", ""},
		"the second is not that far":   {map[string]any{"a": "h", "b": above}, "nodes_missing", ""},
		"the second lags":              {map[string]any{"a": "h", "b": failover.ErrLagging}, "nodes_missing", ""},
		"the third has it":             {map[string]any{"a": "h", "b": isDown, "c": "h"}, "h", ""},
		"the third outvotes the first": {map[string]any{"a": "other", "b": "h", "c": "h"}, "h", "a"},
		"one of three":                 {map[string]any{"a": "h", "b": above, "c": "other"}, "nodes_disagree", "ac"},
		"the preferred fails":          {map[string]any{"a": isDown, "b": "h"}, "nodes_missing", ""},
		"nobody answers":               {map[string]any{"a": isDown, "b": isDown}, "nodes_missing", ""},
	} {
		s := newSet(true)
		s.Nodes = s.Nodes[:len(c.answers)]

		got, err := failover.Agree(
			t.Context(), s, 1, failover.Subject{What: "block 7", Height: 7}, scripted(c.answers),
		)
		if err != nil {
			got = fault.Code(err)
		}

		if got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}

		if several := len(s.Nodes) > 1; err != nil && several &&
			(!errors.Is(err, chain.ErrNotAgreed) || !errors.Is(err, fault.Unavailable)) {
			t.Errorf("%s: %v is not chain.ErrNotAgreed", name, err)
		}

		named := ""

		for _, node := range s.States() {
			if node.Trouble == chain.NodeDisagrees {
				named += node.Name
			}

			if lacks := c.answers[node.Name] == any(isDown); lacks != (node.Trouble == chain.NodeSilent) {
				t.Errorf("%s: node %s is %q", name, node.Name, node.Trouble)
			}
		}

		if named != c.disagrees {
			t.Errorf("%s: nodes %q are named as disagreeing, want %q", name, named, c.disagrees)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := failover.Agree(
		ctx, newSet(false), 1, failover.Subject{}, scripted(map[string]any{"a": ctx.Err()}),
	)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, fault.Unavailable) {
		t.Errorf("canceled: %v", err)
	}
}

// A preferred node that two others contradict is not preferred any more, and neither is one of two that disagree.
func TestContradictedNodeIsDemoted(t *testing.T) {
	for name, answers := range map[string]map[string]any{
		"two others contradict it": {"a": "other", "b": "h", "c": "h"},
		"two nodes disagree":       {"a": "h", "b": "other", "c": isDown},
	} {
		for _, keep := range []bool{false, true} {
			s := newSet(keep)

			_, _ = failover.Agree(t.Context(), s, 1, failover.Subject{}, scripted(answers))

			if order, _ := askOnce(t, s, nil); order == "a" {
				t.Errorf("%s, keep %t: it is preferred still", name, keep)
			}
		}
	}
}

// After Alone a network goes on with what one node proves, and never with what none proves. A node that answers is not
// missing, whatever it answers.
func TestOneNodeGoesOnAlone(t *testing.T) {
	foreign := &failover.Mismatch{Host: "b", Shows: "serves another", Want: "net"}

	for name, c := range map[string]struct {
		others   map[string]any
		alone    time.Duration
		unproven bool
		want     string
	}{
		"the other is silent":            {map[string]any{"b": isDown}, time.Hour, false, "h"},
		"both others are":                {map[string]any{"b": isDown, "c": isDown}, time.Hour, false, "h"},
		"it is of another network":       {map[string]any{"b": foreign}, time.Hour, false, "h"},
		"alone is off":                   {map[string]any{"b": isDown}, 0, false, "nodes_missing"},
		"not proven":                     {map[string]any{"b": isDown}, time.Hour, true, "nodes_missing"},
		"the other lags":                 {map[string]any{"b": failover.ErrLagging}, time.Hour, false, "nodes_missing"},
		"the other is pruned":            {map[string]any{"b": failover.ErrPruned}, time.Hour, false, "nodes_missing"},
		"the other has another":          {map[string]any{"b": "other"}, time.Hour, false, "nodes_disagree"},
		"one of the others is not gone":  {map[string]any{"b": isDown, "c": above}, time.Hour, false, "nodes_missing"},
		"the other answers now and then": {map[string]any{"b": "sometimes"}, time.Hour, false, "nodes_missing"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSet(false)
				s.Nodes, s.Alone = s.Nodes[:1+len(c.others)], c.alone
				subject := failover.Subject{What: "block 7", Proven: !c.unproven}

				said := map[string]any{"a": "h", "b": c.others["b"], "c": c.others["c"]}
				ask := func() string {
					got, err := failover.Agree(t.Context(), s, 1, subject, scripted(said))
					if err != nil {
						return fault.Code(err)
					}

					return got
				}

				if c.others["b"] == "sometimes" {
					said["b"] = isDown
				}

				if got := ask(); got == "h" {
					t.Fatal("it goes on at once")
				}

				if c.others["b"] == "sometimes" {
					time.Sleep(c.alone / 2)

					said["b"] = "other"

					ask()

					said["b"] = isDown

					ask()
				}

				time.Sleep(c.alone/2 + time.Minute)

				if got := ask(); got == "h" && c.others["b"] == "sometimes" {
					t.Fatal("it goes on though the other answered meanwhile")
				}

				if c.others["b"] != "sometimes" {
					time.Sleep(c.alone / 2)
				}

				if got := ask(); got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}

				if alone := s.States()[0].Alone; alone != (c.want == "h" || c.unproven) {
					t.Errorf("it is named as alone: %t", alone)
				}

				said["b"] = "h"

				if got := ask(); got != "h" || s.States()[0].Alone {
					t.Errorf("%q with the other one back, alone %t", got, s.States()[0].Alone)
				}
			})
		})
	}
}

// Every node is asked at once, and one that hangs is not waited for once two have answered.
func TestEachNodeIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newSet(false), time.Now()

		err := s.AskEach(t.Context(), func(ctx context.Context, e *endpoint) error {
			if e.Host == "a" {
				<-ctx.Done()
				return &failover.Failure{Host: e.Host, What: "hangs"}
			}

			return nil
		})
		if err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}

		ctx, stop := context.WithTimeout(t.Context(), 15*time.Second)
		defer stop()

		err = s.AskEach(ctx, func(ctx context.Context, e *endpoint) error {
			if e.Host == "b" {
				return nil
			}

			<-ctx.Done()

			return &failover.Failure{Host: e.Host, What: "hangs"}
		})
		if err != nil {
			t.Error(err)
		}

		for _, node := range s.States() {
			if silent := node.Trouble == chain.NodeSilent; silent != (node.Name != "b") {
				t.Errorf("node %s is %q", node.Name, node.Trouble)
			}
		}
	})
}
