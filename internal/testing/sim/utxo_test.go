package sim_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

func newUTXO(t *testing.T, change ...func(*sim.UTXOConfig)) *sim.UTXO {
	t.Helper()

	config := sim.UTXOConfig{Clock: fixed}
	for _, f := range change {
		f(&config)
	}

	return sim.NewUTXO(config)
}

// utxoParty returns a key of the signer with its address.
func utxoParty(t *testing.T, driver chain.Deriver, s *sim.Signer, index uint32) chain.Party {
	t.Helper()

	ref := chain.KeyRef{Family: chain.Sim, Role: chain.RoleMaster, Index: index}

	key, err := s.PublicKey(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}

	address, err := driver.DeriveAddress(key)
	if err != nil {
		t.Fatal(err)
	}

	return chain.Party{Key: ref, Address: address}
}

// signedBy builds, signs and assembles an order.
func signedBy(t *testing.T, driver chain.Sender, s *sim.Signer, order chain.Order) chain.Signed {
	t.Helper()

	unsigned, err := driver.Build(t.Context(), order)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}

	var keys []chain.PublicKey

	for _, payload := range unsigned.Payloads {
		key, err := s.PublicKey(t.Context(), payload.Key)
		if err != nil {
			t.Fatal(err)
		}

		keys = append(keys, key)
	}

	signatures, err := s.Sign(t.Context(), chain.SignRequest{Payloads: unsigned.Payloads})
	if err != nil {
		t.Fatal(err)
	}

	signed, err := driver.Assemble(order, unsigned, keys, signatures)
	if err != nil {
		t.Fatalf("Assemble: %v", err)
	}

	return signed
}

// utxoOrder pays an amount from the coins of a wallet.
func utxoOrder(u *sim.UTXO, from chain.Party, to chain.Address, amount uint64) chain.Order {
	return chain.Order{
		From:    from,
		Outputs: []chain.Output{{To: to, AssetID: nativeOf(u).ID, Amount: chain.Units(amount)}},
		Coins:   u.Coins(from),
		MaxFee:  chain.Units(1_000_000),
	}
}

func nativeOf(driver chain.Driver) chain.Asset {
	native, _ := driver.Network().Native()
	return native
}

func utxoPayment(u *sim.UTXO, rate uint64, parent string) sim.UTXOPayment {
	return sim.UTXOPayment{
		Outputs: []chain.Output{{To: u.NewAddress(), Amount: chain.Units(50_000)}},
		FeeRate: rate,
		Parent:  parent,
	}
}

// send puts a payment at a rate into the pool.
func send(t *testing.T, u *sim.UTXO, rate uint64, parent string) string {
	t.Helper()

	hash, err := u.Send(utxoPayment(u, rate, parent))
	if err != nil {
		t.Fatalf("Send: %v", err)
	}

	return hash
}

