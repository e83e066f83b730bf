package failover_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// TestOneNodeOfSeveralRefusesNothing gives each of three nodes an answer: nil, a refusal or no usable one. For good, no
// node refuses alone.
func TestOneNodeOfSeveralRefusesNothing(t *testing.T) {
	never := fault.New(fault.Invalid, "destination_not_payable", "it is a mint")
	again := fault.New(fault.Invalid, "destination_not_payable", "it is a program")
	less := fault.New(fault.Invalid, "amount_invalid", "too little")
	poor := fault.New(fault.State, "insufficient_funds", "too little is there")
	dear := fault.New(fault.Limited, "fee_above_maximum", "it costs too much")
	down := &failover.Failure{Host: "n", What: "down"}

	for name, c := range map[string]struct {
		answers []error // of the nodes a, b and c; without one a node is not configured
		asked   string
		want    error
		alone   bool // it is one of several that refuses, and no other answers
	}{
		"one node":                       {[]error{never}, "a", never, false},
		"the preferred one accepts":      {[]error{nil, never}, "a", nil, false},
		"the second one accepts":         {[]error{never, nil}, "ab", nil, false},
		"the third one accepts":          {[]error{never, less, nil}, "abc", nil, false},
		"both refuse":                    {[]error{never, again}, "ab", again, false},
		"the first and the third refuse": {[]error{never, down, again}, "abc", again, false},
		"the others do not answer":       {[]error{never, down, failover.ErrLagging}, "abc", never, true},
		"the preferred one is down":      {[]error{down, never, nil}, "abc", nil, false},
		"one refuses for now":            {[]error{never, poor}, "ab", poor, false},
		"the first refuses for now":      {[]error{poor, never}, "ab", poor, false},
		"two reasons":                    {[]error{never, less}, "ab", never, false},
		"too dear, by one alone":         {[]error{dear, down}, "ab", dear, false},
		"nobody answers":                 {[]error{down, down}, "ab", fault.Unavailable, false},
	} {
		for _, keep := range []bool{false, true} {
			s := newSet(keep)
			s.Nodes = s.Nodes[:len(c.answers)]

			script := map[string]error{}
			for i, answer := range c.answers {
				script[s.Nodes[i].Host] = answer
			}

			asked, err := callOrder(script, func(f func(context.Context, *endpoint) error) error {
				return s.AskRefusable(t.Context(), 1, 0, f)
			})
			wantOrder(t, name, asked, c.asked)

			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}

			want := c.want
			if c.alone {
				want = fault.Unavailable
			}

			_, err = callOrder(script, func(f func(context.Context, *endpoint) error) error {
				return s.AskFinal(t.Context(), 1, 0, f)
			})
			if !errors.Is(err, want) || want == nil && err != nil || c.alone && errors.Is(err, c.want) {
				t.Errorf("%s, for good: %v, want %v", name, err, want)
			}
		}
	}

	ctx, cancel := context.WithCancel(t.Context())

	err := newSet(
		false,
	).AskRefusable(ctx, 1, 0, func(context.Context, *endpoint) error { cancel(); return never })
	if !errors.Is(err, context.Canceled) || !errors.Is(err, fault.Unavailable) {
		t.Errorf("canceled: %v", err)
	}
}
