//go:build unix

package solana_test

import (
	"errors"
	"testing"

	solanago "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// TestEqualOrdersAreDistinctTransactions builds one order several times on one blockhash: the
// transactions differ, and all of them pay.
func TestEqualOrdersAreDistinctTransactions(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from, to := s.party(chain.RoleMaster, 1), newAddress(t)
	s.fund(from, sol, 1_000_000)

	for _, a := range []chain.Asset{s.native(), s.token()} {
		o := chain.Order{
			From:    from,
			Outputs: []chain.Output{{To: to, AssetID: a.ID, Amount: chain.Units(1_000_000 / 4)}},
		}
		if a.Kind == chain.Native {
			o.Outputs[0].Amount = chain.Units(1_000_000)
		}

		seen := map[string]bool{}

		var all []chain.Signed
		// Two of three are equal once in a thousand times; the sender builds once more then.
		for tries := 0; len(seen) < 3; tries++ {
			if tries == 10 {
				t.Fatalf("ten equal orders became %d different transactions", len(seen))
			}

			tx := s.sign(o)
			if !seen[tx.TxHash] {
				seen[tx.TxHash], all = true, append(all, tx)
			}

			if tx.ValidToHeight != all[0].ValidToHeight {
				t.Fatal("the blockhash changed, so the test shows nothing")
			}
		}

		for _, tx := range all {
			must(t, s.d.Broadcast(t.Context(), tx))
		}

		must(t, n.SolanaNode.Mine(1))

		if got, want := s.balance(to, a), o.Outputs[0].Amount.Mul(3); got != want {
			t.Errorf("%s %s arrived of three equal payouts, want %s", got, a.Symbol, want)
		}
	}
}

// TestRentMinimumIsKept sweeps deposits that would leave less than the rent minimum.
func TestRentMinimumIsKept(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	master, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
	s.fund(master, sol, 0)
	s.fund(deposit, 10_000_000, 0)
	s.fund(deposit, 100, 0) // not to be released
	r := chain.SweepRequest{
		Asset:      s.native(),
		Deposit:    deposit,
		Master:     master,
		FeeAddress: newAddress(t),
		Amount:     chain.Units(10_000_000),
		Fee:        chain.Units(50_000),
	}
	before := s.balance(master.Address, s.native())
	steps, err := s.d.PlanSweep(t.Context(), r)
	must(t, err)

	if !steps[0].PaysFee.IsZero() || len(steps[0].Order.Outputs) != 1 {
		t.Errorf("a platform fee too small to open its account is paid: %+v", steps)
	}

	st := s.include(s.sign(steps[0].Order))
	if left := s.balance(deposit.Address, s.native()); left != chain.Units(890_880) {
		t.Errorf("%s is left, want the rent minimum", left)
	}

	received := s.balance(master.Address, s.native()).Sub(before)
	if got := received.Add(st.Fee); got != chain.Units(10_000_100-890_880) {
		t.Errorf("%s arrived and was paid as a fee", got)
	}

	// A wallet cannot be left with less than the rent minimum either.
	rest := s.balance(master.Address, s.native())

	o := chain.Order{
		From:   master,
		MaxFee: chain.Units(100_000),
		Outputs: []chain.Output{
			{To: newAddress(t), AssetID: s.native().ID, Amount: rest.Sub(chain.Units(500_000))},
		},
	}

	_, err = s.d.Build(t.Context(), o)
	if !errors.Is(err, fault.State) || fault.Code(err) != "insufficient_funds" {
		t.Errorf("a payout that leaves less than the rent minimum: %v", err)
	}
}

// TestPriorityFee offers the recent price, within the maximum of the configuration and of the order.
// The fee is exact.
func TestPriorityFee(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from, to := s.party(chain.RoleMaster, 1), newAddress(t)
	s.fund(from, sol, 1_000_000)

	order := func(max uint64) chain.Order {
		return chain.Order{
			From:    from,
			MaxFee:  chain.Units(max),
			Outputs: []chain.Output{{To: to, AssetID: s.native().ID, Amount: chain.Units(1_000_000)}},
		}
	}
	for _, c := range []struct {
		name       string
		price, max uint64
		most       uint64 // that is offered
	}{
		{"quiet", 0, 100_000, 5_000},
		{"busy", 500_000, 100_000, 5_000 + 5_000},
		{"absurd, capped by the configuration", 1 << 40, 100_000, 5_000 + 10_000},
		{"absurd, capped by the order", 1 << 40, 6_000, 6_000},
	} {
		must(t, n.SetPriorityFee(c.price))
		tx := s.sign(order(c.max))

		fee, _ := tx.MaxFee.Uint64()
		if fee > c.most || (c.price > 0 && fee <= 5_000) {
			t.Errorf("%s: offers %d, want more than the base fee and at most %d", c.name, fee, c.most)
		}

		if st := s.include(tx); st.Fee != tx.MaxFee {
			t.Errorf("%s: it cost %s, offered were %s", c.name, st.Fee, tx.MaxFee)
		}
	}

	if _, err := s.d.Build(t.Context(), order(4_999)); !errors.Is(err, fault.Limited) {
		t.Errorf("less than the base fee: %v", err)
	}
}

// TestCoinAtATokenAccountBlocksNothing sends less than the rent of a token account to its address before it is
// opened: that of the master wallet, of a customer, and of the wallet that pays.
func TestCoinAtATokenAccountBlocksNothing(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	master, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
	s.fund(master, sol, 0)
	s.fund(deposit, 0, 1_000_000)

	customer := newAddress(t)
	for _, owner := range []chain.Address{master.Address, customer} {
		account, err := s.d.TokenAccount(owner, s.token())
		must(t, err)
		n.pay(t, account, chain.Asset{Kind: chain.Native}, 890_880)
	}

	must(t, n.SolanaNode.Mine(1))

	// The master wallet has coin at its token account and no tokens.
	output := chain.Output{To: customer, AssetID: s.token().ID, Amount: chain.Units(400_000)}

	order := chain.Order{From: master, MaxFee: chain.Units(10_000_000), Outputs: []chain.Output{output}}
	if _, err := s.d.Build(t.Context(), order); fault.Code(err) != "insufficient_funds" {
		t.Errorf("without tokens: %v", err)
	}

	steps, err := s.d.PlanSweep(t.Context(), chain.SweepRequest{
		Asset:   s.token(),
		Deposit: deposit,
		Master:  master,
		Amount:  chain.Units(1_000_000),
	})
	must(t, err)

	for _, o := range []chain.Order{steps[0].Order, {From: master, Outputs: []chain.Output{output}}} {
		before := s.balance(master.Address, s.native())
		tx := s.sign(o)
		st := s.include(tx)
		spent := before.Sub(s.balance(master.Address, s.native()))

		// The sweep brings back the rent of the closed account to who paid it, which is not the master wallet.
		if st.Fee != tx.MaxFee || spent != st.Fee {
			t.Errorf("it cost %s of at most %s, and the wallet spent %s", st.Fee, tx.MaxFee, spent)
		}
	}

	if got := s.balance(customer, s.token()); got != chain.Units(400_000) {
		t.Errorf("the customer has %s", got)
	}
}

// TestExpiryNeedsProofFromTwoNodes shows what does not prove that a transaction has expired.
func TestExpiryNeedsProofFromTwoNodes(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, sol, 0)

	build := func(amount uint64) chain.Signed {
		return s.sign(chain.Order{
			From:    from,
			Outputs: []chain.Output{{To: newAddress(t), AssetID: s.native().ID, Amount: chain.Units(amount)}},
		})
	}
	tx, kept := build(1_000_000), build(2_000_000)
	must(t, s.d.Broadcast(t.Context(), kept))

	head, err := s.d.Head(t.Context())
	must(t, err)
	must(t, n.SolanaNode.Mine(int(tx.ValidToHeight-head.Tip.Height+1)))

	// amnesiac denies every hash.
	amnesiac := newFaultyNode(t, n)
	amnesiac.set(func(method string, _ []any, result any) (any, int) {
		switch method {
		case "getSignatureStatuses":
			return map[string]any{"context": result.(map[string]any)["context"], "value": []any{nil}}, 0
		case "getTransaction":
			return nil, 0
		}

		return result, 0
	})

	const unreachable = "http://127.0.0.1:1"

	with := func(first string, others ...string) *solana.BlockDriver {
		return n.driver(t, func(c *solana.Config) { c.RPC, c.RPCs = first, others })
	}
	want := func(what string, d chain.Sender, tx chain.Signed, state chain.TxState) {
		t.Helper()

		if st, err := d.Status(t.Context(), tx); err != nil || st.State != state {
			t.Errorf("%s it is %+v, %v; want %s", what, st, err, state)
		}
	}
	want("past its last height, which is not final yet,", s.d.Histories(), tx, chain.TxUnknown)
	must(t, n.SolanaNode.Mine(5))

	want("while the second node cannot be asked,", with(n.URL, unreachable).Histories(), tx, chain.TxUnknown)
	want("with the proof of the only node,", with(n.URL).Histories(), tx, chain.TxDead)
	want("with the proof of two nodes,", with(n.URL, amnesiac.URL).Histories(), tx, chain.TxDead)
	want(
		"with the proof of two of three nodes,",
		with(n.URL, unreachable, amnesiac.URL).Histories(),
		tx,
		chain.TxDead,
	)
	want("for a driver that reads blocks,", with(n.URL, amnesiac.URL), tx, chain.TxUnknown)

	want("denied by one node of two,", with(amnesiac.URL, n.URL).Histories(), kept, chain.TxIncluded)
	want(
		"denied by two of three,",
		with(amnesiac.URL, amnesiac.URL, n.URL).Histories(),
		kept,
		chain.TxIncluded,
	)
	want(
		"denied by the only node that answers,",
		with(amnesiac.URL, unreachable).Histories(),
		kept,
		chain.TxUnknown,
	)

	must(t, n.Prune(head.Tip.Height+20))
	want("of a node that has thrown its time away,", with(n.URL).Histories(), tx, chain.TxUnknown)
}

