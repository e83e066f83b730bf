//go:build unix

package solana_test

import (
	"encoding/base64"
	"encoding/binary"
	"testing"

	solanago "github.com/gagliardetto/solana-go"
	ata "github.com/gagliardetto/solana-go/programs/associated-token-account"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// give opens a token account of an owner, the associated one or another, and puts tokens there.
func (n *node) give(
	t *testing.T,
	mint, program, owner solanago.PublicKey,
	associated bool,
	amount uint64,
) chain.Address {
	t.Helper()

	payer, other := n.authority.PublicKey(), newKey(t)
	signers := []solanago.PrivateKey{n.authority}
	account, _, err := solanago.FindAssociatedTokenAddressWithProgram(owner, mint, program)
	must(t, err)

	list := []solanago.Instruction{
		ata.NewCreateIdempotentInstructionWithTokenProgram(payer, owner, mint, program).Build(),
	}

	if !associated {
		account, signers = other.PublicKey(), append(signers, other)
		list = []solanago.Instruction{
			system.NewCreateAccountInstruction(2_039_280, 165, program, payer, account).Build(),
			initializeAccount(program, account, mint, owner),
		}
	}

	if mint == solanago.WrappedSol {
		list = append(
			list,
			system.NewTransferInstruction(amount, payer, account).Build(),
			syncNative(account),
		)
	} else {
		list = append(list, mintTokens(program, mint, account, payer, amount))
	}

	_, err = n.send(list, signers...)
	must(t, err)
	must(t, n.SolanaNode.Mine(1))

	return chain.Address(account.String())
}

// withDelegate returns the extension for a permanent delegate.
func withDelegate(delegate solanago.PublicKey) mintExtension {
	return mintExtension{size: 4 + 32, data: append([]byte{35}, delegate[:]...)}
}

// strays returns what some addresses hold besides balances, by account.
func (s *sender) strays(addresses ...chain.Address) map[chain.Address]chain.Stray {
	s.t.Helper()
	list, err := s.d.Strays(s.t.Context(), addresses)
	must(s.t, err)

	all := map[chain.Address]chain.Stray{}
	for _, stray := range list {
		all[stray.Account] = stray
	}

	if len(all) != len(list) {
		s.t.Errorf("an account is listed twice: %+v", list)
	}

	return all
}

// tokens returns what the master wallet's associated account of a mint holds.
func (n *node) tokens(t *testing.T, mint, program solanago.PublicKey, owner chain.Address) uint64 {
	t.Helper()

	account, _, err := solanago.FindAssociatedTokenAddressWithProgram(
		solanago.MustPublicKeyFromBase58(string(owner)), mint, program,
	)
	must(t, err)

	var answer struct {
		Value struct {
			Data [2]string `json:"data"`
		} `json:"value"`
	}
	must(t, n.Call(&answer, "getAccountInfo", account.String(),
		map[string]any{"commitment": "confirmed", "encoding": "base64"}))

	data, err := base64.StdEncoding.DecodeString(answer.Value.Data[0])
	must(t, err)

	return binary.LittleEndian.Uint64(data[64:])
}

// TestStraysAreRecovered lists what lies at a deposit address besides its balances, and moves each to the master
// wallet, dust that arrives meanwhile or not. The balances of the address stay as they are.
func TestStraysAreRecovered(t *testing.T) {
	const token, token2022 = 0, 1

	programs := []solanago.PublicKey{solanago.TokenProgramID, solanago.Token2022ProgramID}

	for _, c := range []struct {
		name       string
		program    int
		listed     bool // the enabled token
		wrapped    bool
		associated bool
		extensions []mintExtension
		arrives    uint64 // of 500,000
	}{
		{name: "second account of an enabled token", listed: true, arrives: 500_000},
		{name: "unlisted token", associated: true, arrives: 500_000},
		{name: "second account of an unlisted token", arrives: 500_000},
		{name: "token of Token-2022", program: token2022, associated: true, arrives: 500_000},
		{
			name:       "token with a transfer fee",
			program:    token2022,
			associated: true,
			extensions: []mintExtension{withFee(250, 1_000_000)},
			arrives:    487_500,
		},
		{
			name:       "token with a permanent delegate",
			program:    token2022,
			associated: true,
			extensions: []mintExtension{withDelegate(newKey(t).PublicKey())},
			arrives:    500_000,
		},
		{name: "wrapped coin", wrapped: true, associated: true, arrives: 500_000},
		{name: "second account of wrapped coin", wrapped: true, arrives: 500_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNode(t, solanago.TokenProgramID)
			s := newSender(t, n)
			master, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
			s.fund(master, sol, 0)
			s.fund(deposit, 7_000_000, 3_000_000)

			program, mint := programs[c.program], n.mint
			switch {
			case c.wrapped:
				mint = solanago.WrappedSol
			case !c.listed:
				mint = n.newMint(t, program, 4, c.extensions...)
			}

			owner := solanago.MustPublicKeyFromBase58(string(deposit.Address))
			account := n.give(t, mint, program, owner, c.associated, 500_000)

			stray, listed := s.strays(deposit.Address, master.Address)[account]
			if !listed || stray.Address != deposit.Address || stray.Amount != chain.Units(500_000) ||
				stray.Contract != chain.Address(mint.String()) {
				t.Fatalf("listed is %+v", stray)
			}

			order, err := s.d.PlanRecovery(t.Context(), chain.RecoveryRequest{
				Stray:  stray,
				Owner:  deposit,
				Master: master,
			})
			must(t, err)

			u, err := s.d.Build(t.Context(), order)
			must(t, err)
			decoded, err := s.d.Decode(u.Raw)
			must(t, err)

			want := chain.Output{To: master.Address, AssetID: stray.AssetID, Amount: chain.Units(c.arrives)}
			if c.wrapped {
				want.AssetID = s.native().ID
			}

			if len(decoded.Outputs) != 1 || decoded.Outputs[0] != want || order.Outputs[0] != want {
				t.Errorf("ordered is %+v and decoded %+v, want %+v", order.Outputs, decoded.Outputs, want)
			}

			tx, before := s.sign(order), s.balance(master.Address, s.native())
			dust := n.give(
				t,
				mint,
				program,
				owner,
				c.associated,
				1,
			) // on the way, where it is the same account
			st := s.include(tx)
			spent := before.SubFloor(s.balance(master.Address, s.native()))

			if c.wrapped { // nothing of the fee's rent is spent
				arrived := s.balance(master.Address, s.native()).Add(st.Fee).SubFloor(before)
				if arrived != chain.Units(c.arrives) {
					t.Errorf("%s lamports arrived of wrapped coin", arrived)
				}
			} else if got := n.tokens(t, mint, program, master.Address); got != c.arrives || tx.MaxFee.Less(spent) {
				t.Errorf("%d tokens arrived, for %s of at most %s", got, spent, tx.MaxFee)
			}

			coin, tokens := s.balance(deposit.Address, s.native()), s.balance(deposit.Address, s.token())
			if coin != chain.Units(7_000_000) || tokens != chain.Units(3_000_000) {
				t.Errorf("the deposit address has %s lamports and %s tokens left", coin, tokens)
			}

			if left := s.strays(deposit.Address); len(left) != 1 || left[dust].Amount != chain.Units(1) {
				t.Errorf("what is left is %+v, want the dust at %s", left, dust)
			}
		})
	}
}

