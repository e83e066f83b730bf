package invoice

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

func TestDisplayDecimals(t *testing.T) {
	for _, row := range []struct {
		rate     string
		decimals uint8
		want     uint8
	}{
		{"1800", 18, 7},
		{"1000", 18, 6},
		{"1000.00000001", 18, 7},
		{"1", 6, 3},
		{"0.9", 6, 3},
		{"60000", 8, 8},
		{"200000", 8, 8},
		{"0.001", 6, 0},
		{"0.00000100", 6, 0},
		{"1", 2, 2},
		{"5", 0, 0},
	} {
		if got := displayDecimals(decimal.RequireFromString(row.rate), row.decimals); got != row.want {
			t.Errorf("at %s with %d decimals: %d, want %d", row.rate, row.decimals, got, row.want)
		}
	}
}

func TestQuote(t *testing.T) {
	rate := decimal.RequireFromString("0.9")
	fresh := func() Invoice {
		inv := owed()
		inv.Options[0] = Option{ID: "o", Network: "n", AssetID: "x", Asset: "USDC", Decimals: 6}

		return inv
	}

	inv := fresh()
	if err := inv.quote("o", rate, chain.Units(1), nil, now, 20*time.Minute); err != nil {
		t.Fatal(err)
	}
	// 100 ÷ 0.9 = 111.111111…, shown with three decimals, rounded up.
	if o := inv.Options[0]; o.AmountDue.String() != "111112000" || o.DisplayDecimals != 3 ||
		!o.Raise.IsZero() ||
		!o.QuoteExpiresAt.Equal(now.Add(20*time.Minute)) {
		t.Errorf("quoted %+v", o)
	}

	inv = fresh()
	if err := inv.quote(
		"o", rate, chain.Units(111_111_113), nil, now, time.Minute,
	); !refusedForNow(err, "amount_too_small") {
		t.Errorf("a first quote below the minimum: %v", err)
	}
	// What is left is below the minimum: raised to it, and paying it is not too much.
	inv = fresh()
	most := paying("1", Confirmed, 0)

	most.Amount, most.Decimals, most.Rate, most.Credit = chain.Units(
		111_000_000,
	), 6, rate, decimal.RequireFromString(
		"99.9",
	)
	if err := inv.quote("o", rate, chain.Units(5_000_000), []Payment{most}, now, time.Minute); err != nil {
		t.Fatal(err)
	}

	if o := inv.Options[0]; o.AmountDue.String() != "116000000" || o.Raise.String() != "4888000" {
		t.Errorf("raised to %s, by %s", o.AmountDue, o.Raise)
	}

	rest := most

	rest.ID, rest.Amount, rest.Credit = "2", chain.Units(5_000_000), decimal.RequireFromString("4.5")
	if inv.Recompute([]Payment{most, rest}, now); inv.Status != Paid || len(inv.Flags) != 0 {
		t.Errorf("paying what was asked: %s %v", inv.Status, inv.Flags)
	}

	rest.Amount, rest.Credit = chain.Units(6_000_000), decimal.RequireFromString("5.4")
	if inv.Recompute([]Payment{most, rest}, now); !inv.Has(Overpaid) {
		t.Errorf("paying more than was asked: %v", inv.Flags)
	}
	// A price that no transfer could move.
	inv = fresh()

	inv.Price = decimal.New(1, 75)
	if err := inv.quote(
		"o", rate, chain.Units(1), nil, now, time.Minute,
	); !refusedForNow(err, "amount_too_large") {
		t.Errorf("a price beyond 2^240: %v", err)
	}
}

// refusedForNow reports whether a call was refused with a code, and may succeed at another price.
func refusedForNow(err error, code string) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Code == code && f.Transient
}

// FuzzQuote: what a quote asks for always pays, and never asks for a display step too much. Row 29 of the
// pitfalls: exact for any price, rate and number of decimals.
func FuzzQuote(f *testing.F) {
	f.Add(uint64(9_000_000_000), uint64(180_000_000_000), uint8(18))
	f.Add(uint64(1), uint64(100), uint8(0))
	f.Add(uint64(10_000_000_000), uint64(90_000_000), uint8(6))
	f.Add(uint64(1<<63), uint64(100), uint8(24))
	f.Fuzz(func(t *testing.T, price, rate uint64, decimals uint8) {
		if price == 0 || rate < 100 || decimals > 30 {
			t.Skip()
		}

		p := decimal.NewFromBigInt(new(big.Int).SetUint64(price), -8)
		r := decimal.NewFromBigInt(new(big.Int).SetUint64(rate), -8)

		inv := Invoice{
			ID:      "i",
			Kind:    Fiat,
			Status:  Open,
			Price:   p,
			Options: []Option{{ID: "o", Decimals: decimals}},
		}
		if err := inv.quote("o", r, chain.Units(1), nil, now, time.Minute); err != nil {
			if fault.Code(err) == "amount_too_large" {
				return
			}

			t.Fatal(err)
		}

		o := inv.Options[0]

		credit := o.AmountDue.Decimal(decimals).Mul(r)
		if credit.Cmp(p) < 0 {
			t.Fatalf("%s at %s asks for %s, which is worth only %s", p, r, o.AmountDue, credit)
		}

		step := o.DisplayStep().Decimal(decimals).Mul(r)
		if credit.Sub(p).Cmp(step) >= 0 {
			t.Fatalf(
				"%s at %s asks for %s, which is %s too much with a step of %s",
				p, r, o.AmountDue, credit.Sub(p), step,
			)
		}

		if o.AmountDue.RoundUpTo(o.DisplayStep()) != o.AmountDue {
			t.Fatalf("%s is no whole number of %s", o.AmountDue, o.DisplayStep())
		}

		paid := []Payment{
			{
				ID:       "1",
				OptionID: "o",
				Status:   Confirmed,
				Amount:   o.AmountDue,
				Credit:   credit,
				Decimals: decimals,
				Rate:     r,
			},
		}
		if inv.Recompute(paid, now); inv.Status != Paid || inv.Has(Overpaid) {
			t.Fatalf("paying exactly what was asked: %s %v", inv.Status, inv.Flags)
		}
	})
}