// TestOtherTokenAccounts does not credit an owner with tokens outside the associated account, which no
// sweep would find. Nor does it credit coin that is the rent of a token account.
func TestOtherTokenAccounts(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	owner := newKey(t).PublicKey()
	other := newKey(t)
	head, err := s.d.Head(t.Context())
	must(t, err)

	create := system.NewCreateAccountInstruction(
		2_039_280, 165, n.program, n.authority.PublicKey(), other.PublicKey(),
	)
	_, err = n.send([]solanago.Instruction{
		create.Build(),
		// InitializeAccount3
		solanago.NewInstruction(
			n.program,
			solanago.AccountMetaSlice{solanago.Meta(other.PublicKey()).WRITE(), solanago.Meta(n.mint)},
			append([]byte{18}, owner[:]...),
		),
		solanago.NewInstruction(n.program, solanago.AccountMetaSlice{
			solanago.Meta(n.mint).WRITE(),
			solanago.Meta(other.PublicKey()).WRITE(),
			solanago.Meta(n.authority.PublicKey()).SIGNER(),
		}, []byte{7, 99, 0, 0, 0, 0, 0, 0, 0}), // MintTo
	}, n.authority, other)
	must(t, err)
	must(t, n.SolanaNode.Mine(1))
	blocks, err := s.d.Blocks(t.Context(), head.Tip.Height+1, head.Tip.Height+1)
	must(t, err)

	if len(blocks[0].Transfers) != 1 {
		t.Fatalf("transfers %+v, want the tokens alone", blocks[0].Transfers)
	}

	if got := blocks[0].Transfers[0]; got.To != chain.Address(other.PublicKey().String()) ||
		got.Amount != chain.Units(99) {
		t.Errorf("%+v, want 99 tokens to the account itself", got)
	}
}
