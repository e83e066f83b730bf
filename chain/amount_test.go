package chain_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

const (
	max256 = "115792089237316195423570985008687907853269984665640564039457584007913129639935" // 2^256−1
	over   = "115792089237316195423570985008687907853269984665640564039457584007913129639936" // 2^256
)

var limit = new(big.Int).Lsh(big.NewInt(1), 256)

func TestParseAmount(t *testing.T) {
	for _, s := range []string{
		"0",
		"1",
		"9",
		"10",
		"18446744073709551615",
		"18446744073709551616",
		"1" + strings.Repeat("0", 77),
		max256,
	} {
		a, err := chain.ParseAmount(s)
		if err != nil || a.String() != s {
			t.Errorf("%s: got %s, error %v", s, a, err)
		}
	}

	for name, s := range map[string]string{
		"empty":                 "",
		"2^256":                 over,
		"78 digits above 2^256": strings.Repeat("9", 78),
		"79 digits":             "1" + strings.Repeat("0", 78),
		"79 digits, zero first": "0" + max256,
		"two zeros":             "00",
		"leading zero":          "01",
		"plus":                  "+1",
		"minus":                 "-1",
		"minus zero":            "-0",
		"space before":          " 1",
		"space after":           "1 ",
		"newline":               "1\n",
		"point":                 "1.0",
		"comma":                 "1,000",
		"underscore":            "1_000",
		"exponent":              "1e3",
		"hex":                   "0x10",
		"Arabic digits":         "١٢٣",
		"full-width digits":     "１２３",
		"superscript":           "1²",
		"NUL":                   "1\x00",
		"not UTF-8":             "1\xff",
		"word":                  "infinity",
	} {
		a, err := chain.ParseAmount(s)
		if !errors.Is(err, fault.Invalid) || fault.Code(err) != "amount_invalid" || !a.IsZero() {
			t.Errorf("%s: got %s, error %v; want fault.Invalid with amount_invalid", name, a, err)
		}
	}

	if _, err := chain.ParseAmount(strings.Repeat("x", 1<<20)); err == nil || len(err.Error()) > 400 {
		t.Error("a huge input must be refused with a short message")
	}
}

func TestMustAmountPanicsOnMalformedConstants(t *testing.T) {
	if got := chain.MustAmount("42"); got != chain.Units(42) {
		t.Errorf("got %s", got)
	}

	mustPanic(t, func() { chain.MustAmount("4.2") })
}

func TestAmountFromBigAndBytes(t *testing.T) {
	for name, n := range map[string]*big.Int{
		"nil":       nil,
		"minus one": big.NewInt(-1),
		"2^256":     limit,
		"2^300":     new(big.Int).Lsh(limit, 44),
	} {
		if a, err := chain.AmountFromBig(n); !errors.Is(err, fault.Invalid) || !a.IsZero() {
			t.Errorf("%s: got %s, error %v, want fault.Invalid", name, a, err)
		}
	}

	if a, err := chain.AmountFromBytes(make([]byte, 33)); !errors.Is(err, fault.Invalid) || !a.IsZero() {
		t.Errorf("33 bytes: got %s, error %v, want fault.Invalid", a, err)
	}

	for want, b := range map[string][]byte{"0": nil, "1": {1}, "256": {1, 0}, "65536": {0, 1, 0, 0}} {
		if a, err := chain.AmountFromBytes(b); err != nil || a.String() != want {
			t.Errorf("%x: got %s, error %v, want %s", b, a, err, want)
		}
	}
}

