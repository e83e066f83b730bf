//go:build unix

package solana_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	solanago "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// openNonce opens a nonce account of an authority.
func (n *node) openNonce(t *testing.T, authority chain.Address) chain.Address {
	t.Helper()

	const size = 80

	var rent uint64
	must(t, n.Call(&rent, "getMinimumBalanceForRentExemption", size))

	key := newKey(t)
	payer := n.authority.PublicKey()

	_, err := n.send([]solanago.Instruction{
		system.NewCreateAccountInstruction(
			rent, size, solanago.SystemProgramID, payer, key.PublicKey(),
		).Build(),
		system.NewInitializeNonceAccountInstruction(
			solanago.MustPublicKeyFromBase58(string(authority)), key.PublicKey(),
			solanago.SysVarRecentBlockHashesPubkey, solanago.SysVarRentPubkey,
		).Build(),
	}, n.authority, key)
	must(t, err)
	must(t, n.SolanaNode.Mine(6)) // final

	return chain.Address(key.PublicKey().String())
}

// handsOver has the authority of a nonce account, the node's own, give it to somebody else.
func (n *node) handsOver(t *testing.T, account, to chain.Address) {
	t.Helper()

	_, err := n.send([]solanago.Instruction{
		system.NewAuthorizeNonceAccountInstruction(
			solanago.MustPublicKeyFromBase58(string(to)), solanago.MustPublicKeyFromBase58(string(account)),
			n.authority.PublicKey(),
		).Build(),
	}, n.authority)
	must(t, err)
	must(t, n.SolanaNode.Mine(6))
}

// closeNonce closes a nonce account whose authority is the node's own.
func (n *node) closeNonce(t *testing.T, account chain.Address) {
	t.Helper()

	key := solanago.MustPublicKeyFromBase58(string(account))

	var held struct{ Value uint64 }
	must(t, n.Call(&held, "getBalance", account))

	_, err := n.send([]solanago.Instruction{
		system.NewWithdrawNonceAccountInstruction(
			held.Value, key, n.authority.PublicKey(), solanago.SysVarRecentBlockHashesPubkey,
			solanago.SysVarRentPubkey, n.authority.PublicKey(),
		).Build(),
	}, n.authority)
	must(t, err)
	must(t, n.SolanaNode.Mine(6))
}

// nonce returns what a nonce account of an address holds.
func (s *sender) nonce(address, account chain.Address) *chain.DurableNonce {
	s.t.Helper()

	read, err := s.d.ReadNonces(s.t.Context(), address, []chain.Address{account})
	must(s.t, err)

	if read[0].Unusable != "" {
		s.t.Fatalf("nonce account %s cannot be used: %s", account, read[0].Unusable)
	}

	return &read[0].DurableNonce
}

// paying returns the order of a payment of coin with a nonce.
func (s *sender) paying(from chain.Party, lamports uint64, nonce *chain.DurableNonce) chain.Order {
	return chain.Order{
		From:         from,
		DurableNonce: nonce,
		MaxFee:       chain.Units(100_000),
		Outputs: []chain.Output{
			{To: newAddress(s.t), AssetID: s.native().ID, Amount: chain.Units(lamports)},
		},
	}
}

// wantState fails the test unless a transaction is in a state.
func (s *sender) wantState(what string, tx chain.Signed, state chain.TxState) chain.TxStatus {
	s.t.Helper()

	got, err := s.d.Histories().Status(s.t.Context(), tx)
	if err != nil || got.State != state {
		s.t.Errorf("%s: it is %+v, %v; want %s", what, got, err, state)
	}

	return got
}

// sent reports whether the node took a transaction into its open block.
func (s *sender) sent(tx chain.Signed) bool {
	s.t.Helper()

	must(s.t, s.n.Call(
		nil, "sendTransaction", base64.StdEncoding.EncodeToString(tx.Raw),
		map[string]any{"encoding": "base64", "skipPreflight": true},
	))

	var status struct{ Value []*struct{ Slot uint64 } }
	must(s.t, s.n.Call(&status, "getSignatureStatuses", []string{tx.TxHash}))

	return status.Value[0] != nil
}

// TestNonceOutlivesBlockhashes includes a transaction with a durable nonce long after its blocks have passed. Until
// then it is not dead, whatever nodes say.
func TestNonceOutlivesBlockhashes(t *testing.T) {
	n, s, from := newMaster(t)

	account := n.openNonce(t, from.Address)
	tx := s.sign(s.paying(from, 1_000_000, s.nonce(from.Address, account)))

	if tx.ValidToHeight != 0 || tx.DurableNonce == nil {
		t.Fatalf("signed as %+v", tx)
	}

	must(t, n.SolanaNode.Mine(400))
	s.wantState("after 400 blocks", tx, chain.TxUnknown)

	if st := s.include(tx); !st.Final || st.Fee != tx.MaxFee {
		t.Errorf("included as %+v, want final at a fee of %s", st, tx.MaxFee)
	}
}

