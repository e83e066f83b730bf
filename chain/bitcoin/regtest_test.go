//go:build unix

package bitcoin_test

// Stories on a real node that the suite does not tell.

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testenv"
)

// purse is a signer with a driver on a node: what pays in these stories.
type purse struct {
	t      *testing.T
	n      *node
	d      *bitcoin.Driver
	signer *hdkey.Signer
}

func newPurse(t *testing.T, n *node, change ...func(*bitcoin.Config)) *purse {
	return &purse{t: t, n: n, d: n.driver(t, change...), signer: freshSigner(t)}
}

func (p *purse) party(role chain.Role, index uint32) chain.Party {
	p.t.Helper()

	ref := chain.KeyRef{Family: chain.Bitcoin, Role: role, Index: index}
	key, err := p.signer.PublicKey(p.t.Context(), ref)
	p.n.must(p.t, err)
	address, err := p.d.DeriveAddress(key)
	p.n.must(p.t, err)

	return chain.Party{Key: ref, Address: address}
}

func (p *purse) pay(to chain.Address, amount uint64) {
	p.t.Helper()
	_, err := p.n.Pay(p.t.Context(), to, chain.Asset{}, chain.Units(amount))
	p.n.must(p.t, err)
}

func (p *purse) mine(n int) {
	p.t.Helper()
	p.n.must(p.t, p.n.Mine(p.t.Context(), n))
}

func (p *purse) coins(owners ...chain.Party) (all []chain.Coin) {
	p.t.Helper()

	for _, o := range owners {
		coins, err := p.n.Coins(p.t.Context(), o)
		p.n.must(p.t, err)

		all = append(all, coins...)
	}

	return all
}

func (p *purse) output(to chain.Address, amount uint64) chain.Output {
	return chain.Output{To: to, AssetID: p.d.Network().Assets[0].ID, Amount: chain.Units(amount)}
}

func (p *purse) sign(o chain.Order) chain.Signed {
	p.t.Helper()
	ctx := p.t.Context()
	unsigned, err := p.d.Build(ctx, o)
	p.n.must(p.t, err)

	var keys []chain.PublicKey

	for _, payload := range unsigned.Payloads {
		key, err := p.signer.PublicKey(ctx, payload.Key)
		p.n.must(p.t, err)

		keys = append(keys, key)
	}

	signatures, err := p.signer.Sign(
		ctx,
		chain.SignRequest{Unsigned: unsigned.Raw, Payloads: unsigned.Payloads},
	)
	p.n.must(p.t, err)
	signed, err := p.d.Assemble(o, unsigned, keys, signatures)
	p.n.must(p.t, err)

	return signed
}

// accepted asks the node whether it would take a transaction, and returns its fee and virtual size.
func (p *purse) accepted(signed chain.Signed) (fee chain.Amount, vsize uint64) {
	p.t.Helper()

	var out []struct {
		Allowed bool
		Reason  string `json:"reject-reason"`
		Vsize   uint64
		Fees    struct{ Base json.Number }
	}
	p.n.must(
		p.t,
		p.n.Call(p.t.Context(), &out, "testmempoolaccept", []string{hex.EncodeToString(signed.Raw)}),
	)

	if len(out) != 1 || !out[0].Allowed {
		p.t.Fatalf("the node refuses %s: %+v", signed.TxHash, out)
	}

	fee, err := chain.AmountFromDecimalFloor(decimal.RequireFromString(out[0].Fees.Base.String()), 8)
	p.n.must(p.t, err)

	return fee, out[0].Vsize
}

func (p *purse) status(signed chain.Signed) chain.TxStatus {
	p.t.Helper()
	st, err := p.d.Status(p.t.Context(), signed)
	p.n.must(p.t, err)

	return st
}

