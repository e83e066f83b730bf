package payout_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/payoutstate"
	"github.com/seed-8ee7f392/payments/payout"
)

// A payout is signed anew within two hours of its acceptance; later only what replaces its last signature is.
func TestCheckSigning(t *testing.T) {
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	const late = 3 * time.Hour

	first, second := []string{"a/0"}, []string{"a/1"}

	for name, c := range map[string]struct {
		spent, spends []string
		age           time.Duration
		refused       bool
	}{
		"the first signature":               {spends: first},
		"the first signature, just in time": {spends: first, age: payout.GiveUpAfter},
		"the first signature, too late":     {spends: first, age: late, refused: true},
		"a replacement":                     {spent: first, spends: first},
		"a replacement a year later":        {spent: first, spends: first, age: 365 * 24 * time.Hour},
		"another nonce":                     {spent: first, spends: second},
		"another nonce, too late":           {spent: first, spends: second, age: late, refused: true},
		"a coin more": {
			spent:  []string{"x:0"},
			spends: []string{"y:1", "x:0"},
			age:    late,
		},
		"a coin of the signature before the last": {
			spent:   []string{"x:0", "y:1"},
			spends:  []string{"x:0"},
			age:     late,
			refused: true,
		},
		"what only expires":                         {spent: []string{"a/hash"}},
		"what only expires, too late":               {spent: []string{"a/hash"}, age: late, refused: true},
		"what only expires, too late, never signed": {age: late, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := payout.Payout{ID: "1", CreatedAt: made, Signing: payout.Signing{Spent: c.spent}}

			err := payoutstate.CheckSigning(p, c.spends, made.Add(c.age))
			if refused := fault.Code(
				err,
			) == "payout_signed_already"; refused != c.refused ||
				err != nil && !refused {
				t.Errorf("%v", err)
			}
		})
	}
}