// TestNonceOfAnotherProvesAConflict has a nonce used by another transaction: the first is dead once that is final.
func TestNonceOfAnotherProvesAConflict(t *testing.T) {
	n, s, from := newMaster(t)

	for _, c := range []struct {
		name     string
		lamports uint64
		failed   bool
	}{
		{"a payment", 2_000_000, false},
		{"a transaction that failed", 1, true}, // below the rent minimum of a new address
	} {
		account := n.openNonce(t, from.Address)
		nonce := s.nonce(from.Address, account)
		tx := s.sign(s.paying(from, 1_000_000, nonce))

		order := s.paying(from, 2_000_000, nonce)
		rival := s.sign(order)

		if c.failed {
			rival = s.failing(from, nonce)
		}

		if !s.sent(rival) {
			t.Fatalf("%s was not taken", c.name)
		}

		must(t, n.SolanaNode.Mine(2))

		used, _, err := s.d.NonceUsed(t.Context(), *nonce)
		if err != nil || used {
			t.Errorf("%s, before it is final: used %t, %v", c.name, used, err)
		}

		s.wantState(c.name+", before it is final", tx, chain.TxUnknown)

		if s.sent(tx) {
			t.Fatalf("%s: the same nonce was used twice", c.name)
		}

		must(t, n.SolanaNode.Mine(6))

		if st := s.wantState(c.name+", final", tx, chain.TxDead); st.Reason != chain.ReasonConflict {
			t.Errorf("%s: dead by %q", c.name, st.Reason)
		}

		if st := s.wantState(c.name, rival, chain.TxIncluded); st.Reverted != c.failed {
			t.Errorf("%s: %+v", c.name, st)
		}

		used, at, err := s.d.NonceUsed(t.Context(), *nonce)
		if err != nil || !used || at.Height <= nonce.Height {
			t.Errorf("%s: used %t at %d, %v", c.name, used, at.Height, err)
		}

		if next := s.nonce(from.Address, account); next.Value == nonce.Value {
			t.Errorf("%s left the nonce as it was", c.name)
		}
	}
}

// failing returns a signed payment with a nonce whose money is gone when it is sent.
func (s *sender) failing(from chain.Party, nonce *chain.DurableNonce) chain.Signed {
	s.t.Helper()

	order := s.paying(from, 600_000_000, nonce)
	tx := s.sign(order)
	s.include(s.sign(s.paying(from, 500_000_000, nil)))

	return tx
}

// TestNonceConflictNeedsTwoNodes shows what does not prove that a nonce was used.
func TestNonceConflictNeedsTwoNodes(t *testing.T) {
	n, s, from := newMaster(t)

	account := n.openNonce(t, from.Address)
	nonce := s.nonce(from.Address, account)
	waiting, rival := s.sign(s.paying(from, 1_000_000, nonce)), s.sign(s.paying(from, 2_000_000, nonce))

	// liar has another value than the ledger.
	liar := newFaultyNode(t, n)
	liar.set(func(method string, _ []any, result any) (any, int) {
		if method == "getMultipleAccounts" {
			for _, a := range result.(map[string]any)["value"].([]any) {
				if held, ok := a.(map[string]any); ok {
					raw, _ := base64.StdEncoding.DecodeString(held["data"].([]any)[0].(string))
					if len(raw) == 80 {
						raw[50] ^= 1
						held["data"] = []any{base64.StdEncoding.EncodeToString(raw), "base64"}
					}
				}
			}
		}

		return result, 0
	})

	with := func(first string, others ...string) *solana.Driver {
		return n.driver(t, func(c *solana.Config) { c.RPC, c.RPCs = first, others }).Histories()
	}
	want := func(what string, d *solana.Driver, state chain.TxState) {
		t.Helper()

		if st, err := d.Status(t.Context(), waiting); err != nil || st.State != state {
			t.Errorf("%s it is %+v, %v; want %s", what, st, err, state)
		}
	}

	want("while one node of two has another value,", with(n.URL, liar.URL), chain.TxUnknown)
	want("while the liar comes first,", with(liar.URL, n.URL), chain.TxUnknown)

	if read, err := with(n.URL, liar.URL).ReadNonces(
		t.Context(), from.Address, []chain.Address{account},
	); err != nil || !read[0].Disputed || read[0].Unusable == "" {
		t.Errorf("nodes that do not agree: %+v, %v", read, err)
	}

	if !s.sent(rival) {
		t.Fatal("the rival was not taken")
	}

	must(t, n.SolanaNode.Mine(6))
	want("while the second node cannot be asked,", with(n.URL, "http://127.0.0.1:1"), chain.TxUnknown)
	want("with the proof of two nodes,", with(n.URL, n.URL), chain.TxDead)

	must(t, n.Prune(nonce.Height+2))
	want("where the blocks since are pruned,", with(n.URL), chain.TxUnknown)
}