// pooled returns the hashes of the pool in order.
func utxoPooled(t *testing.T, u *sim.UTXO) (hashes []string) {
	t.Helper()

	txs, err := u.Pool(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	for _, tx := range txs {
		hashes = append(hashes, tx.TxHash)
	}

	return hashes
}

func expectPooled(t *testing.T, u *sim.UTXO, want ...string) {
	t.Helper()

	if got := utxoPooled(t, u); !slices.Equal(got, want) {
		t.Errorf("the pool holds %v, want %v", got, want)
	}
}

func expectCode(t *testing.T, what string, err, kind error, code string) {
	t.Helper()

	if !errors.Is(err, kind) || fault.Code(err) != code {
		t.Errorf("%s: %v (code %q), want %v with code %s", what, err, fault.Code(err), kind, code)
	}
}

// An input weighs 209, an output 112 and the rest 84 weight units: 517 make 130 vB, not 129.
func TestUTXOFeesAreOfWholeVirtualBytes(t *testing.T) {
	for name, test := range map[string]struct{ rate, coins, want uint64 }{
		"one input at a round rate":       {1_000, 1, 130}, // 84 + 209 + 2×112 = 517 → 129.25 vB
		"one input at an odd rate":        {1_001, 1, 131},
		"two inputs":                      {1_000, 2, 182}, // 726 → 181.5 vB
		"one input at the default's rate": {10_000, 1, 1_300},
	} {
		t.Run(name, func(t *testing.T) {
			u, signer := newUTXO(t), sim.NewSigner(1, nil)
			wallet := utxoParty(t, u, signer, 0)

			for range test.coins {
				u.Fund(wallet.Address, chain.Units(100_000))
			}

			u.SetFeeRate(test.rate)
			u.SetFloor(test.rate)

			tx := signedBy(t, u, signer, utxoOrder(u, wallet, u.NewAddress(), 100_000*test.coins-50_000))
			if tx.MaxFee != chain.Units(test.want) || len(tx.Inputs) != int(test.coins) {
				t.Errorf("%d inputs cost %s, want %d", len(tx.Inputs), tx.MaxFee, test.want)
			}

			if err := u.Broadcast(t.Context(), tx); err != nil {
				t.Errorf("at exactly the floor: %v", err)
			}
		})
	}
}

func TestUTXOCoinbaseMatures(t *testing.T) {
	u, signer := newUTXO(t, func(c *sim.UTXOConfig) { c.Maturity = 5 }), sim.NewSigner(1, nil)
	wallet := utxoParty(t, u, signer, 0)
	u.Coinbase(wallet.Address, chain.Units(100_000))
	order := utxoOrder(u, wallet, u.NewAddress(), 50_000)

	for confirmations := 1; confirmations < 5; confirmations++ {
		_, err := u.Build(t.Context(), order)
		expectCode(t, "Build from an immature coin", err, fault.State, "insufficient_funds")
		u.MineEmpty(1)
	}

	tx := signedBy(t, u, signer, order)

	early := newUTXO(t, func(c *sim.UTXOConfig) { c.Maturity = 6 })
	early.Coinbase(wallet.Address, chain.Units(100_000))
	early.MineEmpty(4)
	expectCode(t, "Broadcast", early.Broadcast(t.Context(), tx), fault.Unavailable, "coin_spent")

	if err := u.Broadcast(t.Context(), tx); err != nil {
		t.Fatal(err)
	}

	u.Mine(1)

	if got := u.Balance(order.Outputs[0].To); got != chain.Units(50_000) {
		t.Errorf("%s arrived", got)
	}
}

// A block reward leaves with its block, and takes what spends it along.
func TestUTXOForkRemovesCoinbase(t *testing.T) {
	u, signer := newUTXO(t, func(c *sim.UTXOConfig) { c.Maturity = 1 }), sim.NewSigner(1, nil)
	wallet := utxoParty(t, u, signer, 0)
	u.Coinbase(wallet.Address, chain.Units(100_000))

	if err := u.Broadcast(t.Context(), signedBy(
		t, u, signer, utxoOrder(u, wallet, u.NewAddress(), 50_000),
	)); err != nil {
		t.Fatal(err)
	}

	u.Fork(sim.Fork{Depth: 1})
	expectPooled(t, u)

	if got := u.Balance(wallet.Address); !got.IsZero() {
		t.Errorf("%s of the orphaned reward are left", got)
	}
}

func TestUTXOBlocksAreFilledByPackageRate(t *testing.T) {
	u := newUTXO(t, func(c *sim.UTXOConfig) { c.BlockVSize = 330 }) // two transactions
	parent := send(t, u, 1_000, "")
	middle := send(t, u, 5_000, "")
	child := send(t, u, 30_000, parent)

	u.Mine(1)
	expectPooled(t, u, middle)

	blocks, err := u.Blocks(t.Context(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}

	if got := []string{
		blocks[0].Spent[0].By,
		blocks[0].Spent[1].By,
	}; !slices.Equal(
		got,
		[]string{parent, child},
	) {
		t.Errorf("the block spends by %v, want parent before child", got)
	}
}

func TestUTXOMinerFloorLeavesTheCheapWaiting(t *testing.T) {
	u := newUTXO(t)
	u.SetMinerFloor(5_000)

	cheap := send(t, u, 1_000, "")
	dear := send(t, u, 5_000, "")

	u.Mine(3)
	expectPooled(t, u, cheap)

	if found, err := u.Transaction(t.Context(), dear); err != nil || found.Block.IsZero() {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestUTXOForkDoubleSpends(t *testing.T) {
	u, signer := newUTXO(t), sim.NewSigner(1, nil)
	wallet := utxoParty(t, u, signer, 0)
	u.Fund(wallet.Address, chain.Units(100_000))
	order := utxoOrder(u, wallet, u.NewAddress(), 50_000)
	ours := signedBy(t, u, signer, order)

	if err := u.Broadcast(t.Context(), ours); err != nil {
		t.Fatal(err)
	}

	theirs := u.Pay(wallet.Address, chain.Units(60_000))
	kept := u.Pay(wallet.Address, chain.Units(70_000))
	u.Mine(1)
	child := send(t, u, 9_000, send(t, u, 9_000, ""))
	u.Fork(sim.Fork{Depth: 1}, ours.TxHash, theirs)

	if got := utxoPooled(t, u); !slices.Contains(got, kept) || !slices.Contains(got, child) ||
		slices.Contains(got, theirs) || slices.Contains(got, ours.TxHash) {
		t.Errorf("after the fork the pool holds %v", got)
	}

	expectState := func(want chain.TxState) {
		t.Helper()

		status, err := u.Status(t.Context(), ours)
		if err != nil || status.State != want {
			t.Errorf("status %+v, %v, want %s", status, err, want)
		}
	}
	expectState(chain.TxUnknown) // two confirmations of three
	u.Mine(1)
	expectState(chain.TxDead)

	if got := u.Balance(wallet.Address); got != chain.Units(70_000) {
		t.Errorf("the wallet has %s, want what was returned to the pool and mined", got)
	}

	// Another branch without the double spend revives it.
	u.Fork(sim.Fork{Depth: 3, Fate: sim.DropOrphan})
	expectState(chain.TxUnknown)
}

// A transaction on an unconfirmed output names what would kill it.
func TestUTXOUnconfirmedParentsProveExclusion(t *testing.T) {
	u, signer := newUTXO(t), sim.NewSigner(1, nil)
	wallet := utxoParty(t, u, signer, 0)
	parent := u.Pay(wallet.Address, chain.Units(100_000))

	order := utxoOrder(u, wallet, u.NewAddress(), 50_000)
	order.Coins = []chain.Coin{{
		Outpoint: chain.Outpoint{TxHash: parent},
		Owner:    wallet,
		Amount:   chain.Units(100_000),
	}}

	tx := signedBy(t, u, signer, order)
	if len(tx.UnconfirmedParents) != 1 || tx.UnconfirmedParents[0].By != parent {
		t.Fatalf("unconfirmed parents %+v, want %s", tx.UnconfirmedParents, parent)
	}

	if err := u.Broadcast(t.Context(), tx); err != nil {
		t.Fatal(err)
	}

	u.DoubleSpend(parent)
	u.Mine(3)

	status, err := u.Status(t.Context(), tx)
	if err != nil || status.State != chain.TxDead || status.Reason != chain.ReasonConflict {
		t.Errorf("status %+v, %v, want dead by conflict", status, err)
	}
}

func TestUTXODustIsRefusedAndPassedOver(t *testing.T) {
	u, signer := newUTXO(t), sim.NewSigner(1, nil)
	wallet := utxoParty(t, u, signer, 0)
	u.Fund(wallet.Address, chain.Units(100_000))

	for range 5 {
		u.Fund(wallet.Address, chain.Units(500)) // an input costs 530
	}

	_, err := u.Build(t.Context(), utxoOrder(u, wallet, u.NewAddress(), 293))
	expectCode(t, "Build of dust", err, fault.Invalid, "destination_not_payable")

	tx := signedBy(t, u, signer, utxoOrder(u, wallet, u.NewAddress(), 294))
	if len(tx.Inputs) != 1 {
		t.Errorf("%d inputs: coins below their own cost are spent", len(tx.Inputs))
	}
}

func TestUTXONodeFaults(t *testing.T) {
	u, signer := newUTXO(t), sim.NewSigner(1, nil)
	wallet := utxoParty(t, u, signer, 0)
	u.Fund(wallet.Address, chain.Units(100_000))
	tx := signedBy(t, u, signer, utxoOrder(u, wallet, u.NewAddress(), 50_000))

	u.LoseNextResponses(1)
	expectCode(t, "a lost response", u.Broadcast(t.Context(), tx), fault.Unavailable, "node_unavailable")
	expectPooled(t, u, tx.TxHash)

	u.FailNext(sim.MethodUnspent, sim.Unavailable(), 1)

	_, _, err := u.Unspent(t.Context(), tx.Inputs)
	expectCode(t, "a failing call", err, fault.Unavailable, "node_unavailable")

	u.Mine(1)
	u.Lag(1)

	if status, err := u.Status(t.Context(), tx); err != nil || status.State == chain.TxIncluded {
		t.Errorf("a node behind has %+v, %v", status, err)
	}

	if _, amounts, err := u.Unspent(t.Context(), tx.Inputs); err != nil || amounts[0].IsZero() {
		t.Errorf("a node behind has %v, %v", amounts, err)
	}

	u.Lag(0)

	tip, err := u.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	other := tip.Tip
	other.Hash = "another"

	if _, err := u.AgreedBlock(t.Context(), tip.Tip, nil); err != nil {
		t.Errorf("the second node: %v", err)
	}

	_, err = u.AgreedBlock(t.Context(), other, nil)
	expectCode(t, "another block", err, fault.NotFound, "block_unknown")
	u.LagSecond(1)

	_, err = u.AgreedBlock(t.Context(), tip.Tip, nil)
	expectCode(t, "a second node behind", err, fault.Unavailable, "nodes_missing")

	if got := u.Calls(sim.MethodUnspent); got != 2 {
		t.Errorf("%d calls of Unspent, want 2", got)
	}
}

func TestUTXOIsDeterministic(t *testing.T) {
	run := func(seed uint64) chain.Ref {
		u := newUTXO(t, func(c *sim.UTXOConfig) { c.Seed, c.BlockVSize = seed, 500 })
		for i := range uint64(20) {
			parent := send(t, u, 1_000+i%7*500, "")
			send(t, u, 9_000-i%5*700, parent)
		}

		u.Mine(3)
		u.Fork(sim.Fork{Depth: 2})

		return u.Mine(9)
	}

	if a, b := run(1), run(1); a != b {
		t.Errorf("the same calls made %+v and %+v", a, b)
	}

	if a, b := run(1), run(2); a.Hash == b.Hash {
		t.Error("another seed made the same blocks")
	}
}
