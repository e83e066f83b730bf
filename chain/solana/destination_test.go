//go:build unix

package solana_test

import (
	"errors"
	"strings"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// TestDestinations pays to everything that is no ordinary wallet: the right thing happens, or an
// error says what is wrong.
func TestDestinations(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, sol, 9_000_000)

	owner := newKey(t).PublicKey()
	s.fund(chain.Party{Address: chain.Address(owner.String())}, 0, 5)
	tokenAccount := chain.Address(n.accountOf(owner).String())
	offCurve, _, err := solanago.FindProgramAddress([][]byte{[]byte("vault")}, solanago.MemoProgramID)
	must(t, err)
	vault, _, err := solanago.FindProgramAddress([][]byte{[]byte("vault with coin")}, solanago.MemoProgramID)
	must(t, err)
	s.fund(chain.Party{Address: chain.Address(vault.String())}, sol, 0)

	frozen := newAddress(t)
	must(t, controls{n}.Freeze(t.Context(), frozen, n.asset))

	for _, c := range []struct {
		name   string
		to     chain.Address
		asset  chain.Asset
		amount uint64
		why    string // of the refusal; empty: it is paid
	}{
		{"coin to a new address", newAddress(t), s.native(), 890_880, ""},
		{
			"less than the rent minimum to a new address",
			newAddress(t),
			s.native(),
			890_879,
			"must receive at least 890880 lamports",
		},
		{"one lamport to an account that is there", from.Address, s.native(), 1, ""},
		{"coin to a token account", tokenAccount, s.native(), 1_000_000, "pay to its owner " + owner.String()},
		{"tokens to a token account", tokenAccount, s.token(), 10, "pay to its owner " + owner.String()},
		{"tokens to the owner of a token account", chain.Address(owner.String()), s.token(), 10, ""},
		{"tokens to a new address", newAddress(t), s.token(), 10, ""},
		{"coin to a mint", chain.Address(n.mint.String()), s.native(), 1_000_000, "it is a mint"},
		{"tokens to a mint", chain.Address(n.mint.String()), s.token(), 10, "it is a mint"},
		{
			"coin to a program",
			chain.Address(solanago.TokenProgramID.String()),
			s.native(),
			1_000_000,
			"it is a program",
		},
		{"tokens to a program", chain.Address(solanago.TokenProgramID.String()), s.token(), 10, "it is a program"},
		{"coin to a sysvar", chain.Address(solanago.SysVarRentPubkey.String()), s.native(), 1_000_000, "not a wallet"},
		{"coin to an address off the curve", chain.Address(offCurve.String()), s.native(), 1_000_000, "off the curve"},
		{"tokens to an address off the curve", chain.Address(offCurve.String()), s.token(), 10, "off the curve"},
		{"coin to a vault off the curve that is there", chain.Address(vault.String()), s.native(), 1_000_000, ""},
		{"tokens to a vault off the curve that is there", chain.Address(vault.String()), s.token(), 10, ""},
		{"tokens to a frozen account", frozen, s.token(), 10, "is frozen by the issuer of TOK"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *s
			s.t = t

			o := chain.Order{
				From:    from,
				MaxFee:  chain.Units(50_000_000),
				Outputs: []chain.Output{{To: c.to, AssetID: c.asset.ID, Amount: chain.Units(c.amount)}},
			}
			if c.why != "" {
				_, err := s.d.Build(t.Context(), o)
				if !errors.Is(err, fault.Invalid) || fault.Code(err) != "destination_not_payable" ||
					!strings.Contains(err.Error(), c.why) ||
					!strings.Contains(err.Error(), string(c.to)) {
					t.Errorf("refused with %v; want destination_not_payable, %q and the address", err, c.why)
				}

				return
			}

			before := s.balance(c.to, c.asset)
			st := s.include(s.sign(o))

			want := before.Add(chain.Units(c.amount))
			if c.to == from.Address {
				want = before.Sub(st.Fee)
			}

			if got := s.balance(c.to, c.asset); got != want {
				t.Errorf("the destination holds %s, want %s", got, want)
			}
		})
	}
}

// A destination that one node of two calls a program is payable while the other one says what it is.
func TestOneNodeRefusesNoDestination(t *testing.T) {
	const unreachable = "http://127.0.0.1:1"

	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, sol, 0)

	honest, program := newAddress(t), chain.Address(solanago.TokenProgramID.String())

	liar := newFaultyNode(t, n)
	liar.set(func(method string, params []any, result any) (any, int) {
		if method != "getMultipleAccounts" {
			return result, 0
		}

		accounts := result.(map[string]any)["value"].([]any)

		for i, key := range params[0].([]any) {
			if key == string(honest) {
				accounts[i] = map[string]any{
					"lamports":   1,
					"owner":      solanago.SystemProgramID.String(),
					"executable": true,
					"data":       []string{"", "base64"},
				}
			}
		}

		return result, 0
	})

	const refused, alone = "destination_not_payable", "node_unavailable"

	for name, c := range map[string]struct {
		nodes []string
		to    chain.Address
		code  string
	}{
		"the liar first":        {[]string{liar.URL, n.URL}, honest, ""},
		"the liar second":       {[]string{n.URL, liar.URL}, honest, ""},
		"two nodes refuse":      {[]string{liar.URL, liar.URL}, honest, refused},
		"the other one is down": {[]string{liar.URL, unreachable}, honest, alone},
		"one node alone":        {[]string{liar.URL}, honest, refused},
		"a program":             {[]string{liar.URL, n.URL}, program, refused},
	} {
		d := n.driver(t, func(config *solana.Config) { config.RPC, config.RPCs = c.nodes[0], c.nodes[1:] })

		fee, err := d.EstimateFee(t.Context(), chain.Order{
			From:    from,
			Outputs: []chain.Output{{To: c.to, AssetID: s.native().ID, Amount: chain.Units(1_000_000)}},
		})

		if fault.Code(err) != c.code {
			t.Errorf("%s: %v, want code %q", name, err, c.code)
		}

		if err == nil && fee.IsZero() {
			t.Errorf("%s: no fee", name)
		}
	}
}