// TestProofsNeedABackendThatIsFarEnough looks up a transaction behind a URL of which one backend is far behind: that it
// does not know it proves nothing.
func TestProofsNeedABackendThatIsFarEnough(t *testing.T) {
	n, s, from := newMaster(t)

	account := n.openNonce(t, from.Address)
	dated := s.sign(s.paying(from, 1_000_000, nil))
	durable := s.sign(s.paying(from, 2_000_000, s.nonce(from.Address, account)))

	must(t, n.SolanaNode.Mine(20))
	s.include(dated)
	s.include(durable)
	must(t, n.SolanaNode.Mine(200))

	for _, lags := range [][]int{{0, 220}, {0, 220, 220}, {0, 220, 220, 220}, {0, 0, 220, 220}} {
		url, err := n.Backends(lags...)
		must(t, err)

		d := n.driver(t, func(c *solana.Config) { c.RPC = url }).Histories()

		for range 12 {
			for what, tx := range map[string]chain.Signed{"a blockhash": dated, "a nonce": durable} {
				if st, err := d.Status(t.Context(), tx); err == nil && st.State == chain.TxDead {
					t.Fatalf("lags %v, by %s: an included transaction is dead: %+v", lags, what, st)
				}
			}
		}
	}
}

// TestANonceOfLaterIsNotUsed asks a backend that is behind the block in which a nonce was read: what its account held
// before proves nothing, though it is something else.
func TestANonceOfLaterIsNotUsed(t *testing.T) {
	n, s, from := newMaster(t)

	account := n.openNonce(t, from.Address)
	s.include(s.sign(s.paying(from, 1_000_000, s.nonce(from.Address, account))))
	must(t, n.SolanaNode.Mine(100))
	s.include(s.sign(s.paying(from, 2_000_000, s.nonce(from.Address, account))))
	must(t, n.SolanaNode.Mine(20))

	nonce := s.nonce(from.Address, account)
	waiting := s.sign(s.paying(from, 3_000_000, nonce))

	must(t, n.SolanaNode.Mine(20))

	for _, lags := range [][]int{{60}, {0, 60}, {0, 60, 60}, {0, 60, 60, 60}} {
		url, err := n.Backends(lags...)
		must(t, err)

		d := n.driver(t, func(c *solana.Config) { c.RPC = url }).Histories()

		for range 12 {
			if used, at, err := d.NonceUsed(t.Context(), *nonce); err == nil && used {
				t.Fatalf(
					"lags %v: a nonce of block %d was used before block %d",
					lags,
					nonce.Height,
					at.Height,
				)
			}

			if st, err := d.Status(t.Context(), waiting); err == nil && st.State == chain.TxDead {
				t.Fatalf("lags %v: a transaction that waits is dead: %+v", lags, st)
			}
		}
	}

	s.include(waiting)
}

// TestReplacementRaisesThePrice replaces a transaction at its nonce, and follows one that ran out, at a rising price up
// to what the order and the configuration allow.
func TestReplacementRaisesThePrice(t *testing.T) {
	n, s, from := newMaster(t)

	account := n.openNonce(t, from.Address)
	order := s.paying(from, 1_000_000, s.nonce(from.Address, account))
	order.MaxFee = chain.Units(5_000 + 400)

	attempts := []chain.Signed{s.sign(order)}

	for {
		order.Replaces = &attempts[len(attempts)-1]

		next, err := s.trySign(order)
		if fault.Code(err) == "fee_above_maximum" {
			break
		}

		must(t, err)

		price, earlier := solana.PriceOf(next.Raw), solana.PriceOf(order.Replaces.Raw)
		if price <= earlier || *next.DurableNonce != *attempts[0].DurableNonce ||
			order.MaxFee.Less(next.MaxFee) {
			t.Fatalf(
				"attempt %d offers %d after %d, costs %s and has %+v",
				len(attempts), price, earlier, next.MaxFee, next.DurableNonce,
			)
		}

		if attempts = append(attempts, next); len(attempts) > 10 {
			t.Fatal("the maximum is not kept")
		}
	}

	if len(attempts) < 3 {
		t.Errorf("only %d attempts within the maximum", len(attempts))
	}

	// Whichever is included, the others are not.
	included := 0

	for _, tx := range attempts {
		if s.sent(tx) {
			included++
		}
	}

	if included != 1 {
		t.Errorf("%d of %d attempts were included", included, len(attempts))
	}

	plain := s.paying(from, 1_000_000, nil)
	first := s.sign(plain)
	plain.Expired = &first

	if second := s.sign(plain); second.MaxFee.Cmp(first.MaxFee) <= 0 {
		t.Errorf("after one that ran out at %s the next costs %s", first.MaxFee, second.MaxFee)
	}
}