func TestOnRegtest(t *testing.T) {
	n := startNode(t, testenv.BitcoindOptions{}).rich(t, 1)
	for name, test := range map[string]func(*testing.T, *node){
		"BatchToEveryKindOfAddress":     batchToEveryKindOfAddress,
		"ManyDepositsInOneSweep":        manyDepositsInOneSweep,
		"FeeBelowDustIsLeftOut":         feeBelowDustIsLeftOut,
		"DustIsRefused":                 dustIsRefused,
		"ReplacementPaysForDescendants": replacementPaysForDescendants,
		"ReplacedPaymentShowsInThePool": replacedPaymentShowsInThePool,
		"SpentCoinsAreNotUsed":          spentCoinsAreNotUsed,
		"OutsideSignerReadsThePSBT":     outsideSignerReadsThePSBT,
		"WrongCredentials":              wrongCredentials,
		"YoungBlockRewardsAreNotSpent":  youngBlockRewardsAreNotSpent,
		"DeathByAForeignTransaction":    deathByAForeignTransaction,
		"SearchGoesOnFromCallToCall":    searchGoesOnFromCallToCall,
		"PoolOffShowsNothing":           poolOffShowsNothing,
	} {
		t.Run(name, func(t *testing.T) { test(t, n) })
	}
}

// One transaction pays a batch, from coins of both kinds and of several owners.
func batchToEveryKindOfAddress(t *testing.T, n *node) {
	p := newPurse(t, n)
	taproot := newPurse(t, n, func(c *bitcoin.Config) { c.Taproot = true })
	taproot.signer = p.signer

	from, second, third := p.party(
		chain.RoleMaster, 0,
	), p.party(
		chain.RoleMaster, 1,
	), taproot.party(
		chain.RoleMaster, 2,
	)
	for _, owner := range []chain.Party{from, second, third} {
		p.pay(owner.Address, 100_000)
	}

	p.mine(1)
	o := chain.Order{From: from, MaxFee: chain.Units(100_000), Coins: p.coins(from, second, third)}

	for _, kind := range []string{"legacy", "p2sh-segwit", "bech32", "bech32m"} {
		var a chain.Address
		n.must(t, n.Call(t.Context(), &a, "getnewaddress", "", kind))
		o.Outputs = append(o.Outputs, p.output(a, 60_000))
	}
	// P2WSH: BIP-173's example.
	o.Outputs = append(
		o.Outputs,
		p.output("bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry", 40_000),
	)
	signed := p.sign(o)

	fee, vsize := p.accepted(signed)
	if fee != signed.MaxFee || len(signed.Inputs) != 3 {
		t.Errorf(
			"the node counts a fee of %s, Build said %s; %d inputs",
			fee,
			signed.MaxFee,
			len(signed.Inputs),
		)
	}
	// The fall-back rate, on what the longest signatures would weigh: a byte less per ECDSA
	// signature at most.
	if least := chain.Units(10 * vsize); fee.Less(least) || least.Add(chain.Units(20)).Less(fee) {
		t.Errorf("a fee of %s for %d vB", fee, vsize)
	}

	n.must(t, p.d.Broadcast(t.Context(), signed))
	p.mine(1)

	st := p.status(signed)
	if st.State != chain.TxIncluded || st.Fee != fee || len(st.Transfers) != 6 {
		t.Errorf("included as %+v", st)
	}

	for i, out := range o.Outputs {
		if got := st.Transfers[i]; got.To != out.To || got.Amount != out.Amount || got.Index != uint32(i) {
			t.Errorf("output %d is %+v, want %+v", i, got, out)
		}
	}
}

func manyDepositsInOneSweep(t *testing.T, n *node) {
	p := newPurse(t, n)

	deposit, other, master := p.party(
		chain.RoleDeposit, 0,
	), p.party(
		chain.RoleDeposit, 1,
	), p.party(
		chain.RoleMaster, 0,
	)
	for _, amount := range []uint64{50_000, 70_001, 90_000} {
		p.pay(deposit.Address, amount)
	}

	p.pay(other.Address, 30_000)
	p.mine(1)
	deposits := slices.DeleteFunc(
		append(p.coins(deposit), p.coins(other)...),
		func(c chain.Coin) bool { return c.Amount == chain.Units(90_000) },
	)
	payee, err := n.NewAddress(t.Context())
	n.must(t, err)
	steps, err := p.d.PlanRelease(t.Context(), chain.Release{
		Asset:      p.d.Network().Assets[0],
		Deposit:    deposit,
		Master:     master,
		FeeAddress: payee,
		Amount:     chain.Units(150_001),
		Fee:        chain.Units(750),
		Coins:      deposits,
	})
	n.must(t, err)

	if len(steps) != 1 || steps[0].PaysFee != chain.Units(750) {
		t.Fatalf("planned %+v", steps)
	}

	signed := p.sign(steps[0].Order)

	fee, _ := p.accepted(signed)
	if len(signed.Inputs) != 3 || signed.Outputs[0].Amount != chain.Units(750) ||
		signed.Outputs[0].Amount.Add(signed.Outputs[1].Amount).Add(fee) != chain.Units(150_001) {
		t.Errorf("%d inputs, outputs %+v and fee %s for 150001", len(signed.Inputs), signed.Outputs, fee)
	}

	n.must(t, p.d.Broadcast(t.Context(), signed))
	p.mine(1)

	if left := append(
		p.coins(deposit),
		p.coins(other)...); len(left) != 1 ||
		left[0].Amount != chain.Units(90_000) {
		t.Errorf("%+v is left", left)
	}
}

