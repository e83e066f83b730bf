package engine

import (
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// A merchant may put coins into a master wallet before its network was ever followed.
func TestWalletThatIsPaidBeforeItsNetworkIsFollowed(t *testing.T) {
	c := sim.NewUTXO(sim.UTXOConfig{})

	e := newEngine(t, map[string]string{"SIMB/USD": "60000"}, Config{
		Store:   memory.New(),
		Drivers: []chain.Driver{c},
	})

	made, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	n := c.Network()

	master, err := e.Transactions.MasterWallet(t.Context(), n.Slug, made.Index)
	if err != nil {
		t.Fatal(err)
	}

	c.Fund(master.Address, chain.Units(5_000_000))
	c.Mine(10)

	for did := true; did; {
		if did, err = e.Follow(t.Context(), n.Slug); err != nil {
			t.Fatal(err)
		}
	}

	owner := event.Owner{AccountID: made.ID, Livemode: n.Livemode}

	balances, err := e.Payouts.Balances(t.Context(), owner)
	if err != nil || len(balances) != 1 || balances[0].Available() != chain.Units(5_000_000) {
		t.Errorf("the balances are %+v, %v", balances, err)
	}
}
