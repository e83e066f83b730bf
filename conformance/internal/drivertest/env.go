package drivertest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

const (
	defaultPatience = 10 * time.Second
	pollInterval    = 20 * time.Millisecond
)

// env is the harness of one subtest.
type env struct {
	Harness
	t       *testing.T
	ctx     context.Context
	network chain.Network
	native  chain.Asset
	keys    uint32 // keys of the signer that were handed out
}

func newEnv(t *testing.T, harness Harness) *env {
	t.Helper()

	if harness.Patience == 0 {
		harness.Patience = defaultPatience
	}

	e := &env{Harness: harness, t: t, ctx: t.Context(), network: harness.Driver.Network()}

	var ok bool
	if e.native, ok = e.network.Native(); !ok {
		t.Fatalf("network %q has no native asset", e.network.Slug)
	}

	return e
}

// has reports whether a capability is there. testCapabilities checks that what is not is declared
// absent.
func (e *env) has(c Capability) bool {
	if c == Replacement || c == Expiry {
		return !slices.Contains(e.Absent, c)
	}

	for _, known := range capabilities {
		if known.name == c {
			return known.has(e.Harness)
		}
	}

	e.t.Fatalf("the suite asks for %q, which is no capability", c)

	return false
}

// as returns the driver as one of the optional interfaces.
func as[T any](e *env) T {
	e.t.Helper()

	v, ok := e.Driver.(T)
	if !ok {
		e.t.Fatalf("the driver is not a %T", new(T))
	}

	return v
}

// assets returns the assets to repeat a case for: the native coin and, where there is one, a token.
func (e *env) assets() []chain.Asset {
	out := []chain.Asset{e.native}
	if token, ok := e.token(); ok {
		out = append(out, token)
	}

	return out
}

func (e *env) token() (chain.Asset, bool) {
	for _, asset := range e.network.Assets {
		if asset.Kind == chain.Token {
			return asset, true
		}
	}

	return chain.Asset{}, false
}

// amount returns what the suite sends of an asset, in base units: a hundredth of a whole unit, or ten
// times the least amount.
func amount(asset chain.Asset) chain.Amount {
	hundredth := chain.Units(1)
	if asset.Decimals > 2 {
		hundredth = chain.Pow10(asset.Decimals - 2)
	}

	return chaindata.Max(hundredth, asset.MinAmount.Mul(10))
}

