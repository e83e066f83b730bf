package drivertest

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

var headTests = []testCase{
	{"NetworkIsCompleteAndConstant", nil, testNetwork},
	{"HeadIsOrderedAndCanonical", nil, testHead},
	{"HeadRisesWithTheChain", nil, testHeadRises},
	{"RefAtTellsForksApart", []Capability{Forking}, testRefAtFork},
	{"RefAtAboveTheTipIsNotFound", nil, testRefAtAbove},
	{"RefAtOfAPrunedBlockIsStopped", []Capability{Pruning}, testRefAtPruned},
	{"TheOldestBlockNamesItsParent", []Capability{Pruning, ParentReader}, testParentOfPruned},
	{"ParseAddressIsCanonical", nil, testParseAddress},
	{"ParseAddressRefusesWhatIsNone", nil, testParseAddressRefuses},
}

var tipTests = []testCase{
	{"TipIsThatOfHead", nil, testTip},
}

func testNetwork(e *env) {
	if _, err := chain.NewRegistry(e.Driver); err != nil {
		e.t.Errorf("NewRegistry refuses the driver's network: %v", err)
	}

	for _, asset := range e.network.Assets {
		if want := chain.AssetID(e.network.CAIP2, asset.Contract); asset.ID != want {
			e.t.Errorf("asset %s has id %s, want %s", asset.Symbol, asset.ID, want)
		}

		if asset.Network != e.network.Slug || asset.Livemode != e.network.Livemode || asset.Price == "" {
			e.t.Errorf("asset %s is not complete: %+v; use Network.With", asset.Symbol, asset)
		}

		if (asset.Kind == chain.Native) != (asset.Contract == "") ||
			(asset.Kind != chain.Native && asset.Kind != chain.Token) {
			e.t.Errorf("asset %s of kind %q has contract %q", asset.Symbol, asset.Kind, asset.Contract)
		}
	}

	if e.native.Symbol != e.network.NativeAsset {
		e.t.Errorf("NativeAsset is %q, the native asset %q", e.network.NativeAsset, e.native.Symbol)
	}

	e.network.Assets[0].Symbol = "CHANGED"

	second := e.Driver.Network()
	if second.Assets[0].Symbol == "CHANGED" {
		e.t.Error("a caller can change the driver's network through the assets it was given")
	}

	e.network.Assets[0].Symbol = second.Assets[0].Symbol
	if !reflect.DeepEqual(e.network, second) {
		e.t.Errorf("Network answered %+v, then %+v", e.network, second)
	}
}

func testHead(e *env) {
	e.mine(3)
	e.eventually("a head whose blocks RefAt knows", func() error {
		head := e.head()
		for name, ref := range map[string]chain.Ref{"tip": head.Tip, "safe": head.Safe, "final": head.Final} {
			if ref.IsZero() {
				if name == "tip" {
					e.t.Fatal("Head has no tip")
				}

				continue
			}

			if ref.Time.IsZero() || ref.Time.Unix() < 0 {
				e.t.Fatalf("the %s block has the time %v", name, ref.Time)
			}

			got, err := e.Driver.RefAt(e.ctx, ref.Height)
			e.must("RefAt", err)

			if got.Hash != ref.Hash || got.Height != ref.Height || !got.Time.Equal(ref.Time) {
				return fmt.Errorf("the %s block is %+v, but RefAt says %+v", name, ref, got)
			}
		}

		if head.Safe.Height > head.Tip.Height || head.Final.Height > head.Tip.Height ||
			(!head.Safe.IsZero() && head.Final.Height > head.Safe.Height) {
			e.t.Fatalf(
				"final %d, safe %d, tip %d are not in order",
				head.Final.Height, head.Safe.Height, head.Tip.Height,
			)
		}

		return nil
	})
}

func testTip(e *env) {
	for range 3 {
		e.mine(1)
		e.eventually("a tip as Head has it", func() error {
			tip, err := as[chain.TipReader](e).Tip(e.ctx)
			e.must("Tip", err)

			if head := e.head(); tip != head.Tip {
				return fmt.Errorf("the tip is %+v, that of Head %+v", tip, head.Tip)
			}

			return nil
		})
	}
}

func testHeadRises(e *env) {
	before := e.head()
	e.mine(2)

	after := e.head()
	if after.Tip.Hash == before.Tip.Hash {
		e.t.Errorf("two blocks later the tip is still %s", after.Tip.Hash)
	}

	if after.Final.Height < before.Final.Height || after.Safe.Height < before.Safe.Height {
		e.t.Errorf("finality fell from %+v to %+v", before, after)
	}

	old, err := e.Driver.RefAt(e.ctx, before.Tip.Height)
	e.must("RefAt", err)

	if old.Hash != before.Tip.Hash {
		e.t.Errorf(
			"block %d was %s and is %s, though nothing forked",
			before.Tip.Height, before.Tip.Hash, old.Hash,
		)
	}
}

