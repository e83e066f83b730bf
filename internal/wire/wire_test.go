package wire_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

func TestTime(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 123_999_999, time.FixedZone("x", 3600))
	if got, want := wire.Time(at), "2026-01-31T11:00:00.123Z"; got != want {
		t.Errorf("Time = %s, want %s", got, want)
	}

	if got := wire.Time(time.Time{}); got != "" {
		t.Errorf("zero Time = %q", got)
	}

	if _, err := wire.ParseTime("created_after", "yesterday"); !errors.Is(err, fault.Invalid) {
		t.Errorf("ParseTime: %v", err)
	}
}

func TestParseDecimal(t *testing.T) {
	for s, want := range map[string]string{"0": "0", "12.50": "12.5", "0.00000001": "0.00000001", "49": "49"} {
		if d, err := wire.ParseDecimal("p", s); err != nil || wire.Decimal(d) != want {
			t.Errorf("ParseDecimal(%q) = %s, %v", s, d, err)
		}
	}

	for _, s := range []string{
		"", "-1", "+1", "1e3", ".5", "5.", "1.123456789", "00", "01.5", "1,5", "٣", "0x1",
		"1.2.3", "99999999999999999999999999999999999999999",
	} {
		if d, err := wire.ParseDecimal("p", s); !errors.Is(err, fault.Invalid) {
			t.Errorf("ParseDecimal(%q) = %s, %v; want fault.Invalid", s, d, err)
		}
	}

	if got := wire.OptionalDecimal(decimal.NullDecimal{}); got != "" {
		t.Errorf("OptionalDecimal = %q", got)
	}
}

func FuzzParseDecimal(f *testing.F) {
	f.Add("12.5")
	f.Add("0.00000001")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := wire.ParseDecimal("p", s)
		if err != nil {
			return
		}

		again, err := wire.ParseDecimal("p", wire.Decimal(d))
		if err != nil || !again.Equal(d) || d.IsNegative() || d.Exponent() < -8 {
			t.Fatalf("%q → %s → %s, %v", s, d, again, err)
		}
	})
}