// eventually polls until a condition returns nil. Its error says what is still missing.
func (e *env) eventually(what string, condition func() error) {
	e.t.Helper()
	deadline := time.Now().Add(e.Patience)

	for {
		err := condition()
		if err == nil {
			return
		}

		if time.Now().After(deadline) {
			e.t.Fatalf("%s: not within %v: %v", what, e.Patience, err)
		}

		select {
		case <-e.ctx.Done():
			e.t.Fatalf("%s: %v", what, e.ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

func (e *env) must(what string, err error) {
	e.t.Helper()

	if err != nil {
		e.t.Fatalf("%s: %v", what, err)
	}
}

// expectFault checks the kind and, unless it is empty, the code of an error.
func (e *env) expectFault(what string, err, kind error, code string) {
	e.t.Helper()

	switch {
	case err == nil:
		e.t.Fatalf("%s: no error, want %v (%s)", what, kind, code)
	case !errors.Is(err, kind):
		e.t.Fatalf("%s: %v, want an error that is %q (%s)", what, err, kind, code)
	case code != "" && fault.Code(err) != code:
		e.t.Fatalf("%s: code %q of %v, want %s", what, fault.Code(err), err, code)
	}
}

func (e *env) head() chain.Head {
	e.t.Helper()
	head, err := e.Driver.Head(e.ctx)
	e.must("Head", err)

	return head
}

// mine makes n blocks and waits until the driver shows them.
func (e *env) mine(n int) {
	e.t.Helper()
	before := e.head().Tip.Height
	e.must("Base.Mine", e.Network.Mine(e.ctx, n))
	e.settle()
	e.eventually("the tip after mining", func() error {
		if head := e.head(); head.Tip.Height < before+uint64(n) {
			return errors.New("the tip did not rise")
		}

		return nil
	})
}

func (e *env) settle() {
	e.t.Helper()
	e.must("Base.Settle", e.Network.Settle(e.ctx))
}

// fork replaces the newest blocks and waits until the driver shows the other branch.
func (e *env) fork(depth int, keep ...string) {
	e.t.Helper()
	old := e.head().Tip
	e.must("Forker.Fork", e.Network.(control.Forker).Fork(e.ctx, depth, keep...))
	e.settle()
	e.eventually("the other branch after a fork", func() error {
		ref, err := e.Driver.RefAt(e.ctx, old.Height)
		if err == nil && ref.Hash == old.Hash {
			err = errors.New("the old block is still there")
		}

		return err
	})
}

// newAddress returns an address that is not ours.
func (e *env) newAddress() chain.Address {
	e.t.Helper()
	a, err := e.Network.NewAddress(e.ctx)
	e.must("Base.NewAddress", err)

	return a
}

// party returns an address of ours that was not used before.
func (e *env) party(role chain.Role) chain.Party {
	e.t.Helper()
	e.keys++
	ref := chain.KeyRef{Family: e.network.Family, Livemode: e.network.Livemode, Role: role, Index: e.keys}
	key, err := e.Signer.PublicKey(e.ctx, ref)
	e.must("Signer.PublicKey", err)
	address, err := as[chain.Deriver](e).DeriveAddress(key)
	e.must("DeriveAddress", err)

	return chain.Party{Key: ref, Address: address}
}

func (e *env) fund(party chain.Party, asset chain.Asset, amount chain.Amount) {
	e.t.Helper()
	e.must("Base.Fund", e.Network.Fund(e.ctx, party.Address, asset, amount))
	e.settle()
}

func (e *env) pay(to chain.Address, asset chain.Asset, amount chain.Amount) string {
	e.t.Helper()
	hash, err := e.Network.Pay(e.ctx, to, asset, amount)
	e.must("Base.Pay", err)

	if hash == "" {
		e.t.Fatal("Base.Pay returned no hash")
	}

	e.settle()

	return hash
}

// scan reads all blocks from a height to the tip, checks that they are linked and without a gap,
// and returns them.
func (e *env) scan(from uint64) []chain.Block {
	e.t.Helper()
	tip := e.head().Tip.Height

	var all []chain.Block

	for next := from; next <= tip; {
		blocks, err := as[chain.BlockScanner](e).Blocks(e.ctx, next, tip)
		e.must("Blocks", err)

		if len(blocks) == 0 || len(blocks) > int(tip-next)+1 {
			e.t.Fatalf("Blocks(%d, %d) returned %d blocks", next, tip, len(blocks))
		}

		for i, block := range blocks {
			if block.Height != next+uint64(i) {
				e.t.Fatalf("Blocks(%d, %d): block %d has height %d", next, tip, i, block.Height)
			}

			if n := len(all); n > 0 && block.Parent != all[n-1].Hash {
				e.t.Fatalf(
					"block %d has parent %s, but block %d is %s",
					block.Height, block.Parent, all[n-1].Height, all[n-1].Hash,
				)
			}

			all = append(all, block)
		}

		next += uint64(len(blocks))
	}

	return all
}

// transfersTo returns the transfers to an address.
func transfersTo(blocks []chain.Block, to chain.Address) []chain.Transfer {
	var out []chain.Transfer

	for _, block := range blocks {
		for _, transfer := range block.Transfers {
			if transfer.To == to {
				out = append(out, transfer)
			}
		}
	}

	return out
}

// expectTransfer checks the one transfer of a payment.
func (e *env) expectTransfer(
	where string,
	got []chain.Transfer,
	hash string,
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
) chain.Transfer {
	e.t.Helper()

	if len(got) != 1 {
		e.t.Fatalf("%s: %d transfers to %s, want 1: %+v", where, len(got), to, got)
	}

	transfer := got[0]
	isPaid := transfer.AssetID == asset.ID && transfer.Amount == amount

	if transfer.TxHash != hash || transfer.To != to || !isPaid {
		e.t.Fatalf(
			"%s: %+v, want %s %s (%s) to %s in %s",
			where, transfer, amount, asset.Symbol, asset.ID, to, hash,
		)
	}

	switch e.network.Family {
	case chain.EVM, chain.Tron, chain.Sim:
		if isToken := asset.Kind == chain.Token; isToken != (transfer.Index > 0) || transfer.Index >= 1<<20 {
			e.t.Fatalf(
				"%s: index %d of a %s transfer; 0 is the value, 1+k the k-th log of the receipt",
				where, transfer.Index, asset.Kind,
			)
		}
	case chain.Bitcoin, chain.Solana:
	}

	return transfer
}

// balance returns what a party holds at the tip, in base units.
func (e *env) balance(of chain.Party, asset chain.Asset) chain.Amount {
	e.t.Helper()

	if !e.has(Balancer) {
		coins, err := e.Network.(control.CoinLister).Coins(e.ctx, of)
		e.must("CoinLister.Coins", err)

		var sum chain.Amount
		for _, coin := range coins {
			sum = sum.Add(coin.Amount)
		}

		return sum
	}

	return e.balanceAt(e.head().Tip, of.Address, asset)
}

func (e *env) balanceAt(at chain.Ref, of chain.Address, asset chain.Asset) chain.Amount {
	e.t.Helper()
	got, err := as[chain.Balancer](e).Balances(e.ctx, at, []chain.Holding{{Address: of, AssetID: asset.ID}})
	e.must("Balances", err)

	if len(got) != 1 {
		e.t.Fatalf("Balances of one holding returned %d amounts", len(got))
	}

	return got[0]
}
