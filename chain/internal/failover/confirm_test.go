package failover_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// TestABlockIsConfirmedByTwoNodes gives each of three nodes a hash or an error at the height.
func TestABlockIsConfirmedByTwoNodes(t *testing.T) {
	down := &failover.Failure{Host: "n", What: "down"}
	above := fault.New(fault.NotFound, "block_unknown", "above the tip")

	for name, c := range map[string]struct {
		answers map[string]any // by host; a node without one is not configured
		want    error
	}{
		"one node":                     {map[string]any{"a": "other"}, nil},
		"both have it":                 {map[string]any{"a": "h", "b": "h"}, nil},
		"the second has another":       {map[string]any{"a": "h", "b": "other"}, fault.NotFound},
		"the preferred has another":    {map[string]any{"a": "other", "b": "h"}, fault.NotFound},
		"nobody has it":                {map[string]any{"a": "other", "b": "other"}, fault.NotFound},
		"the second fails":             {map[string]any{"a": "h", "b": down}, fault.Unavailable},
		"the second is not that far":   {map[string]any{"a": "h", "b": above}, fault.Unavailable},
		"the second lags":              {map[string]any{"a": "h", "b": failover.ErrLagging}, fault.Unavailable},
		"the third has it":             {map[string]any{"a": "h", "b": down, "c": "h"}, nil},
		"the third outvotes the first": {map[string]any{"a": "other", "b": "h", "c": "h"}, nil},
		"one of three":                 {map[string]any{"a": "h", "b": above, "c": "other"}, fault.NotFound},
		"the preferred fails":          {map[string]any{"a": down, "b": "h"}, fault.Unavailable},
	} {
		s := newSet(true)
		s.Nodes = s.Nodes[:len(c.answers)]

		err := s.Confirm(t.Context(), 7, "h", func(_ context.Context, e *endpoint) (string, error) {
			if hash, ok := c.answers[e.Host].(string); ok {
				return hash, nil
			}

			return "", c.answers[e.Host].(error)
		})
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}

		got, _ := askOnce(t, s, nil)
		wantOrder(t, name+": the preferred node afterwards", got, "a")
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	err := newSet(false).Confirm(ctx, 7, "h", func(context.Context, *endpoint) (string, error) {
		return "", ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, fault.Unavailable) {
		t.Errorf("canceled: %v", err)
	}
}

// A count is confirmed as a block is, and an error names it.
func TestACountIsConfirmedByTwoNodes(t *testing.T) {
	down := &failover.Failure{Host: "n", What: "down"}

	for name, c := range map[string]struct {
		answers map[string]any
		want    error
		code    string
	}{
		"one node":            {map[string]any{"a": uint64(5)}, nil, ""},
		"both count so":       {map[string]any{"a": uint64(3), "b": uint64(3)}, nil, ""},
		"the second counts 0": {map[string]any{"a": uint64(3), "b": uint64(0)}, fault.NotFound, "count_unknown"},
		"the preferred counts 9": {
			map[string]any{"a": uint64(9), "b": uint64(3)},
			fault.NotFound,
			"count_unknown",
		},
		"the second lags": {
			map[string]any{"a": uint64(3), "b": failover.ErrLagging},
			fault.Unavailable,
			"node_unavailable",
		},
		"the second fails":      {map[string]any{"a": uint64(3), "b": down}, fault.Unavailable, "node_unavailable"},
		"two of three count so": {map[string]any{"a": uint64(9), "b": uint64(3), "c": uint64(3)}, nil, ""},
	} {
		s := newSet(true)
		s.Nodes = s.Nodes[:len(c.answers)]

		err := s.ConfirmCount(
			t.Context(),
			7,
			3,
			"coins",
			func(_ context.Context, e *endpoint) (uint64, error) {
				if count, ok := c.answers[e.Host].(uint64); ok {
					return count, nil
				}

				return 0, c.answers[e.Host].(error)
			},
		)
		if !errors.Is(err, c.want) || c.want == nil && err != nil || fault.Code(err) != c.code {
			t.Errorf("%s: %v, want %v %s", name, err, c.want, c.code)
		}
	}
}
