package walletstate

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
)

// most is the largest amount, which a token may claim to have moved.
func most(t *testing.T) chain.Amount {
	t.Helper()

	n, err := chain.ParseAmount(
		"115792089237316195423570985008687907853269984665640564039457584007913129639935",
	)
	if err != nil {
		t.Fatal(err)
	}

	return n
}

type moves = []chain.Transfer

func TestPayments(t *testing.T) {
	out := chain.Output{To: "shop", AssetID: "usd", Amount: chain.Units(100)}
	moved := func(from, to chain.Address, n uint64) chain.Transfer {
		return chain.Transfer{From: from, To: to, AssetID: "usd", Amount: chain.Units(n)}
	}
	other := moved("us", "shop", 100)
	other.AssetID = "coin"

	huge := moved("us", "them", 0)
	huge.Amount = most(t)

	for name, c := range map[string]struct {
		transfers moves
		from      chain.Address
		want      int
	}{
		"as ordered":                     {moves{moved("us", "shop", 100)}, "us", 1},
		"twice":                          {moves{moved("us", "shop", 100), moved("us", "shop", 100)}, "us", 2},
		"from several":                   {moves{moved("", "shop", 100)}, "us", 1},
		"from anybody":                   {moves{moved("them", "shop", 100)}, "", 1},
		"from somebody else":             {moves{moved("them", "shop", 100)}, "us", 0},
		"of another asset":               {moves{other}, "us", 0},
		"less":                           {moves{moved("us", "shop", 99)}, "us", 0},
		"less, the rest to the token":    {moves{moved("us", "shop", 99), moved("us", "token", 1)}, "us", 1},
		"the same, from anybody":         {moves{moved("us", "shop", 99), moved("us", "token", 1)}, "", 0},
		"less, and too much elsewhere":   {moves{moved("us", "shop", 99), moved("us", "token", 2)}, "us", 0},
		"all of it to the token":         {moves{moved("us", "token", 100)}, "us", 0},
		"more, and some of it back":      {moves{moved("shop", "us", 50), moved("us", "shop", 150)}, "us", 1},
		"the shop pays the fee":          {moves{moved("us", "shop", 100), moved("shop", "token", 1)}, "us", 1},
		"to ourselves":                   {moves{moved("us", "us", 100)}, "us", 0},
		"sums that no amount can be":     {moves{huge, huge, moved("us", "shop", 99)}, "us", 0},
		"nothing":                        {nil, "us", 0},
		"more than was sent has arrived": {moves{moved("us", "token", 100), moved("token", "shop", 101)}, "us", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Payments(c.transfers, c.from, out); got != c.want {
				t.Errorf("pays %d times, want %d", got, c.want)
			}
		})
	}
}