func feeBelowDustIsLeftOut(t *testing.T, n *node) {
	p := newPurse(t, n)
	release := chain.Release{
		Asset:      p.d.Network().Assets[0],
		Deposit:    p.party(chain.RoleDeposit, 0),
		Master:     p.party(chain.RoleMaster, 0),
		FeeAddress: p.party(chain.RoleMaster, 1).Address,
		Amount:     chain.Units(50_000),
	}

	release.Coins = []chain.Coin{{Owner: release.Deposit, Amount: release.Amount}}
	for fee, pays := range map[uint64]uint64{293: 0, 294: 294} {
		release.Fee = chain.Units(fee)
		steps, err := p.d.PlanRelease(t.Context(), release)
		n.must(t, err)

		var sum chain.Amount
		for _, o := range steps[0].Order.Outputs {
			sum = sum.Add(o.Amount)
		}

		if steps[0].PaysFee != chain.Units(pays) || sum != release.Amount ||
			len(steps[0].Order.Outputs) != int(1+pays/294) {
			t.Errorf("a fee of %d is planned as %+v", fee, steps[0])
		}
	}
}

func dustIsRefused(t *testing.T, n *node) {
	p := newPurse(t, n)
	from, to := p.party(chain.RoleMaster, 0), p.party(chain.RoleMaster, 1)
	p.pay(from.Address, 100_000)
	p.mine(1)
	o := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   p.coins(from),
		Outputs: []chain.Output{p.output(to.Address, 293)},
	}
	_, err := p.d.Build(t.Context(), o)
	mustCode(t, "293 satoshi", err, fault.Invalid, "destination_not_payable")

	o.Outputs[0].Amount = chain.Units(294)
	p.accepted(p.sign(o)) // the node agrees where dust ends
	o.Outputs[0].Amount = chain.MustAmount("2100000000000001")
	_, err = p.d.Build(t.Context(), o)
	mustCode(t, "more than there ever is", err, fault.Invalid, "destination_not_payable")
}

func replacementPaysForDescendants(t *testing.T, n *node) {
	p := newPurse(t, n)
	from, to := p.party(chain.RoleMaster, 0), p.party(chain.RoleMaster, 1)
	p.pay(from.Address, 10_000_000)
	p.mine(1)
	o := chain.Order{
		From:    from,
		MaxFee:  chain.Units(1_000_000),
		Coins:   p.coins(from),
		Outputs: []chain.Output{p.output(to.Address, 1_000_000)},
	}
	old := p.sign(o)
	n.must(t, p.d.Broadcast(t.Context(), old))
	child := p.sign(chain.Order{
		From:    to,
		MaxFee:  chain.Units(1_000_000),
		Outputs: []chain.Output{p.output(from.Address, 900_000)},
		// unconfirmed
		Coins: []chain.Coin{
			{Outpoint: chain.Outpoint{TxHash: old.TxHash}, Owner: to, Amount: chain.Units(1_000_000)},
		},
	})
	n.must(t, p.d.Broadcast(t.Context(), child))

	o.Replaces = &old

	replacement := p.sign(o)
	if least := old.MaxFee.Add(child.MaxFee); replacement.MaxFee.Cmp(least) <= 0 {
		t.Errorf("the replacement pays %s, what it displaces paid %s", replacement.MaxFee, least)
	}

	if !slices.Equal(replacement.Inputs, old.Inputs) {
		t.Errorf("it spends %+v, not %+v", replacement.Inputs, old.Inputs)
	}

	n.must(t, p.d.Broadcast(t.Context(), replacement))

	if st := p.status(child); st.State != chain.TxUnknown {
		t.Errorf("the displaced child is %+v", st)
	}

	p.mine(1)

	if st := p.status(replacement); st.State != chain.TxIncluded || st.Fee != replacement.MaxFee {
		t.Errorf("the replacement is %+v", st)
	}

	o.Replaces = &replacement
	_, err := p.d.Build(t.Context(), o)
	mustCode(t, "replacing what is in a block", err, fault.Unavailable, "coin_spent")

	o.Coins = nil
	_, err = p.d.Build(t.Context(), o)
	mustCode(t, "replacing without its coins", err, fault.Invalid, "replacement_invalid")
}