func TestRoundingOfWholeUnits(t *testing.T) {
	for _, c := range []struct {
		in          string
		decimals    uint8
		ceil, floor string // "" where the number is refused
	}{
		{"0", 18, "0", "0"},
		{"1", 0, "1", "1"},
		{"1", 18, "1000000000000000000", "1000000000000000000"},
		{"0.000001", 6, "1", "1"},
		{"0.0000011", 6, "2", "1"},
		{"0.0000000001", 6, "1", "0"},
		{"1.9999999", 6, "2000000", "1999999"},
		{"0.00000000000000000000000000000001", 8, "1", "0"},
		{"1.5", 0, "2", "1"},
		{max256, 0, max256, max256},
		{max256 + ".5", 0, "", max256},
		{over, 0, "", ""},
		{"1", 78, "", ""},
		{"1" + strings.Repeat("0", 70), 18, "", ""},
		{"-1", 18, "", ""},
		{"-0.4", 0, "", ""},
		{"-0.00000000000000000001", 18, "", ""},
	} {
		d := decimal.RequireFromString(c.in)
		for name, got := range map[string]struct {
			call func(decimal.Decimal, uint8) (chain.Amount, error)
			want string
		}{"ceil": {chaindata.AmountFromDecimalCeil, c.ceil}, "floor": {chaindata.AmountFromDecimalFloor, c.floor}} {
			a, err := got.call(d, c.decimals)
			if got.want == "" {
				if !errors.Is(err, fault.Invalid) {
					t.Errorf(
						"%s of %s at %d decimals: got %s, error %v, want fault.Invalid",
						name, c.in, c.decimals, a, err,
					)
				}
			} else if err != nil || a.String() != got.want {
				t.Errorf(
					"%s of %s at %d decimals: got %s, error %v, want %s",
					name, c.in, c.decimals, a, err, got.want,
				)
			}
		}
	}
}

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		units    string
		decimals uint8
		want     string
	}{
		{"0", 18, "0"},
		{"1", 18, "0.000000000000000001"},
		{"1500000", 6, "1.5"},
		{max256, 0, max256},
		{max256, 77, "1." + max256[1:]},
	} {
		if got := chain.MustAmount(c.units).Decimal(c.decimals).String(); got != c.want {
			t.Errorf("%s at %d decimals is %s, want %s", c.units, c.decimals, got, c.want)
		}
	}
}

func TestShareDoesNotOverflow(t *testing.T) {
	all, zero := chain.MustAmount(max256), chain.Units(0)
	for _, c := range []struct{ a, num, den, want chain.Amount }{
		{all, all, all, all},
		{all, zero, all, zero},
		{zero, all, all, zero},
		{
			all,
			chain.Units(1),
			chain.Units(2),
			chain.MustAmount("57896044618658097711785492504343953926634992332820282019728792003956564819967"),
		},
		{chain.Units(100), chain.Units(2), chain.Units(3), chain.Units(66)}, // down
		{chain.Units(1), chain.Units(9999), chain.Units(10000), zero},       // down
		// down, by less than one part in 2^253
		{chain.Units(7), all.Sub(chain.Units(1)), all, chain.Units(6)},
	} {
		if got := c.a.Share(c.num, c.den); got != c.want {
			t.Errorf("%s · %s / %s = %s, want %s", c.a, c.num, c.den, got, c.want)
		}
	}

	mustPanic(t, func() { all.Share(chain.Units(2), chain.Units(1)) })

	for bps, want := range map[int]uint64{0: 0, 1: 0, 50: 4, 9_999: 998, 10_000: 999} {
		if got := chaindata.BPS(chain.Units(999), bps); got != chain.Units(want) {
			t.Errorf("%d bps of 999 = %s, want %d", bps, got, want)
		}
	}
}

func TestRoundUpTo(t *testing.T) {
	for _, c := range []struct{ a, step, want uint64 }{
		{0, 7, 0},
		{1, 7, 7},
		{7, 7, 7},
		{8, 7, 14},
		{99, 1, 99},
		{1, 1000, 1000},
	} {
		if got := chain.Units(c.a).RoundUpTo(chain.Units(c.step)); got != chain.Units(c.want) {
			t.Errorf("%d up to a multiple of %d = %s, want %d", c.a, c.step, got, c.want)
		}
	}

	mustPanic(t, func() { chain.MustAmount(max256).RoundUpTo(chain.Units(2)) })
}

func TestArithmeticAtTheLimits(t *testing.T) {
	all, one := chain.MustAmount(max256), chain.Units(1)
	if got, ok := all.AddOK(one); ok {
		t.Errorf("2^256-1 + 1 = %s without overflow", got)
	}

	if got, ok := all.AddOK(chain.Units(0)); !ok || got != all {
		t.Errorf("2^256-1 + 0 = %s, %v", got, ok)
	}

	mustPanic(t, func() { all.Add(one) })
	mustPanic(t, func() { all.Mul(2) })
	mustPanic(t, func() { one.Sub(chain.Units(2)) })

	if got := one.SubFloor(all); !got.IsZero() {
		t.Errorf("1 - max = %s, want 0", got)
	}

	if want := new(
		big.Int,
	).Sub(new(big.Int).Lsh(big.NewInt(1), 240), big.NewInt(1)); chain.MaxTransfer.Big().
		Cmp(want) !=
		0 {
		t.Errorf("MaxTransfer is %s, want 2^240-1", chain.MaxTransfer)
	}

	sum := chain.MaxTransfer
	for range 65_534 { // 65,535 transfers in all: the promise of MaxTransfer's comment
		sum = sum.Add(chain.MaxTransfer)
	}

	for n := range uint8(78) {
		if got, want := chain.Pow10(n).String(), "1"+strings.Repeat("0", int(n)); got != want {
			t.Errorf("10^%d = %s", n, got)
		}
	}

	if n, ok := chain.MustAmount("18446744073709551615").Uint64(); !ok || n != 1<<64-1 {
		t.Errorf("2^64-1 as uint64: %d, %v", n, ok)
	}

	if _, ok := chain.MustAmount("18446744073709551616").Uint64(); ok {
		t.Error("2^64 fits a uint64")
	}
}

