package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// payAtMost requests a payout that may cost a maximum network fee, empty for the estimate.
func (s *approvingShop) payAtMost(t *testing.T, amount chain.Amount, most string) map[string]any {
	t.Helper()

	body := payoutBody("SIM", amount.String(), s.there)
	if most != "" {
		body = strings.Replace(body, `"memo"`, `"max_network_fee":"`+most+`","memo"`, 1)
	}

	s.payouts++

	return s.ok(t, s.do(t, request{
		method: "POST",
		path:   "/v1/payouts",
		key:    s.pays,
		body:   body,
		header: header("Idempotency-Key", fmt.Sprintf("payout-%d", s.payouts)),
	}))
}

// feesOf20USD has the network ask for fees at which a payout may cost about 20 USD, and returns that maximum.
func (s *approvingShop) feesOf20USD(t *testing.T) chain.Amount {
	t.Helper()

	most := func() chain.Amount {
		return chain.MustAmount(s.pay(t, chain.Pow10(16))["max_network_fee"].(string))
	}

	low, _ := most().Uint64()
	times := 8_000_000_000_000_000 / low // 0.008 SIM at 2,500 USD
	s.network.SetFee(times*sim.DefaultBaseFee, times*sim.DefaultPriority)

	if got := most(); got.Less(chain.Pow10(12).Mul(7_300)) || chain.Pow10(12).Mul(8_800).Less(got) {
		t.Fatalf("a payout may cost %s", got)
	}

	return most()
}

// A payout whose maximum network fee is above half of its amount, and above 5 USD, waits for a person; one whose
// request names that fee does not. The sum above which an account asks for approval counts both.
func TestAMaximumFeeAboveItsShareWaitsForAPerson(t *testing.T) {
	s := newApprovingShop(t)

	sum := decimal.NewFromInt(100)
	if _, err := s.engine.Accounts.UpdateSettings(
		t.Context(), s.account.ID,
		account.Settings{Name: "Corner Shop", ApproveAboveUSD: &sum, PayoutsPerHour: 1_000},
	); err != nil {
		t.Fatal(err)
	}

	if p := s.payAtMost(t, chain.Pow10(12), ""); p["approval"] != nil { // 0.0025 USD, and a small fee
		t.Errorf("with a fee below 5 USD it waits: %v", p)
	}

	fee := s.feesOf20USD(t)

	for name, c := range map[string]struct {
		halves uint64 // of the fee
		named  bool
		waits  bool
		reason any
	}{
		"the fee is two thirds":                 {halves: 3, waits: true, reason: "network_fee"},
		"the fee is two thirds, and named":      {halves: 3, named: true},
		"the fee is a third":                    {halves: 6},
		"with the fee above the sum":            {halves: 9, waits: true},
		"with the fee above the sum, named":     {halves: 9, named: true, waits: true},
		"a thousandth of the fee":               {halves: 0, waits: true, reason: "network_fee"},
		"a thousandth of the fee, fee is named": {halves: 0, named: true},
	} {
		amount, most := fee.Mul(c.halves).Share(chain.Units(1), chain.Units(2)), ""
		if c.halves == 0 {
			amount = fee.Share(chain.Units(1), chain.Units(1000))
		}

		if c.named {
			most = fee.String()
		}

		p := s.payAtMost(t, amount, most)
		id := p["id"].(string)

		approval, _ := p["approval"].(map[string]any)
		if waits := approval["required"] == true; waits != c.waits || approval["reason"] != c.reason {
			t.Errorf("%s: the approval is %v", name, approval)
			continue
		}

		s.work(t)

		want := map[bool]string{true: "pending", false: "confirmed"}[c.waits]
		if status, _ := s.status(t, id); status != want {
			t.Errorf("%s: it is %s, want %s", name, status, want)
		}

		if !c.waits {
			continue
		}

		s.ok(t, s.approve(t, id, s.approves))
		s.work(t)

		if status, _ := s.status(t, id); status != "confirmed" {
			t.Errorf("%s: once approved it is %s", name, status)
		}
	}
}
