//go:build unix

package solana_test

import (
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
)

// What a transfer fee takes on the way is a transfer of its own, to the mint: all that left the sender is on record.
func TestTransferFeesAreOnRecord(t *testing.T) {
	const held, fee = 39_600_000, 396_000

	n := startNode(t, solanago.Token2022ProgramID, withFee(100, 1_000_000_000))
	s := newSender(t, n)
	master, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
	s.fund(master, sol, 0)
	s.fund(deposit, 0, held)

	steps, err := s.d.PlanSweep(t.Context(), chain.SweepRequest{
		Asset:   s.token(),
		Deposit: deposit,
		Master:  master,
		Amount:  chain.Units(held),
	})
	must(t, err)

	swept := s.sign(steps[0].Order)
	s.include(swept)

	st, err := s.d.Status(t.Context(), swept)
	must(t, err)

	want := map[chain.Address]chain.Amount{
		master.Address:     chain.Units(held - fee),
		s.token().Contract: chain.Units(fee),
	}

	blocks, err := s.d.Blocks(t.Context(), st.Block.Height, st.Block.Height)
	must(t, err)

	for what, transfers := range map[string][]chain.Transfer{"status": st.Transfers, "block": blocks[0].Transfers} {
		got, seen := map[chain.Address]chain.Amount{}, map[uint32]bool{}

		for _, moved := range transfers {
			if moved.TxHash != swept.TxHash || seen[moved.Index] {
				t.Errorf("%s: %+v", what, moved)
			}

			seen[moved.Index] = true

			if moved.AssetID == s.token().ID && moved.From == deposit.Address {
				got[moved.To] = got[moved.To].Add(moved.Amount)
			}
		}

		if len(got) != len(want) || got[master.Address] != want[master.Address] ||
			got[s.token().Contract] != want[s.token().Contract] {
			t.Errorf("%s: %+v; want %+v", what, got, want)
		}
	}
}