// TestStraysThatStay does not plan a recovery of what is counted, of what is gone, frozen or somebody else's, or of
// what the master wallet has already.
func TestStraysThatStay(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	master, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
	s.fund(master, sol, 0)
	s.fund(deposit, 0, 3_000_000)

	unlisted := n.newMint(t, solanago.TokenProgramID, 4)
	owner := solanago.MustPublicKeyFromBase58(string(deposit.Address))
	own := solanago.MustPublicKeyFromBase58(string(master.Address))
	foreign := n.give(t, unlisted, solanago.TokenProgramID, newKey(t).PublicKey(), true, 5)
	masters := n.give(t, unlisted, solanago.TokenProgramID, own, true, 5)
	frozen := n.give(t, unlisted, solanago.TokenProgramID, owner, true, 5)
	_, err := n.send([]solanago.Instruction{
		freezeAccount(
			solanago.TokenProgramID,
			solanago.MustPublicKeyFromBase58(string(frozen)),
			unlisted,
			n.authority.PublicKey(),
		),
	}, n.authority)
	must(t, err)
	must(t, n.SolanaNode.Mine(1))

	counted, err := s.d.TokenAccount(deposit.Address, s.token())
	must(t, err)

	if listed := s.strays(deposit.Address, master.Address); len(listed) != 2 ||
		listed[frozen].Address != deposit.Address || listed[masters].Address != master.Address {
		t.Errorf("listed is %+v", listed)
	}

	for name, c := range map[string]struct {
		account chain.Address
		mint    solanago.PublicKey
		from    chain.Party
		code    string
	}{
		"counted":        {counted, n.mint, deposit, "stray_unknown"},
		"somebody's":     {foreign, unlisted, deposit, "stray_unknown"},
		"no account":     {newAddress(t), unlisted, deposit, "stray_unknown"},
		"another mint":   {frozen, n.mint, deposit, "stray_unknown"},
		"frozen":         {frozen, unlisted, deposit, "not_recoverable"},
		"the master's":   {masters, unlisted, master, "not_recoverable"},
		"a wallet":       {deposit.Address, unlisted, deposit, "stray_unknown"},
		"not an address": {"here", unlisted, deposit, "not_recoverable"},
	} {
		stray := chain.Stray{
			Address:  c.from.Address,
			Account:  c.account,
			Contract: chain.Address(c.mint.String()),
		}

		order, err := s.d.PlanRecovery(t.Context(), chain.RecoveryRequest{
			Stray:  stray,
			Owner:  c.from,
			Master: master,
		})
		if fault.Code(err) != c.code {
			t.Errorf("%s: %+v, %v; want %s", name, order, err, c.code)
		}
	}
}

