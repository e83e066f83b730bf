//go:build unix

package solana_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// Tokens of a mint with a permanent delegate, a close authority and a transfer hook, as PYUSD has them, are released
// and paid out once the host accepts that. Once the hook has a program the token stops, and says why.
func TestTransferHookWithoutAProgram(t *testing.T) {
	n := startNode(t, solanago.Token2022ProgramID)
	authority := n.authority.PublicKey()
	n.mint = n.newMint(
		t,
		n.program,
		6,
		mintExtension{
			size: 4 + 32,
			data: append([]byte{35}, authority[:]...),
		}, // InitializePermanentDelegate
		mintExtension{
			size: 4 + 32,
			data: append([]byte{25, 1}, authority[:]...),
		}, // InitializeMintCloseAuthority
		mintExtension{size: 4 + 64, data: setHook(0, authority, solanago.PublicKey{})},
	)
	n.asset.Contract = chain.Address(n.mint.String())

	if err := n.driver(t).Check(t.Context()); fault.Code(err) != "token_unsafe" {
		t.Errorf("nothing is accepted: %v, want token_unsafe", err)
	}

	s := newSender(t, n)
	s.d = n.driver(t, func(c *solana.Config) {
		c.AcceptedRisks = map[chain.Address][]solana.TokenRisk{
			n.asset.Contract: {
				solana.RiskPermanentDelegate,
				solana.RiskCloseAuthority,
				solana.RiskTransferHook,
			},
		}
	})
	must(t, s.d.Check(t.Context()))

	master := s.party(chain.RoleMaster, 1)
	deposit, customer := s.party(chain.RoleDeposit, 1), s.party(chain.RoleDeposit, 2)
	s.fund(master, sol, 0)
	s.fund(deposit, 0, 5_000_000)

	steps, err := s.d.PlanSweep(t.Context(), chain.SweepRequest{
		Asset:   s.token(),
		Deposit: deposit,
		Master:  master,
		Amount:  s.balance(deposit.Address, s.token()),
	})
	must(t, err)
	s.include(s.sign(steps[0].Order))

	payout := chain.Order{
		From: master,
		Outputs: []chain.Output{
			{To: customer.Address, AssetID: s.token().ID, Amount: chain.Units(2_000_000)},
		},
		MaxFee: chain.Units(sol / 10),
	}
	s.include(s.sign(payout))

	kept, paid := s.balance(master.Address, s.token()), s.balance(customer.Address, s.token())
	if kept != chain.Units(3_000_000) || paid != chain.Units(2_000_000) {
		t.Errorf("of 5000000 released, %s are kept and %s paid out", kept, paid)
	}

	signed := s.sign(payout)

	// The issuer sets a program.
	_, err = n.send([]solanago.Instruction{solanago.NewInstruction(n.program, solanago.AccountMetaSlice{
		solanago.Meta(n.mint).WRITE(),
		solanago.Meta(authority).SIGNER(),
	}, setHook(1, solanago.TokenProgramID))}, n.authority)
	must(t, err)
	must(t, n.SolanaNode.Mine(6))

	for what, err := range map[string]error{
		"check":                  s.d.Check(t.Context()),
		"payout":                 errorOf(s.trySign(payout)),
		"payout that was signed": s.d.Broadcast(t.Context(), signed),
	} {
		if fault.Code(err) != "token_unsafe" || !strings.Contains(err.Error(), "one is set") {
			t.Errorf("with a program, %s: %v, want token_unsafe", what, err)
		}
	}
}

// TestFrozenDepositSaysWhy has the issuer freeze the token account of a deposit: the plan of its release says so, and
// no honest node is said to fail.
func TestFrozenDepositSaysWhy(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)

	var log bytes.Buffer

	s.d = n.driver(t, func(c *solana.Config) {
		c.RPCs = []string{n.URL + "/"}
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})

	master, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
	s.fund(master, sol, 0)
	s.fund(deposit, 0, 5_000_000)
	must(t, controls{n}.Freeze(t.Context(), deposit.Address, n.asset))
	must(t, n.SolanaNode.Mine(6))

	_, err := s.d.PlanSweep(t.Context(), chain.SweepRequest{
		Asset:   s.token(),
		Deposit: deposit,
		Master:  master,
		Amount:  chain.Units(5_000_000),
	})
	if !errors.Is(err, fault.Invalid) || fault.Code(err) != "not_releasable" ||
		!strings.Contains(err.Error(), "frozen") {
		t.Errorf("the plan of the release: %v", err)
	}

	if held := s.balance(deposit.Address, s.token()); held != chain.Units(5_000_000) {
		t.Errorf("it holds %s", held)
	}

	if log.Len() > 0 {
		t.Errorf("an honest node is said to fail: %s", log.String())
	}
}

func errorOf(_ chain.Signed, err error) error { return err }

// setHook returns the data of a TransferHookInstruction: Initialize (0) with authority and program, or Update (1)
// with a program.
func setHook(kind byte, keys ...solanago.PublicKey) []byte {
	data := []byte{36, kind}
	for _, key := range keys {
		data = append(data, key[:]...)
	}

	return data
}
