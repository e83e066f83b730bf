package simulation

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
)

// outputsScenario is a random order of what happens on a network that spends outputs: payouts on the change of
// payouts, replacements, conflicts, dust, block rewards, forks, fees that move, hours without a block, and
// processes that are killed.
type outputsScenario struct {
	*harness
	random   *rand.Rand
	deposits []chain.Address
}

// outputsEvents are what happens, each as often as it is listed.
var outputsEvents = []func(s *outputsScenario){
	(*outputsScenario).payOut,
	(*outputsScenario).payOut,
	(*outputsScenario).payOut,
	(*outputsScenario).payOut,
	(*outputsScenario).pass,
	(*outputsScenario).pass,
	(*outputsScenario).pass,
	(*outputsScenario).pass,
	(*outputsScenario).mineSome,
	(*outputsScenario).mineSome,
	(*outputsScenario).mineSome,
	(*outputsScenario).deposit,
	(*outputsScenario).deposit,
	(*outputsScenario).dust,
	(*outputsScenario).coinbase,
	(*outputsScenario).moveFees,
	(*outputsScenario).moveFees,
	(*outputsScenario).holdBack,
	(*outputsScenario).displace,
	(*outputsScenario).drop,
	(*outputsScenario).noBlocks,
	(*outputsScenario).generic,
	(*outputsScenario).generic,
	(*outputsScenario).generic,
}

// outputsFaults are faults and operations of random plans that hold on such a network.
var outputsFaults = []Kind{
	KillProcess, KillProcess, LoseAnswers, FailCalls, StopProcess, StoreDown, StoreUnknown, StoreConflict,
	ForkChain, CancelPayout, Heal,
}

// payOut asks for a payout; a process that dies or a store that fails takes none.
func (s *outputsScenario) payOut() {
	m := s.merchants[0]

	p, err := s.processes[0].alive().Payouts.Create(s.ctx, payout.Params{
		Owner:       event.Owner{AccountID: m.owner.AccountID},
		Network:     s.networks[0].slug(),
		Asset:       "SIMB",
		Amount:      chain.Units(20_000 + s.random.Uint64N(3_000_000)),
		Destination: string(s.networks[0].newAddress()),
		RequestedBy: requester,
	})
	if err == nil {
		m.payouts = append(m.payouts, p.ID)
	}
}

func (s *outputsScenario) pass() { s.harness.pass(time.Duration(1+s.random.IntN(40)) * time.Second) }

func (s *outputsScenario) mineSome() { s.outputs().Mine(1 + s.random.IntN(2)) }

func (s *outputsScenario) address() chain.Address {
	return s.deposits[s.random.IntN(len(s.deposits))]
}

func (s *outputsScenario) deposit() {
	s.outputs().Pay(s.address(), chain.Units(50_000+s.random.Uint64N(5_000_000)))
}

func (s *outputsScenario) dust() {
	to := s.address()
	for range 1 + s.random.IntN(12) {
		s.outputs().Pay(to, chain.Units(294+s.random.Uint64N(1_000)))
	}
}

func (s *outputsScenario) coinbase() {
	to := s.merchants[0].wallets[0]
	if s.random.IntN(2) == 0 {
		to = s.address()
	}

	s.outputs().Coinbase(to, chain.Units(1_000_000+s.random.Uint64N(1_000_000)))
}

func (s *outputsScenario) moveFees() { s.outputs().setFee(500 + s.random.Uint64N(3_000)) }

// holdBack lets miners leave out what pays less than a rate, until the next time.
func (s *outputsScenario) holdBack() {
	s.outputs().SetMinerFloor(s.random.Uint64N(3) * sim.DefaultFeeRate)
}

// displace has a payer's waiting payment displaced by a transaction to somebody else.
func (s *outputsScenario) displace() {
	s.withPayers(func(hash string) { s.outputs().DoubleSpend(hash) })
}

// drop has the pool forget a payer's payment.
func (s *outputsScenario) drop() { s.withPayers(func(hash string) { s.outputs().Drop(hash) }) }

// withPayers calls f with a new payment of a payer, which waits.
func (s *outputsScenario) withPayers(f func(hash string)) {
	hash := s.outputs().Pay(s.address(), chain.Units(100_000+s.random.Uint64N(100_000)))
	s.harness.pass(10 * time.Second)

	if found, err := s.outputs().Transaction(s.ctx, hash); err == nil && found.Block.IsZero() {
		f(hash)
	}
}

// noBlocks lets one to three hours pass without a block.
func (s *outputsScenario) noBlocks() {
	for range 12 * (1 + s.random.IntN(3)) {
		s.clock.advance(5 * time.Minute)
		s.run(0)
	}
}

func (s *outputsScenario) generic() {
	s.play(Op{
		Kind: outputsFaults[s.random.IntN(len(outputsFaults))],
		A:    s.random.Uint64(),
		B:    s.random.Uint64(),
		C:    s.random.Uint64(),
	})
}

// playOutputs plays a scenario and comes to rest: every payout has ended, nothing is reserved, and the audit is
// clean.
func playOutputs(t *testing.T, seed uint64) []Violation {
	t.Helper()

	random := rand.New(rand.NewPCG(seed, 0xb17c))

	return scenario{
		plan: Plan{
			Seed:      seed,
			UTXO:      true,
			Processes: 1 + random.IntN(2),
			Batch:     8,
			Tolerates: tolerated,
		},
		play: func(w *harness) {
			s := &outputsScenario{harness: w, random: random}
			for range 5 {
				s.deposits = append(s.deposits, s.depositAddress())
			}

			for range 40 {
				if len(w.oracle.violations) > 0 {
					return
				}

				outputsEvents[random.IntN(len(outputsEvents))](s)
			}

			w.outputs().SetMinerFloor(0)
			w.outputs().setFee(1_000)
		},
	}.run(t)
}

// Payouts end and nothing stays reserved, whatever happens on a network of outputs. SOAKRUNS sets how many
// scenarios are played, SEED the first.
func TestSoakOutputs(t *testing.T) {
	runs := raced.Fewer(40)
	if os.Getenv("SOAKTIME") != "" {
		runs = 2_000
	}

	first := number(t, "SEED", 1)
	for seed := first; seed < first+number(t, "SOAKRUNS", runs); seed++ {
		if violations := playOutputs(t, uint64(seed)); len(violations) > 0 {
			t.Fatalf("seed %d: %s", seed, violations[0])
		}
	}
}