// A payment from outside is displaced: what displaces it shows that it spends the same output.
func replacedPaymentShowsInThePool(t *testing.T, n *node) {
	p := newPurse(t, n)
	ctx := t.Context()
	to := p.party(chain.RoleDeposit, 0).Address
	coin := n.coins[0]
	n.coins = n.coins[1:]
	send := func(to chain.Address, fee uint64) string {
		raw, err := n.spend(ctx, coin, to, chain.Units(50_000), chain.Units(fee))
		n.must(t, err)

		var txid string
		n.must(t, n.Call(ctx, &txid, "sendrawtransaction", raw, 0))

		return txid
	}
	spender := func() string {
		pool, err := p.d.Pool(ctx)
		n.must(t, err)

		for _, tx := range pool {
			for _, s := range tx.Spent {
				if s.Outpoint == (chain.Outpoint{TxHash: coin.Txid, Vout: uint32(coin.Vout)}) {
					return tx.TxHash
				}
			}
		}

		return ""
	}

	first := send(to, 2_000)
	if got := spender(); got != first {
		t.Fatalf("the pool shows the output spent by %q, want %s", got, first)
	}

	stranger, err := n.NewAddress(ctx)
	n.must(t, err)

	second := send(stranger, 20_000)
	if got := spender(); got != second || got == first {
		t.Errorf("the pool shows the output spent by %q, want %s", got, second)
	}

	if _, err := p.d.Transaction(ctx, first); !errors.Is(err, fault.NotFound) {
		t.Errorf("the displaced payment: %v", err)
	}

	p.mine(1)
	head, err := p.d.Head(ctx)
	n.must(t, err)
	blocks, err := p.d.Blocks(ctx, head.Tip.Height, head.Tip.Height)
	n.must(t, err)

	if !slices.Contains(
		blocks[0].Spent,
		chain.Spend{Outpoint: chain.Outpoint{TxHash: coin.Txid, Vout: uint32(coin.Vout)}, By: second},
	) {
		t.Errorf("the block does not say that %s spends the output", second)
	}

	for _, x := range blocks[0].Transfers {
		if x.To == stranger && x.From == "" {
			t.Error("the one sender of a payment is not named, though the node knows it")
		}
	}
}

func spentCoinsAreNotUsed(t *testing.T, n *node) {
	p := newPurse(t, n)
	from, to := p.party(chain.RoleMaster, 0), p.party(chain.RoleMaster, 1)
	p.pay(from.Address, 500_000)
	p.mine(1)
	old := p.coins(from)
	o := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   old,
		Outputs: []chain.Output{p.output(to.Address, 300_000)},
	}
	n.must(t, p.d.Broadcast(t.Context(), p.sign(o)))
	p.pay(from.Address, 400_000)
	p.mine(1)
	_, err := p.d.Build(t.Context(), o)
	mustCode(t, "a coin that is spent", err, fault.State, "insufficient_funds")

	wrong := p.coins(from)
	for i := range wrong {
		wrong[i].Amount = wrong[i].Amount.Add(chain.Units(1_000_000))
	}

	o.Coins = wrong
	_, err = p.d.Build(t.Context(), o)
	mustCode(t, "coins with other amounts than the chain's", err, fault.State, "insufficient_funds")

	o.Coins = append(old, p.coins(from)...)
	if signed := p.sign(o); slices.Contains(signed.Inputs, old[0].Outpoint) {
		t.Errorf("it spends %+v", signed.Inputs)
	}
}

