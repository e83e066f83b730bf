package txmgr

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
)

func TestBuiltTransactionMustBeWhatWasOrdered(t *testing.T) {
	n := chain.Units
	pay := chain.Output{To: "to", AssetID: "coin", Amount: n(100)}
	order := chain.Order{Outputs: []chain.Output{pay}, MaxFee: n(10)}
	sweep := order
	sweep.SubtractFee = true
	made := func(fee uint64, outputs ...chain.Output) chain.Unsigned {
		return chain.Unsigned{MaxFee: n(fee), Outputs: outputs, Payloads: []chain.Payload{{}}}
	}
	less := pay
	less.Amount = n(95)
	other := pay
	other.To = "thief"

	change := chain.Output{To: "change", AssetID: "coin", Amount: n(1)}
	for _, c := range []struct {
		name     string
		order    chain.Order
		unsigned chain.Unsigned
		ok       bool
	}{
		{"as ordered", order, made(10, pay), true},
		{"with change", order, made(10, pay, change), true},
		{"dearer", order, made(11, pay), false},
		{"to somebody else", order, made(10, other), false},
		{"less", order, made(10, less), false},
		{"nothing", order, made(10), false},
		{"nothing to sign", order, chain.Unsigned{Outputs: []chain.Output{pay}}, false},
		{"a sweep pays its fee", sweep, made(5, less), true},
		{"a sweep without its fee", sweep, made(5, pay), false},
		{"a sweep to somebody else", sweep, made(5, other), false},
	} {
		if err := matches(c.order, c.unsigned); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestRefusalReasonsAreClean(t *testing.T) {
	for in, want := range map[string]string{
		"policy_limit": "policy_limit",
		"":             "unspecified",
		"no! \n way:":  "noway",
		"é":            "unspecified",
	} {
		if got := reasonCode(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
