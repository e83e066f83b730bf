package failover_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// TestOneNodeOfSeveralRefusesNothing gives each of three nodes an answer: nil, a refusal or no usable one.
func TestOneNodeOfSeveralRefusesNothing(t *testing.T) {
	never := fault.New(fault.Invalid, "destination_not_payable", "it is a mint")
	again := fault.New(fault.Invalid, "destination_not_payable", "it is a program")
	less := fault.New(fault.Invalid, "amount_invalid", "too little")
	poor := fault.New(fault.State, "insufficient_funds", "too little is there")
	down := &failover.Failure{Host: "n", What: "down"}

	for name, c := range map[string]struct {
		answers []error // of the nodes a, b and c; without one a node is not configured
		asked   string
		want    error
	}{
		"one node":                       {[]error{never}, "a", never},
		"the preferred one accepts":      {[]error{nil, never}, "a", nil},
		"the second one accepts":         {[]error{never, nil}, "ab", nil},
		"the third one accepts":          {[]error{never, less, nil}, "abc", nil},
		"both refuse":                    {[]error{never, again}, "ab", again},
		"the first and the third refuse": {[]error{never, down, again}, "abc", again},
		"the others do not answer":       {[]error{never, down, failover.ErrLagging}, "abc", never},
		"the preferred one is down":      {[]error{down, never, nil}, "abc", nil},
		"one refuses for now":            {[]error{never, poor}, "ab", poor},
		"the first refuses for now":      {[]error{poor, never}, "ab", poor},
		"two reasons":                    {[]error{never, less}, "ab", never},
		"nobody answers":                 {[]error{down, down}, "ab", fault.Unavailable},
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
