package engine_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// newEmptyCustomer returns an engine on simnet, whose blocks come every 2 seconds, with a deposit address of an
// account whose master wallet is empty.
func newEmptyCustomer(t *testing.T) *customer {
	t.Helper()

	w := newCustomer(t, t.Fatalf, sim.Config{})

	a, err := w.engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Without coin"})
	w.must(err)

	w.owner = event.Owner{AccountID: a.ID}
	w.deposit, err = w.engine.Invoices.CreateDeposit(
		t.Context(), invoice.DepositParams{Owner: w.owner, Network: "simnet"},
	)
	w.must(err)

	return w
}

// TestHeldSettlementIsReleasedOnceFunded releases a settlement with the first balance that covers it, not a minute
// after it was held.
func TestHeldSettlementIsReleasedOnceFunded(t *testing.T) {
	w := newEmptyCustomer(t)
	w.chain.Pay(w.deposit.Address, "USDX", chain.Pow10(6).Mul(400))
	w.pass(20*time.Second, 10)

	held := w.settlement()
	if held.Status != settlement.Held || held.Reason != settlement.InsufficientMasterBalance {
		t.Fatalf("the settlement is %s, %s", held.Status, held.Reason)
	}

	a, err := w.engine.Accounts.Get(t.Context(), w.owner.AccountID)
	w.must(err)
	master, err := internal.Of(w.engine).Transactions.MasterWallet(t.Context(), "simnet", a.Index)
	w.must(err)

	// Less than it asks for does nothing.
	due := held.DueAt
	half := held.RequiredNative.Share(chain.Units(1), chain.Units(2))
	w.chain.Fund(master.Address, "SIM", half)
	w.pass(2*time.Second, 1)

	if s := w.settlement(); s.Status != settlement.Held || !s.DueAt.Equal(due) {
		t.Errorf("with half of what it needs it is %s, looked at next at %s, want %s", s.Status, s.DueAt, due)
	}

	w.chain.Fund(master.Address, "SIM", held.RequiredNative.Sub(half))
	w.pass(2*time.Second, 1)

	if s := w.settlement(); s.Status != settlement.Releasing {
		t.Errorf("a block after its wallet was filled it is %s, %s", s.Status, s.Reason)
	}
}

// settlement returns the customer's only settlement.
func (w *customer) settlement() settlement.Settlement {
	w.t.Helper()

	list, err := internal.Of(w.engine).Store().(payments.Store).Settlements(
		w.t.Context(), settlement.Filter{Owner: w.owner, Limit: 2},
	)
	w.must(err)

	if len(list) != 1 {
		w.fatalf("there are %d settlements", len(list))
	}

	return list[0]
}

// TestSelectedInvoiceExpiresPromptly expires an invoice with the first block after its end, although the block
// comes after the deadline, and the balances were last compared before it.
func TestSelectedInvoiceExpiresPromptly(t *testing.T) {
	w := newCustomer(t, t.Fatalf, sim.Config{})

	created, err := w.engine.Invoices.Create(t.Context(), invoice.CreateParams{
		Owner:     w.owner,
		Price:     &invoice.Price{Currency: "USD", Amount: "25"},
		Options:   []invoice.OptionParams{{Network: "simnet", Asset: "SIM"}},
		ExpiresIn: 5 * time.Minute,
	})
	w.must(err)

	status := func() invoice.Status {
		inv, err := w.engine.Invoices.Get(t.Context(), w.owner, created.ID)
		w.must(err)

		return inv.Status
	}

	// The block before the end is a second old when the invoice ends.
	w.pass(created.ExpiresAt.Sub(w.clock())-time.Second, 30)
	w.setClock(created.ExpiresAt)
	w.work()

	if status() != invoice.Open {
		t.Fatalf("before a block of its end was read it is %s", status())
	}

	for after := range 4 {
		w.pass(time.Second, 1)

		if status() == invoice.Expired {
			t.Logf("it expired %d s after its end", after+1)
			return
		}
	}

	t.Errorf("4 seconds after its end it is %s", status())
}

func (w *customer) setClock(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.now = now
}
