package invoice

import (
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
)

func TestToleratedShortfallIsRoundedDown(t *testing.T) {
	for cents, want := range map[uint64]Status{
		989: Underpaid, // 1 % of 999 is 9.99: nine may be missing, ten may not
		990: Paid,
	} {
		inv := owed()
		inv.Kind, inv.Price, inv.ToleranceBPS = Crypto, decimal.Decimal{}, 100
		inv.Options[0].AmountDue = chain.Units(999)

		if inv.Recompute([]Payment{paying("1", Confirmed, cents)}, now); inv.Status != want {
			t.Errorf("%d of 999: %s, want %s", cents, inv.Status, want)
		}
	}
}
