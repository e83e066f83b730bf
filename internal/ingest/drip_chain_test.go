package ingest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Row 77 of the pitfalls: coin of a contract confirms at its own depth, however much anybody adds to it meanwhile.
func TestLaterRisesNeverRestartTheDepthOfAnEarlierPayment(t *testing.T) {
	for name, drip := range map[string]chain.Amount{
		"a wei each time": chain.Units(1),
		"a payment each":  chain.Pow10(16),
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{NoFinality: true})
			inv := w.sell("SIM", coin(1))

			w.chain.PayInternal(addressOf(inv), coin(1))

			for range 60 {
				w.chain.PayInternal(addressOf(inv), drip)
				w.mine(1)

				if w.get(inv).Status == invoice.Paid {
					break
				}
			}

			if got := w.get(inv); got.Status != invoice.Paid {
				t.Fatalf("after two minutes of drips the invoice is %s", got.Status)
			}

			w.mine(60)

			held, sum := w.chain.Balance(addressOf(inv), "SIM"), chain.Amount{}
			for _, p := range w.payments(inv.ID) {
				if p.Status == invoice.Confirmed {
					sum = sum.Add(p.Amount)
				}
			}

			if held.Less(sum) || sum.Less(coin(1)) {
				t.Errorf("%s is confirmed, and %s arrived", sum, held)
			}
		})
	}
}

// newReleasing returns an invoice over 3 SIM that lacks 2, at whose address the release of a token has begun and cannot
// be planned while harness.stuck is set, as it is; and that release's settlement.
func newReleasing(t *testing.T) (w *harness, inv invoice.Invoice, settlementID string) {
	t.Helper()

	w = newHarness(t, sim.Config{})
	w.chain.Fund(w.master(), "SIM", coin(1))
	inv = w.sell("SIM", coin(3))

	w.chain.Pay(addressOf(inv), "SIM", coin(1))
	w.chain.Pay(addressOf(inv), "USDX", dollars(100))
	w.mine(40)
	w.want(inv, invoice.Underpaid, coin(1), chain.Amount{})

	settlements, _, err := w.engine.Settlements.List(
		t.Context(), settlement.Filter{Owner: w.owner, InvoiceID: inv.ID, Limit: 10},
	)
	w.must(err)

	i := slices.IndexFunc(settlements, func(s settlement.Settlement) bool { return s.Asset == "USDX" })
	if i < 0 {
		t.Fatalf("no settlement of the token: %+v", settlements)
	}

	settlementID = settlements[i].ID

	w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, settlementID))
	w.mine(1)
	w.set(&w.stuck, true)
	w.mine(1)
	w.wantReleasing(settlementID)

	return w, inv, settlementID
}

// wantReleasing checks that a release is under way.
func (w *harness) wantReleasing(settlementID string) {
	w.t.Helper()

	if got, err := w.engine.Settlements.Get(w.t.Context(), w.owner, settlementID); err != nil ||
		got.Status != settlement.Releasing {
		w.t.Fatalf("the release is %s: %v", got.Status, err)
	}
}

// Row 78 of the pitfalls: an invoice that was paid in time does not expire because a release of its address was on its
// way when its end came.
func TestComparisonThatConcludedNothingDoesNotLetAnInvoiceExpire(t *testing.T) {
	w, inv, released := newReleasing(t)

	w.chain.PayInternal(addressOf(inv), coin(2))

	for w.clock().Before(inv.ExpiresAt.Add(5 * time.Minute)) {
		w.pass(20 * time.Second)
		w.chain.Mine(1)
		w.work()
	}

	if got := w.get(inv); got.Status == invoice.Expired {
		t.Fatal(
			"the invoice expired while a release was on its way: what was paid in time was not looked for",
		)
	}

	w.set(&w.stuck, false)

	for range 400 {
		if got, err := w.engine.Settlements.Get(t.Context(), w.owner, released); err == nil &&
			got.Status == settlement.Released {
			break
		}

		w.mine(1)
	}

	w.idle(31 * time.Second)
	w.mine(16)
	w.want(inv, invoice.Paid, coin(3), chain.Amount{})
}
