//go:build unix

package canonical_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/seed-8ee7f392/payments/internal/testing/raced"
)

const (
	shortBitcoinRuns = 2
	longBitcoinRuns  = 40
	bitcoinHappen    = 36 // things in a run
)

// Whatever happens on Bitcoin's rules (payouts on unconfirmed change, fees that move, replaced bytes that are mined
// all the same, dust, rewards, forks, hours without a block, kill -9 at any moment), in the end every payout is
// over, nothing is reserved, and the API shows what an independent walk of bitcoind's chain finds, fees included.
// Under make soak there are 40 runs; SEED is the first, SOAKRUNS their number.
func TestSoakOutputsOnBitcoind(t *testing.T) {
	if testing.Short() {
		t.Skip("needs bitcoind; run without -short")
	}

	runs := raced.Fewer(shortBitcoinRuns)
	if os.Getenv("SOAKTIME") != "" {
		runs = longBitcoinRuns
	}

	runs = numberOf(t, "SOAKRUNS", runs)
	first := numberOf(t, "SEED", 0)

	var count bitcoinTally

	for seed := first; seed < first+runs; seed++ {
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := newBitcoinRun(t, orders{}, uint64(seed))
			r.play(bitcoinHappen)
			r.compare()
			count.add(r.did)
		})
		if !ok {
			break // its steps are enough to read
		}
	}

	fmt.Printf("outputs on bitcoind: %d runs, %d differences: %+v\n", count.Runs, count.Differences, count)

	// Replaced bytes that are mined all the same need a miner who is faster than the engine: chance that a few runs
	// may not have.
	rare := runs < longBitcoinRuns || count.Lost >= runs/2
	if count.Confirmed < 5*runs || count.Forks < runs/2 || count.Kills < runs || count.Chained < runs ||
		count.Replaced < runs || !rare {
		t.Errorf("the runs show too little: %+v", count)
	}
}

// numberOf returns the number in an environment variable, or a default.
func numberOf(t *testing.T, name string, number int) int {
	t.Helper()

	if text := os.Getenv(name); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}

		return n
	}

	return number
}
