//go:build unix

package solana_test

import (
	"encoding/base64"
	"errors"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// TestDustDuringASweep pays dust to an address whose deposit is being swept: before the sweep is built
// and while it is in flight. It repeats the latter with KeepOpen.
func TestDustDuringASweep(t *testing.T) {
	const rentMinimum = 890_880

	for _, c := range []struct {
		name       string
		program    solanago.PublicKey
		extensions []mintExtension
		native     bool
		dust       uint64
	}{
		{"coin", solanago.TokenProgramID, nil, true, 1},
		{"tokens", solanago.TokenProgramID, nil, false, 1},
		{"tokens with a fee", solanago.Token2022ProgramID, []mintExtension{withFee(250, 1_000_000)}, false, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNode(t, c.program, c.extensions...)
			s := newSender(t, n)
			master := s.party(chain.RoleMaster, 1)
			s.fund(master, sol, 1_000)

			deposits := uint32(0)

			asset := s.token()
			if c.native {
				asset = s.native()
			}

			pay := func(to chain.Party, amount uint64) {
				t.Helper()
				must(t, controls{n}.Fund(t.Context(), to.Address, asset, chain.Units(amount)))
			}
			deposit := func() chain.SweepRequest {
				t.Helper()

				deposits++
				at := s.party(chain.RoleDeposit, deposits)
				pay(at, 5_000_000)

				return chain.SweepRequest{
					Asset:   asset,
					Deposit: at,
					Master:  master,
					Amount:  s.balance(at.Address, asset),
				}
			}
			plan := func(r chain.SweepRequest) chain.SweepStep {
				t.Helper()
				steps, err := s.d.PlanSweep(t.Context(), r)
				must(t, err)

				if len(steps) != 1 || steps[0].Order.Close == r.KeepOpen {
					t.Fatalf("with KeepOpen %v the plan is %+v", r.KeepOpen, steps)
				}

				return steps[0]
			}

			r := deposit()
			order := plan(r).Order
			pay(r.Deposit, c.dust)
			s.include(s.sign(order))

			left := s.balance(r.Deposit.Address, asset)
			if c.native && left != chain.Units(rentMinimum) ||
				!c.native && (left.IsZero() || left.Cmp(chain.Units(c.dust)) > 0) {
				t.Errorf("dust before the sweep was built: %s are left", left)
			}

			r = deposit()
			swept := s.sign(plan(r).Order)
			pay(r.Deposit, c.dust)

			if c.native { // the simulation refuses it; a leader that has it already does not
				err := s.d.Broadcast(t.Context(), swept)
				if !errors.Is(err, fault.Invalid) || fault.Code(err) != "chain:insufficient_funds" {
					t.Errorf("the sweep that would leave 1 lamport: %v", err)
				}

				raw := base64.StdEncoding.EncodeToString(swept.Raw)
				options := map[string]any{"encoding": "base64", "skipPreflight": true}
				must(t, n.Call(nil, "sendTransaction", raw, options))
			} else {
				must(t, s.d.Broadcast(t.Context(), swept))
			}

			must(t, n.SolanaNode.Mine(5))
			st, err := s.d.Status(t.Context(), swept)
			must(t, err)

			if st.State != chain.TxIncluded || !st.Reverted || !st.Final {
				t.Fatalf("the sweep on whose way dust arrived is %+v, so the test shows nothing", st)
			}

			if r.KeepOpen = true; c.native {
				r.Spent = st.Fee
			}

			unaware := deposit() // planned by a node that does not show the dust yet

			unaware.KeepOpen = true
			for _, r := range []chain.SweepRequest{r, unaware} {
				before := s.balance(master.Address, asset)
				step := plan(r)
				swept = s.sign(step.Order)

				pay(r.Deposit, c.dust)

				st = s.include(swept)

				arrived := s.balance(master.Address, asset).Sub(before)
				if want := step.Order.Outputs[0].Amount; c.native && arrived.Add(st.Fee) != want ||
					!c.native && arrived != want {
					t.Errorf("%s arrived at a fee of %s, the plan says %s", arrived, st.Fee, want)
				}

				left, want := s.balance(r.Deposit.Address, asset), chain.Units(rentMinimum+c.dust)
				if c.native && left != want {
					t.Errorf("%s are left, want %s: the rent minimum and the later dust", left, want)
				}
			}
		})
	}
}