// The node's own wallet, given the key, signs what Build made.
func outsideSignerReadsThePSBT(t *testing.T, n *node) {
	p := newPurse(t, n)
	ctx := t.Context()

	var wallet string
	n.must(t, n.Call(ctx, &wallet, "getnewaddress", "", "bech32"))
	from := chain.Party{Address: chain.Address(wallet)}
	p.pay(from.Address, 500_000)
	p.mine(1)
	o := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   p.coins(from),
		Outputs: []chain.Output{p.output(p.party(chain.RoleMaster, 1).Address, 300_000)},
	}
	unsigned, err := p.d.Build(ctx, o)
	n.must(t, err)

	text := base64.StdEncoding.EncodeToString(unsigned.Raw)

	var decoded struct {
		Fee json.Number
		Tx  struct{ Locktime int64 }
	}
	n.must(t, n.Call(ctx, &decoded, "decodepsbt", text))

	if want := unsigned.MaxFee.Decimal(8); !decimal.RequireFromString(decoded.Fee.String()).Equal(want) {
		t.Errorf("the node reads a fee of %s, want %s", decoded.Fee, want)
	}

	var tip int64
	n.must(t, n.Call(ctx, &tip, "getblockcount"))

	if decoded.Tx.Locktime != tip {
		t.Errorf("the lock time is %d, the tip %d", decoded.Tx.Locktime, tip)
	}

	var signed struct {
		Complete bool
		Hex      string
	}
	n.must(t, n.Call(ctx, &signed, "walletprocesspsbt", text))

	if !signed.Complete {
		t.Fatal("the wallet did not sign")
	}

	raw, err := hex.DecodeString(signed.Hex)
	n.must(t, err)
	p.accepted(chain.Signed{Raw: raw})
}

func wrongCredentials(t *testing.T, n *node) {
	d := n.driver(t, func(c *bitcoin.Config) { c.RPC = "http://" + n.User + ":secret-guess@" + n.Addr })
	mustCode(t, "Check", d.Check(t.Context()), fault.Unavailable, "node_unauthorized")
	_, err := d.Head(t.Context())
	mustCode(t, "Head", err, fault.Unavailable, "node_unauthorized")
}

func youngBlockRewardsAreNotSpent(t *testing.T, n *node) {
	p := newPurse(t, n)
	from := p.party(chain.RoleMaster, 0)
	n.must(t, n.Call(t.Context(), nil, "generatetoaddress", 1, from.Address))
	o := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   p.coins(from),
		Outputs: []chain.Output{p.output(from.Address, 100_000)},
	}
	_, err := p.d.Build(t.Context(), o)
	mustCode(t, "a reward of one confirmation", err, fault.State, "insufficient_funds")
	p.mine(99)
	p.accepted(p.sign(o))
}

// Somebody else with the key spends the coin: dead when that is final, not before.
func deathByAForeignTransaction(t *testing.T, n *node) {
	p := newPurse(t, n)
	from := p.party(chain.RoleMaster, 0)
	p.pay(from.Address, 500_000)
	p.mine(1)
	o := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   p.coins(from),
		Outputs: []chain.Output{p.output(from.Address, 100_000)},
	}
	ours := p.sign(o)
	o.Outputs[0].Amount = chain.Units(200_000)
	n.must(t, p.d.Broadcast(t.Context(), p.sign(o)))

	if st := p.status(ours); st.State != chain.TxUnknown {
		t.Errorf("while the rival waits it is %+v", st)
	}

	if err := p.d.Broadcast(t.Context(), ours); !errors.Is(err, fault.Unavailable) {
		t.Errorf("Broadcast against the rival: %v", err)
	}

	p.mine(1)

	if st := p.status(ours); st.State != chain.TxUnknown {
		t.Errorf("after one block it is %+v", st)
	}

	n.must(t, n.Fork(t.Context(), 1))

	if st := p.status(ours); st.State != chain.TxUnknown {
		t.Errorf("after the rival's block left the chain it is %+v", st)
	}

	p.mine(2)

	if st := p.status(ours); st.State != chain.TxDead || st.Death != chain.DeathConflict {
		t.Errorf("after two blocks it is %+v", st)
	}
}