func testRefAtFork(e *env) {
	e.mine(3)
	tip := e.head().Tip
	below, err := e.Driver.RefAt(e.ctx, tip.Height-2)
	e.must("RefAt", err)
	e.fork(2)
	got, err := e.Driver.RefAt(e.ctx, below.Height)
	e.must("RefAt below the fork", err)

	if got.Hash != below.Hash {
		e.t.Errorf("block %d below the fork changed from %s to %s", below.Height, below.Hash, got.Hash)
	}

	for height := tip.Height - 1; height <= tip.Height; height++ {
		got, err := e.Driver.RefAt(e.ctx, height)
		e.must("RefAt on the other branch", err)

		if got.Height != height || (height == tip.Height && got.Hash == tip.Hash) {
			e.t.Errorf("RefAt(%d) after the fork is %+v", height, got)
		}
	}
}

func testRefAtAbove(e *env) {
	tip := e.head().Tip.Height
	for _, height := range []uint64{tip + 1000, math.MaxInt64} {
		ref, err := e.Driver.RefAt(e.ctx, height)
		e.expectFault(fmt.Sprintf("RefAt(%d) above the tip %d", height, tip), err, fault.NotFound, "")

		if !ref.IsZero() {
			e.t.Errorf("RefAt above the tip returned %+v beside its error", ref)
		}
	}
}

func testRefAtPruned(e *env) {
	e.mine(3)
	tip := e.head().Tip.Height
	e.must("Pruner.Prune", e.Network.(control.Pruner).Prune(e.ctx, tip))
	e.settle()
	_, err := e.Driver.RefAt(e.ctx, tip-1)
	e.expectFault("RefAt of a pruned block", err, fault.Stopped, "node_pruned")
	_, err = e.Driver.RefAt(e.ctx, tip)
	e.must("RefAt of the oldest block that is left", err)
}

func testParentOfPruned(e *env) {
	e.mine(3)
	tip := e.head().Tip.Height
	below, err := e.Driver.RefAt(e.ctx, tip-1)
	e.must("RefAt of a block that is to be pruned", err)
	e.must("Pruner.Prune", e.Network.(control.Pruner).Prune(e.ctx, tip))
	e.settle()

	parent, err := chaindata.ParentOf(e.ctx, e.Driver, tip)
	e.must("the parent of the oldest block that is left", err)

	if parent != below.Hash {
		e.t.Errorf("block %d names %s as its parent, block %d was %s", tip, parent, tip-1, below.Hash)
	}
}

func testParseAddress(e *env) {
	address := e.newAddress()
	for range 2 {
		second, err := e.Driver.ParseAddress(string(address))
		e.must("ParseAddress", err)

		if second != address {
			e.t.Fatalf("ParseAddress(%q) = %q", address, second)
		}
	}

	for spelling, want := range e.Spellings {
		got, err := e.Driver.ParseAddress(spelling)
		e.must("ParseAddress of another spelling", err)

		if got != want {
			e.t.Errorf("ParseAddress(%q) = %q, want %q", spelling, got, want)
		}

		if spelling == string(want) {
			e.t.Errorf("DriverHarness.Spellings has %q as a spelling of itself", spelling)
		}
	}
}

// foreignAddresses are valid addresses from the standards' own examples and well-known contracts.
var foreignAddresses = map[chain.Family]string{
	chain.EVM:     "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
	chain.Bitcoin: "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
	chain.Solana:  "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
	chain.Tron:    "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
	chain.Sim:     "sim10000000000000000000000000000000000000000715a73bf",
}

func testParseAddressRefuses(e *env) {
	good := string(e.newAddress())

	bad := append([]string{
		"",
		" ",
		"0x",
		"address",
		good + good,
		good + "!",
		"!" + good[1:],
		good[:len(good)/2],
		good[:len(good)-1] + "\x00",
		strings.Repeat("1", 10_000),
		"\xff\xfe",
		e.network.Slug + ":" + good,
	}, e.BadAddresses...)
	for family, address := range foreignAddresses {
		if family != e.network.Family {
			bad = append(bad, address)
		}
	}

	for _, s := range bad {
		got, err := e.Driver.ParseAddress(s)
		if len(s) > 100 {
			s = s[:100]
		}

		e.expectFault(fmt.Sprintf("ParseAddress(%q)", s), err, fault.Invalid, "")

		if got != "" {
			e.t.Errorf("ParseAddress(%q) returned %q beside its error", s, got)
		}
	}
}
