package checkout

import (
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		amount   string
		decimals uint8
		want     string
	}{
		{"0", 18, "0"},
		{"1", 18, "0.000000000000000001"},
		{"1000000", 6, "1"},
		{"1500000", 6, "1.5"}, // due and paid look alike
		{"5000000000000000", 18, "0.005"},
		{"1500001", 6, "1.500001"}, // never less than what it is
		{"21321000000000000", 18, "0.021321"},
		{"100", 0, "100"},
		{
			"115792089237316195423570985008687907853269984665640564039457584007913129639935",
			18,
			"115792089237316195423570985008687907853269984665640564039457.584007913129639935",
		},
	} {
		if got := formatUnits(chain.MustAmount(c.amount), c.decimals); got != c.want {
			t.Errorf("formatUnits(%s, %d) = %s, want %s", c.amount, c.decimals, got, c.want)
		}
	}
}

// What is shown and copied is what pays: read back, it is the same number of base units.
func TestUnitsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount, err := chain.AmountFromBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "amount"))
		if err != nil {
			t.Fatal(err)
		}

		decimals := rapid.Uint8Range(0, 77).Draw(t, "decimals")
		text := formatUnits(amount, decimals)

		back, err := chaindata.AmountFromDecimalFloor(decimal.RequireFromString(text), decimals)
		if err != nil || back != amount {
			t.Fatalf(
				"%s base units of %d decimals are shown as %s, which is %s (%v)",
				amount, decimals, text, back, err,
			)
		}
	})
}

func TestMoney(t *testing.T) {
	for _, c := range []struct{ amount, currency, want string }{
		{"49.9", "EUR", "49.90"},
		{"49", "EUR", "49.00"},
		{"0.00000001", "USD", "0.00000001"},
		{"1200", "JPY", "1200"},
		{"12000", "JPY", "12\u202f000"},
		{"1234567.5", "USD", "1\u202f234\u202f567.50"},
		{"1.5", "KWD", "1.500"},
	} {
		if got := formatMoney(decimal.RequireFromString(c.amount), c.currency); got != c.want {
			t.Errorf("formatMoney(%s %s) = %q, want %q", c.amount, c.currency, got, c.want)
		}
	}
}

// What is missing is never said to be less than it is.
func TestMoneyUp(t *testing.T) {
	for _, c := range []struct{ missing, price, currency, want string }{
		{"14.7925", "49.9", "EUR", "14.80"},
		{"14.80", "49.9", "EUR", "14.80"},
		{"0.00000001", "49.9", "EUR", "0.01"},
		{"0.00000001", "0.00000123", "USD", "0.00000001"},
		{"99.2", "1200", "JPY", "100"},
	} {
		if got := formatMoneyCeil(
			decimal.RequireFromString(c.missing), decimal.RequireFromString(c.price), c.currency,
		); got != c.want {
			t.Errorf(
				"formatMoneyCeil(%s of %s %s) = %q, want %q",
				c.missing, c.price, c.currency, got, c.want,
			)
		}
	}
}

func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		price, rate string
		decimals    uint8
		want        string
	}{
		{"49.9", "2340.5", 18, "0.0213203"}, // 7 places are worth less than a tenth of a cent; rounded up
		{"100", "1", 6, "100"},
		{"10", "2000", 18, "0.005"}, // as the amount due looks
		{"100", "3", 0, "34"},       // never more places than the asset has
		{"10", "0.0001", 18, "100000"},
		{"1", "0", 18, ""},
		{"0", "1", 18, ""},
	} {
		got, ok := estimate(decimal.RequireFromString(c.price), decimal.RequireFromString(c.rate), c.decimals)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("estimate(%s at %s) = %q, %v; want %q", c.price, c.rate, got, ok, c.want)
		}
	}
}