// TestMastersOwnStraysAreRecovered unwraps the master wallet's own wrapped coin, and moves its second token accounts.
func TestMastersOwnStraysAreRecovered(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	master := s.party(chain.RoleMaster, 1)
	s.fund(master, sol, 1_000)

	own := solanago.MustPublicKeyFromBase58(string(master.Address))
	n.give(t, solanago.WrappedSol, solanago.TokenProgramID, own, true, 400_000)
	n.give(t, n.mint, solanago.TokenProgramID, own, false, 600)

	before := s.balance(master.Address, s.native())

	var fees chain.Amount

	for _, stray := range s.strays(master.Address) {
		order, err := s.d.PlanRecovery(t.Context(), chain.RecoveryRequest{
			Stray:  stray,
			Owner:  master,
			Master: master,
		})
		must(t, err)

		fees = fees.Add(s.include(s.sign(order)).Fee)
	}

	// With the rent of the account of wrapped coin, which is the master wallet's own.
	coin := s.balance(master.Address, s.native()).Add(fees).SubFloor(before)
	if tokens := s.balance(master.Address, s.token()); coin != chain.Units(400_000+2_039_280) ||
		tokens != chain.Units(1_600) || len(s.strays(master.Address)) > 0 {
		t.Errorf("%s lamports arrived, the wallet has %s tokens", coin, tokens)
	}
}

// TestNodesThatListNoTokenAccounts says so, instead of no strays.
func TestNodesThatListNoTokenAccounts(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	faulty := newFaultyNode(t, n)
	faulty.set(func(method string, _ []any, result any) (any, int) {
		if method == "getTokenAccountsByOwner" {
			return refusal(-32601), 0
		}

		return result, 0
	})

	d := n.driver(t, func(c *solana.Config) { c.RPC = faulty.URL })
	if list, err := d.Strays(
		t.Context(),
		[]chain.Address{newAddress(t)},
	); fault.Code(
		err,
	) != "recovery_unsupported" {
		t.Errorf("%+v, %v", list, err)
	}
}
