//go:build unix

package canonical_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/testing/raced"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// together is how many processes serve one PostgreSQL database.
const together = 4

// Four processes over one PostgreSQL, of which one is killed at any moment, show what a walk of the chain finds: on
// anvil behind two endpoints that lie, and on bitcoind behind a fee market that moves. Under make soak the runs go
// on, in turns, until SOAKTIME is over; SEED is the first.
func TestSoakLedgerOfFourProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("needs anvil, bitcoind and PostgreSQL; run without -short")
	}

	raced.Skip(t) // what is together are processes

	var (
		soak     time.Duration
		err      error
		evm      tally
		outputs  bitcoinTally
		deadline = time.Now()
	)

	if text := os.Getenv("SOAKTIME"); text != "" {
		if soak, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}

		deadline = deadline.Add(soak)
	}

	first := numberOf(t, "SEED", 0)

	for seed := first; seed == first || time.Now().Before(deadline); seed++ {
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Run("anvil", func(t *testing.T) {
				r := newRun(
					t,
					newStage(t),
					orders{DB: testenv.Postgres(t), Processes: together},
					uint64(seed),
				)
				r.play(happen)
				r.compare()
				evm.add(r.did)
			})
			t.Run("bitcoind", func(t *testing.T) {
				r := newBitcoinRun(t, orders{DB: testenv.Postgres(t), Processes: together}, uint64(seed))
				r.play(bitcoinHappen)
				r.compare()
				outputs.add(r.did)
			})
		})
		if !ok {
			break // its steps are enough to read
		}
	}

	fmt.Printf(
		"independent ledger of %d processes on PostgreSQL: %d differences\n  on anvil %+v\n  on bitcoind %+v\n",
		together,
		evm.Differences+outputs.Differences,
		evm,
		outputs,
	)

	if evm.Arrivals < 3 || evm.Kills == 0 || outputs.Confirmed < 5 || outputs.Kills == 0 {
		t.Errorf("the runs show too little: %+v, %+v", evm, outputs)
	}
}
