package simulation

import (
	"testing"

	"github.com/seed-8ee7f392/payments/internal/testing/raced"
)

// TestNoncesAmidFaults plays seeds on networks of Solana's family: master wallets with and without nonce accounts,
// which close and open, among crashes, forks, restores, nodes that lie and thieves who use a wallet's nonces.
func TestNoncesAmidFaults(t *testing.T) {
	for seed := range uint64(raced.Fewer(shortNonceSeeds)) {
		report(t, run(t, NewBiasedPlan(seed+1, shortSteps, "nonces")), shortSteps)
	}
}

// shortNonceSeeds is the number of seeds of the short form.
const shortNonceSeeds = 6