// The rival is more than a day of blocks away.
func searchGoesOnFromCallToCall(t *testing.T, n *node) {
	p := newPurse(t, n)
	from := p.party(chain.RoleMaster, 0)
	p.pay(from.Address, 500_000)
	p.mine(1)
	o := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   p.coins(from),
		Outputs: []chain.Output{p.output(from.Address, 100_000)},
	}
	ours := p.sign(o)
	p.mine(150)

	o.Outputs[0].Amount = chain.Units(200_000)
	n.must(t, p.d.Broadcast(t.Context(), p.sign(o)))
	p.mine(2)

	if st := p.status(ours); st.State != chain.TxUnknown {
		t.Errorf("after a day of blocks was searched it is %+v", st)
	}

	if st := p.status(ours); st.State != chain.TxDead {
		t.Errorf("after the rest was searched it is %+v", st)
	}
}

func poolOffShowsNothing(t *testing.T, n *node) {
	p := newPurse(t, n, func(c *bitcoin.Config) { c.PoolLimit = -1 })
	p.pay(p.party(chain.RoleDeposit, 0).Address, 50_000)

	if pool, err := p.d.Pool(t.Context()); err != nil || len(pool) != 0 {
		t.Errorf("%d transactions, %v", len(pool), err)
	}

	p.mine(1)
}

// TestPrunedNodeStops is pitfall 9. Sending needs neither old blocks nor an index of transactions.
func TestPrunedNodeStops(t *testing.T) {
	n := startNode(t, testenv.BitcoindOptions{NoTxIndex: true, Args: []string{"-prune=1", "-fastprune"}})
	ctx := t.Context()

	var coins []outpoint
	n.must(t, n.Call(ctx, &coins, "listunspent"))
	n.must(t, n.Mine(ctx, 900))

	var lowest uint64
	n.must(t, n.Call(ctx, &lowest, "pruneblockchain", 500))

	var info struct{ Pruneheight uint64 }
	n.must(t, n.Call(ctx, &info, "getblockchaininfo"))

	if info.Pruneheight < 100 {
		t.Fatalf("the node pruned nothing: %d", info.Pruneheight)
	}

	p := newPurse(t, n)
	below := info.Pruneheight - 1
	_, err := p.d.RefAt(ctx, below)
	mustCode(t, "RefAt", err, fault.Stopped, "node_pruned")
	blocks, err := p.d.Blocks(ctx, below, below+5)
	mustCode(t, "Blocks", err, fault.Stopped, "node_pruned")

	if len(blocks) != 0 {
		t.Errorf("%d blocks beside the error", len(blocks))
	}

	if blocks, err := p.d.Blocks(ctx, info.Pruneheight, info.Pruneheight+2); err != nil || len(blocks) != 3 {
		t.Errorf("the blocks that are left: %d, %v", len(blocks), err)
	}

	from := p.party(chain.RoleMaster, 0)
	n.must(t, n.Call(ctx, nil, "sendtoaddress", from.Address, 1))
	p.mine(1)
	o := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   p.coins(from),
		Outputs: []chain.Output{p.output(from.Address, 100_000)},
	}
	signed := p.sign(o)
	n.must(t, p.d.Broadcast(ctx, signed))

	if st := p.status(signed); st.State != chain.TxPooled {
		t.Errorf("waiting it is %+v", st)
	}

	p.mine(1)

	if st := p.status(signed); st.State != chain.TxIncluded || st.Final || st.Fee != signed.MaxFee {
		t.Errorf("in a block it is %+v", st)
	}

	p.mine(1)

	if st := p.status(signed); st.State != chain.TxIncluded || !st.Final {
		t.Errorf("two deep it is %+v", st)
	}

	_, err = p.d.Transaction(ctx, signed.TxHash)
	mustCode(t, "Transaction without an index", err, fault.Unavailable, "txindex_missing")
}
