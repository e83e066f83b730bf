package chaindata

import (
	"testing"

	"github.com/shopspring/decimal"
)

func TestUnitsForIsExact(t *testing.T) {
	for _, row := range []struct {
		value, rate string
		decimals    uint8
		want        string
	}{
		{"1", "3", 18, "333333333333333334"},
		{"0.00000001", "100000", 18, "100000"},
		{"0.00000001", "100000", 6, "1"},
		{"0", "5", 6, "0"},
		{"6", "3", 0, "2"},
		{"7", "3", 0, "3"},
		{"18.4", "1", 18, "18400000000000000000"},
		{"1e3", "0.00000123", 6, "813008130081301"},
	} {
		got, err := UnitsFor(
			decimal.RequireFromString(row.value), decimal.RequireFromString(row.rate), row.decimals,
		)
		if err != nil || got.String() != row.want {
			t.Errorf("%s at %s: %s, %v; want %s", row.value, row.rate, got, err, row.want)
		}
	}

	if _, err := UnitsFor(decimal.NewFromInt(1), decimal.Decimal{}, 6); err == nil {
		t.Error("a rate of 0 was taken")
	}
}
