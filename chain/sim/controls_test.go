package sim_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
)

// A fork returns what its blocks held to the pool, drops it, or holds it itself.
func TestForkDecidesAboutOrphans(t *testing.T) {
	for _, c := range []struct {
		name                 string
		orphans              sim.Orphans
		afterFork, afterMine uint64
	}{
		{"returned", sim.ReturnOrphans, 0, 7},
		{"dropped", sim.DropOrphans, 0, 0},
		{"included again", sim.ReincludeOrphans, 7, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			network := sim.New(sim.Config{})
			to := network.NewAddress()

			network.Pay(to, "USDX", chain.Units(7))
			network.Mine(1)
			network.Fork(1, c.orphans)

			if got := network.Balance(to, "USDX"); got != chain.Units(c.afterFork) {
				t.Errorf("%s after the fork, want %d", got, c.afterFork)
			}

			network.Mine(1)

			if got := network.Balance(to, "USDX"); got != chain.Units(c.afterMine) {
				t.Errorf("%s after the next block, want %d", got, c.afterMine)
			}
		})
	}
}

// Party is the key that the signer has for an account's wallet, at the address that the driver derives.
func TestPartyIsWhatTheDriverDerives(t *testing.T) {
	network := sim.New(sim.Config{})
	keys := sim.NewSigner(1, nil)
	party := network.Party(keys, chain.RoleMaster, 3)

	public, err := keys.PublicKey(t.Context(), party.Key)
	if err != nil {
		t.Fatal(err)
	}

	want, err := network.Driver().(chain.Deriver).DeriveAddress(public)
	if err != nil || party.Address != want || party.Key.Index != 3 || party.Key.Role != chain.RoleMaster {
		t.Errorf("party %+v, want the address %s: %v", party, want, err)
	}
}