// TestUnusableNonceAccounts names what stands in the way of a nonce account.
func TestUnusableNonceAccounts(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	authority := chain.Address(n.authority.PublicKey().String())
	stranger := newAddress(t)

	good, closed, lost := n.openNonce(t, authority), n.openNonce(t, authority), n.openNonce(t, authority)
	held := *s.nonce(authority, lost)

	n.closeNonce(t, closed)
	n.handsOver(t, lost, stranger)

	accounts := []chain.Address{good, closed, lost, authority, newAddress(t)}
	read, err := s.d.ReadNonces(t.Context(), authority, accounts)
	must(t, err)

	for i, want := range []string{"", "closed", string(stranger), "closed", "closed"} {
		if got := read[i]; got.Account != accounts[i] || got.Disputed ||
			!strings.Contains(got.Unusable, want) ||
			(want == "") != (got.Unusable == "") {
			t.Errorf("account %d: %+v, want %q", i, got, want)
		}
	}

	// Another authority does not use the nonce: it may be given back.
	if used, _, err := s.d.NonceUsed(t.Context(), held); err != nil || used {
		t.Errorf("after another authority took it: used %t, %v", used, err)
	}
}

// TestNonceConfig refuses nonce accounts that are none.
func TestNonceConfig(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	wallet, account := newAddress(t), newAddress(t)

	for name, accounts := range map[string]map[chain.Address][]chain.Address{
		"no address":      {wallet: {"nonce"}},
		"no wallet":       {"wallet": {account}},
		"named twice":     {wallet: {account, account}},
		"of two wallets":  {wallet: {account}, newAddress(t): {account}},
		"the wallet":      {wallet: {wallet}},
		"(none is wrong)": {wallet: {account}},
	} {
		c := n.config()
		c.NonceAccounts = accounts

		_, err := solana.New(c)
		if wrong := name[0] != '('; wrong != errors.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// newMaster starts a node with a master wallet that can pay.
func newMaster(t *testing.T) (*node, *sender, chain.Party) {
	t.Helper()

	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, sol, 0)

	return n, s, from
}

// TestRefusedNonceHasExpired has the network give durable nonces up while a transaction waits at one. It has expired
// once as many nodes as prove something refuse it although its account holds its nonce, and is signed again with a
// blockhash.
func TestRefusedNonceHasExpired(t *testing.T) {
	n, s, from := newMaster(t)

	account := n.openNonce(t, from.Address)
	must(t, n.SolanaNode.Mine(4))

	order := s.paying(from, 1_000_000, s.nonce(from.Address, account))
	tx := s.sign(order)
	behind := newFaultyNode(t, n) // takes nonces
	behind.set(func(method string, _ []any, result any) (any, int) {
		if simulated, ok := result.(map[string]any); ok && method == "simulateTransaction" {
			simulated["value"] = map[string]any{"err": nil, "logs": []any{}}
		}

		return result, 0
	})

	must(t, n.SolanaNode.Mine(2)) // final is a block after the one in which the nonce was read

	refused := func() {
		t.Helper()
		must(t, n.Nonces(false))

		if err := s.d.Broadcast(t.Context(), tx); !errors.Is(err, fault.Unavailable) {
			t.Errorf("sent to a network without nonces: %v", err)
		}
	}

	// One node that did not take it for a moment proves nothing, nor does one of two.
	refused()
	must(t, n.Nonces(true))
	s.wantState("where nonces are taken after all", tx, chain.TxUnknown)
	must(t, n.Nonces(false))

	two := s.with(behind.URL, n.URL)
	_ = two.d.Broadcast(t.Context(), tx)
	two.wantState("where one of two nodes takes nonces", tx, chain.TxUnknown)

	refused()

	if got := s.wantState("where nonces are refused", tx, chain.TxDead); got.Reason != chain.ReasonExpired {
		t.Errorf("it ended as %s, want %s", got.Reason, chain.ReasonExpired)
	}

	read, err := s.d.ReadNonces(t.Context(), from.Address, []chain.Address{account})
	if err != nil || read[0].Unusable == "" || read[0].Disputed {
		t.Errorf("the account is %+v, %v; want one that cannot be used", read, err)
	}

	order.DurableNonce, order.Expired = nil, &tx
	s.include(s.sign(order))
}