func TestAmountJSON(t *testing.T) {
	type object struct {
		Amount chain.Amount            `json:"amount"`
		By     map[chain.Amount]string `json:"by,omitempty"`
	}

	in := object{chain.MustAmount(max256), map[chain.Amount]string{chain.Units(7): "x"}}

	raw, err := json.Marshal(in)
	if want := `{"amount":"` + max256 + `","by":{"7":"x"}}`; err != nil || string(raw) != want {
		t.Fatalf("got %s, error %v, want %s", raw, err, want)
	}

	var out object
	if err := json.Unmarshal(
		raw, &out,
	); err != nil || out.Amount != in.Amount ||
		out.By[chain.Units(7)] != "x" {
		t.Fatalf("got %+v, error %v", out, err)
	}

	if raw, _ := json.Marshal(object{}); string(raw) != `{"amount":"0"}` {
		t.Errorf("the zero value is written %s", raw)
	}

	for _, bad := range []string{`1`, `1.5`, `"1.5"`, `"-1"`, `""`, `"` + over + `"`, `true`, `[]`} {
		out := object{Amount: chain.Units(5)}
		if err := json.Unmarshal(
			[]byte(`{"amount":`+bad+`}`), &out,
		); err == nil ||
			out.Amount != chain.Units(5) {
			t.Errorf("%s was read as %s, error %v", bad, out.Amount, err)
		}
	}
}

// amounts draws amounts of all magnitudes, the limits among them.
func amounts() *rapid.Generator[*big.Int] {
	return rapid.Custom(func(t *rapid.T) *big.Int {
		n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "bytes"))
		switch rapid.IntRange(0, 9).Draw(t, "shape") {
		case 0:
			n.Sub(limit, big.NewInt(1+rapid.Int64Range(0, 3).Draw(t, "below limit")))
		case 1:
			n.SetInt64(rapid.Int64Range(0, 3).Draw(t, "small"))
		case 2:
			n.Lsh(big.NewInt(1), uint(rapid.IntRange(0, 255).Draw(t, "power")))
		}

		return n
	})
}

func TestArithmeticAgreesWithBigInt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y, z := amounts().Draw(t, "x"), amounts().Draw(t, "y"), amounts().Draw(t, "z")
		a, b, c := fromBig(t, x), fromBig(t, y), fromBig(t, z)
		same := func(what string, got chain.Amount, want *big.Int) {
			t.Helper()

			if got.Big().Cmp(want) != 0 {
				t.Fatalf("%s: got %s, want %s", what, got, want)
			}
		}
		fits := func(n *big.Int) bool { return n.Cmp(limit) < 0 }

		if parsed, err := chain.ParseAmount(
			x.String(),
		); err != nil || parsed != a ||
			a.String() != x.String() {
			t.Fatalf("%s is parsed as %s, error %v", x, parsed, err)
		}

		bytes := a.Bytes32()
		if back, err := chain.AmountFromBytes(
			bytes[:],
		); err != nil || back != a ||
			new(big.Int).SetBytes(bytes[:]).Cmp(x) != 0 {
			t.Fatalf("%s as bytes is %x, and back %s (error %v)", x, bytes, back, err)
		}

		if n, ok := a.Uint64(); ok != x.IsUint64() || ok && n != x.Uint64() {
			t.Fatalf("%s as uint64 is %d, %v", x, n, ok)
		}

		if a.IsZero() != (x.Sign() == 0) || a.Cmp(b) != x.Cmp(y) || a.Less(b) != (x.Cmp(y) < 0) ||
			(a == b) != (x.Cmp(y) == 0) {
			t.Fatalf("%s and %s are compared wrongly", x, y)
		}

		lower, higher := x, y
		if x.Cmp(y) > 0 {
			lower, higher = y, x
		}

		same("min", chaindata.Min(a, b), lower)
		same("max", chaindata.Max(a, b), higher)
		same("difference", fromBig(t, higher).Sub(fromBig(t, lower)), new(big.Int).Sub(higher, lower))

		floor := new(big.Int)
		if x.Cmp(y) > 0 {
			floor.Sub(x, y)
		}

		same("floored difference", a.SubFloor(b), floor)

		sum := new(big.Int).Add(x, y)
		if got, ok := a.AddOK(b); ok != fits(sum) {
			t.Fatalf("%s + %s: overflow %v", x, y, !ok)
		} else if ok {
			same("sum", got, sum)
			same("sum", a.Add(b), sum)
		}

		factor := rapid.Uint64().Draw(t, "factor")
		if product := new(big.Int).Mul(x, new(big.Int).SetUint64(factor)); fits(product) {
			same("product", a.Mul(factor), product)
		} else {
			mustPanic(t, func() { a.Mul(factor) })
		}

		if higher.Sign() > 0 {
			share := new(big.Int).Mul(z, lower)
			same("share", c.Share(fromBig(t, lower), fromBig(t, higher)), share.Quo(share, higher))
		}

		bps := rapid.IntRange(0, 10_000).Draw(t, "bps")
		part := new(big.Int).Mul(x, big.NewInt(int64(bps)))
		same("bps", chaindata.BPS(a, bps), part.Quo(part, big.NewInt(10_000)))

		if y.Sign() > 0 {
			up := new(big.Int).Add(x, new(big.Int).Sub(y, big.NewInt(1)))
			up.Quo(up, y).Mul(up, y)

			if fits(up) {
				same("rounded up", a.RoundUpTo(b), up)
			} else {
				mustPanic(t, func() { a.RoundUpTo(b) })
			}
		}
	})
}

