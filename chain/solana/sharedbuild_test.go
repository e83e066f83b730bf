//go:build unix

package solana_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// with has a sender ask other nodes.
func (s *sender) with(nodes ...string) *sender {
	s.t.Helper()

	other := *s
	other.d = s.n.driver(s.t, func(c *solana.Config) { c.RPC, c.RPCs = nodes[0], nodes[1:] })

	return &other
}

// The rent of a token account that a sweep closes goes to whom two nodes name, or the account stays open.
func TestOneNodeNamesNoReceiverOfRent(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	master, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
	s.fund(master, sol, 0)
	s.fund(deposit, 0, 1_000_000)

	thief := newKey(t).PublicKey()
	liar := newFaultyNode(t, n)

	liar.set(func(method string, _ []any, result any) (any, int) {
		if shown, ok := result.(map[string]any); ok && method == "getTransaction" {
			accountsOf(shown)[0] = thief.String()
		}

		return result, 0
	})

	closes := func(tx chain.Signed, to solanago.PublicKey) bool { return bytes.Contains(tx.Raw, to[:]) }

	for _, c := range []struct {
		nodes      []string
		paid, open bool // to whoever paid it; the account stays open
	}{
		{nodes: []string{n.URL, n.URL}, paid: true},
		{nodes: []string{liar.URL, n.URL}, open: true},
		{nodes: []string{n.URL, liar.URL}, open: true},
		{nodes: []string{liar.URL, n.URL, n.URL}, paid: true},
	} {
		s := s.with(c.nodes...)

		steps, err := s.d.PlanSweep(t.Context(), chain.SweepRequest{
			Asset:   s.token(),
			Deposit: deposit,
			Master:  master,
			Amount:  chain.Units(1_000_000),
		})
		must(t, err)

		if steps[0].Order.Close == c.open {
			t.Errorf("%v: the plan closes the account: %t", c.nodes, steps[0].Order.Close)
		}

		order := steps[0].Order
		order.Close = true

		tx := s.sign(order)
		if closes(tx, thief) || closes(tx, n.authority.PublicKey()) != c.paid {
			t.Errorf(
				"%v: the rent goes to the thief: %t, to whoever paid it: %t, want %t",
				c.nodes, closes(tx, thief), closes(tx, n.authority.PublicKey()), c.paid,
			)
		}
	}
}

// A token account of which one node says that it is there, and another one not, is opened.
func TestOneNodeOpensNoTokenAccount(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, sol, 1_000_000)

	var there any // an opened account, which it shows in the place of one that is not

	liar := newFaultyNode(t, n)
	to := newAddress(t)
	account := n.accountOf(solanago.MustPublicKeyFromBase58(string(to)))

	liar.forgeAccounts(func(key string, shown map[string]any) any {
		switch {
		case key == n.accountOf(solanago.MustPublicKeyFromBase58(string(from.Address))).String():
			data, _ := base64.StdEncoding.DecodeString(shown["data"].([]any)[0].(string))
			copy(data[32:64], solanago.MustPublicKeyFromBase58(string(to)).Bytes())
			there = map[string]any{
				"lamports": 2_039_280,
				"owner":    shown["owner"],
				"data":     []string{base64.StdEncoding.EncodeToString(data), "base64"},
			}
		case key == account.String() && shown == nil:
			return there
		case shown == nil:
			return nil
		}

		return shown
	})

	for _, nodes := range [][]string{{liar.URL, n.URL}, {n.URL, liar.URL}} {
		tx := s.with(nodes...).sign(chain.Order{
			From:    from,
			Outputs: []chain.Output{{To: to, AssetID: s.token().ID, Amount: chain.Units(1_000)}},
		})
		if !bytes.Contains(tx.Raw, solanago.SPLAssociatedTokenAccountProgramID[:]) {
			t.Errorf("%v: the token account is not opened", nodes)
		}
	}

	if there == nil {
		t.Fatal("the liar was not asked, so the test shows nothing")
	}
}

// A transfer fee is what two nodes say: who is paid gets what is owed, and not more.
func TestOneNodeSaysNoTransferFee(t *testing.T) {
	const bps, maximum = 250, 1_000_000

	n := startNode(t, solanago.Token2022ProgramID, withFee(bps, maximum))
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, sol, 10_000_000)

	said := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint64(nil, maximum), bps)
	lie := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint64(nil, maximum), 5_000)

	liar := newFaultyNode(t, n)
	liar.forgeAccounts(func(key string, shown map[string]any) any {
		if shown == nil {
			return nil
		}

		if key == n.mint.String() {
			data, _ := base64.StdEncoding.DecodeString(shown["data"].([]any)[0].(string))
			data = bytes.ReplaceAll(data, said, lie)
			shown["data"] = []string{base64.StdEncoding.EncodeToString(data), "base64"}
		}

		return shown
	})

	order := chain.Order{
		From:    from,
		MaxFee:  chain.Units(10_000_000),
		Outputs: []chain.Output{{To: newAddress(t), AssetID: s.token().ID, Amount: chain.Units(100_000)}},
	}

	for _, nodes := range [][]string{{liar.URL, n.URL}, {n.URL, liar.URL}} {
		_, err := s.with(nodes...).d.Build(t.Context(), order)
		if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "nodes_disagree" {
			t.Errorf("%v: built with %v, want nodes_disagree", nodes, err)
		}
	}

	for _, nodes := range [][]string{{n.URL, n.URL}, {liar.URL, n.URL, n.URL}} {
		s := s.with(nodes...)
		order.Outputs[0].To = newAddress(t)
		s.include(s.sign(order))

		if got := s.balance(order.Outputs[0].To, s.token()); got != chain.Units(100_000) {
			t.Errorf("%v: %s arrived", nodes, got)
		}
	}
}

// That the money for a payment is not there, or that its account is frozen, is said by two nodes where several are
// configured: a payout fails by it.
func TestOneNodeRefusesNoPayment(t *testing.T) {
	const unreachable = "http://127.0.0.1:1"

	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from, poor := s.party(chain.RoleMaster, 1), s.party(chain.RoleMaster, 2)
	s.fund(from, sol, 0)
	s.fund(poor, 900_000, 0)

	liar := newFaultyNode(t, n)
	liar.forgeAccounts(func(key string, account map[string]any) any {
		if key == string(from.Address) || account == nil {
			return nil
		}

		return account
	})

	for name, c := range map[string]struct {
		from  chain.Party
		nodes []string
		kind  error
	}{
		"honest nodes":                 {from, []string{n.URL, n.URL}, nil},
		"the liar first":               {from, []string{liar.URL, n.URL}, nil},
		"the liar second":              {from, []string{n.URL, liar.URL}, nil},
		"the honest one is down":       {from, []string{liar.URL, unreachable}, fault.Unavailable},
		"one node":                     {from, []string{liar.URL}, fault.State},
		"two that have nothing":        {poor, []string{n.URL, n.URL}, fault.State},
		"one of two, nothing is there": {poor, []string{unreachable, n.URL}, fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			d := n.driver(
				t,
				func(config *solana.Config) { config.RPC, config.RPCs = c.nodes[0], c.nodes[1:] },
			)

			_, err := d.Build(t.Context(), s.paying(c.from, 1_000_000, nil))
			if !errors.Is(err, c.kind) || c.kind == nil && err != nil {
				t.Errorf("%v; want %v", err, c.kind)
			}

			if refused := errors.Is(err, fault.State); refused != errors.Is(c.kind, fault.State) {
				t.Errorf("refused for good: %t", refused)
			}
		})
	}
}