func TestWholeUnitsAgreeWithBigInt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := amounts().Draw(t, "x")
		decimals := rapid.Uint8Range(0, 77).Draw(t, "decimals")
		a := fromBig(t, x)
		whole := a.Decimal(decimals)
		up, err := chaindata.AmountFromDecimalCeil(whole, decimals)

		down, err2 := chaindata.AmountFromDecimalFloor(whole, decimals)
		if err != nil || err2 != nil || up != a || down != a {
			t.Fatalf(
				"%s at %d decimals is %s, and back %s and %s (errors %v, %v)",
				x, decimals, whole, up, down, err, err2,
			)
		}
		// A little more than a whole number of base units: down gives it, up the next one.
		more := whole.Add(decimal.New(1, -int32(decimals)-1))
		if down, err := chaindata.AmountFromDecimalFloor(more, decimals); err != nil || down != a {
			t.Fatalf("%s rounded down at %d decimals is %s (error %v), want %s", more, decimals, down, err, x)
		}

		next := new(big.Int).Add(x, big.NewInt(1))

		up, err = chaindata.AmountFromDecimalCeil(more, decimals)
		if next.Cmp(limit) == 0 {
			if !errors.Is(err, fault.Invalid) {
				t.Fatalf(
					"%s rounded up at %d decimals is %s, error %v, want fault.Invalid",
					more, decimals, up, err,
				)
			}
		} else if err != nil || up.Big().Cmp(next) != 0 {
			t.Fatalf("%s rounded up at %d decimals is %s (error %v), want %s", more, decimals, up, err, next)
		}
	})
}

func FuzzParseAmount(f *testing.F) {
	for _, s := range []string{
		"",
		"0",
		"00",
		"1",
		"-1",
		"+1",
		max256,
		over,
		"1e9",
		"１",
		strings.Repeat("9", 79),
		"0x1",
		" 1",
	} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, s string) {
		a, err := chain.ParseAmount(s)
		n, isNumber := new(big.Int).SetString(s, 10)
		// A number counts when it is written as big.Int itself writes it: no sign, no leading zero.
		want := isNumber && n.String() == s && n.Sign() >= 0 && n.Cmp(limit) < 0
		if (err == nil) != want {
			t.Fatalf("%q: error %v, want valid %v", s, err, want)
		}

		if err != nil {
			if !errors.Is(err, fault.Invalid) || !a.IsZero() {
				t.Fatalf("%q: got %s with error %v", s, a, err)
			}

			return
		}

		if a.Big().Cmp(n) != 0 || a.String() != s {
			t.Fatalf("%q is read as %s", s, a)
		}
	})
}

func fromBig(t interface{ Fatalf(string, ...any) }, n *big.Int) chain.Amount {
	a, err := chain.AmountFromBig(n)
	if err != nil {
		t.Fatalf("%s: %v", n, err)
	}

	return a
}

func mustPanic(t interface{ Fatalf(string, ...any) }, f func()) {
	if !panics(f) {
		t.Fatalf("no panic")
	}
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()

	f()

	return false
}

func BenchmarkParseAmount(b *testing.B) {
	b.ReportAllocs()

	for b.Loop() {
		if _, err := chain.ParseAmount("1234567890123456789012"); err != nil {
			b.Fatal(err)
		}
	}
}
