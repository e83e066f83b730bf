package sim_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

func newWindows(t *testing.T, config sim.WindowsConfig) (*sim.Windows, *sim.Signer, chain.Party) {
	t.Helper()

	config.Clock = fixed
	w, signer := sim.NewWindows(config), sim.NewSigner(1, nil)
	wallet := utxoParty(t, w, signer, 0)
	w.Fund(wallet.Address, "SIMW", coin(100))
	w.Fund(wallet.Address, "USDX", dollars(100))

	return w, signer, wallet
}

func windowsOrder(t *testing.T, w chain.Driver, from chain.Party, to chain.Address) chain.Order {
	t.Helper()

	order := chain.Order{
		From:    from,
		Outputs: []chain.Output{{To: to, AssetID: nativeOf(w).ID, Amount: coin(1)}},
	}

	fee, err := w.(chain.FeeEstimator).EstimateFee(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}

	order.MaxFee = fee

	return order
}

func expectStatus(t *testing.T, w chain.Sender, tx chain.Signed, want chain.TxState) chain.TxStatus {
	t.Helper()

	status, err := w.Status(t.Context(), tx)
	if err != nil || status.State != want {
		t.Errorf("status %+v, %v, want %s", status, err, want)
	}

	return status
}

// Equal orders are one transaction at one tip, and two at different tips.
func TestWindowsEqualOrdersClash(t *testing.T) {
	w, signer, wallet := newWindows(t, sim.WindowsConfig{})
	order := windowsOrder(t, w, wallet, w.NewAddress())

	first, same := signedBy(t, w, signer, order), signedBy(t, w, signer, order)
	if first.TxHash != same.TxHash {
		t.Errorf("at one tip %s and %s", first.TxHash, same.TxHash)
	}

	w.Mine(1)

	other := signedBy(t, w, signer, order)
	if other.TxHash == first.TxHash {
		t.Errorf("at another tip the hash is still %s", other.TxHash)
	}

	for _, tx := range []chain.Signed{first, same, other} {
		if err := w.Broadcast(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
	}

	w.Mine(2)

	if got := w.Balance(order.Outputs[0].To, "SIMW"); got != coin(2) {
		t.Errorf("%s arrived of two different transactions", got)
	}
}

func TestWindowsInclusion(t *testing.T) {
	for name, test := range map[string]struct {
		config  sim.WindowsConfig
		empty   int           // blocks before the one that could include it
		advance time.Duration // before that block
		want    chain.TxState
	}{
		"the last block of the window": {sim.WindowsConfig{ValidBlocks: 5}, 4, 0, chain.TxIncluded},
		"a block later":                {sim.WindowsConfig{ValidBlocks: 5}, 5, 0, chain.TxUnknown},
		"the last moment":              {sim.WindowsConfig{ValidFor: time.Minute}, 9, time.Minute, chain.TxIncluded},
		"a moment later": {
			sim.WindowsConfig{ValidFor: time.Minute},
			9,
			time.Minute + time.Millisecond,
			chain.TxUnknown,
		},
		"either bound ends it": {
			sim.WindowsConfig{ValidFor: time.Minute, ValidBlocks: 5},
			5,
			0,
			chain.TxUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.FinalDepth = 3
			w, signer, wallet := newWindows(t, test.config)
			tx := signedBy(t, w, signer, windowsOrder(t, w, wallet, w.NewAddress()))

			if err := w.Broadcast(t.Context(), tx); err != nil {
				t.Fatal(err)
			}

			w.MineEmpty(test.empty)
			w.Advance(test.advance)
			w.Mine(1)
			expectStatus(t, w, tx, test.want)

			if test.want == chain.TxIncluded {
				return
			}

			// Dead once a final block is past the window, and refused before.
			err := w.Broadcast(t.Context(), tx)
			expectCode(t, "Broadcast", err, fault.State, "transaction_expired")
			w.Mine(4)

			if status := expectStatus(t, w, tx, chain.TxDead); status.Reason != chain.ReasonExpired {
				t.Errorf("it died of %q", status.Reason)
			}
		})
	}
}

func TestWindowsExclusionWaitsForFinality(t *testing.T) {
	w, signer, wallet := newWindows(t, sim.WindowsConfig{ValidBlocks: 2, FinalDepth: 3})
	tx := signedBy(t, w, signer, windowsOrder(t, w, wallet, w.NewAddress()))

	w.Mine(5) // final is block 2, the last of the window
	expectStatus(t, w, tx, chain.TxUnknown)
	w.Mine(1)
	expectStatus(t, w, tx, chain.TxDead)
}

// A branch without the block that a transaction refers to never includes it.
func TestWindowsForkOrphansTheReference(t *testing.T) {
	w, signer, wallet := newWindows(t, sim.WindowsConfig{})
	w.Mine(3)

	tx := signedBy(t, w, signer, windowsOrder(t, w, wallet, w.NewAddress()))
	if err := w.Broadcast(t.Context(), tx); err != nil {
		t.Fatal(err)
	}

	w.Fork(sim.Fork{Depth: 1})
	expectStatus(t, w, tx, chain.TxUnknown)
	expectCode(t, "Broadcast", w.Broadcast(t.Context(), tx), fault.State, "transaction_expired")
	w.Mine(3)
	expectStatus(t, w, tx, chain.TxUnknown)
}

func TestWindowsSpendsAreShared(t *testing.T) {
	w, signer, wallet := newWindows(t, sim.WindowsConfig{})
	tx := signedBy(t, w, signer, windowsOrder(t, w, wallet, w.NewAddress()))

	if err := w.Broadcast(t.Context(), tx); err != nil {
		t.Fatal(err)
	}

	failing := w.PayFailing(wallet.Address, "USDX", dollars(1))
	w.Mine(1)

	blocks, err := w.Blocks(t.Context(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}

	want := []chain.Spend{
		{Sender: wallet.Address, By: tx.TxHash, Shared: true},
		{Sender: blocks[0].Spent[1].Sender, By: failing, Shared: true, Failed: true},
	}
	if !slices.Equal(blocks[0].Spent, want) {
		t.Errorf("spent %+v, want %+v", blocks[0].Spent, want)
	}

	if n := len(blocks[0].Transfers); n != 1 {
		t.Errorf("%d transfers, want that of the transaction that did not fail", n)
	}
}

func TestWindowsPriceIsBounded(t *testing.T) {
	w, signer, wallet := newWindows(t, sim.WindowsConfig{ValidBlocks: 9})
	order := windowsOrder(t, w, wallet, w.NewAddress())
	tx := signedBy(t, w, signer, order) // offers five quarters

	if err := w.Broadcast(t.Context(), tx); err != nil {
		t.Fatal(err)
	}

	w.SetPrice(sim.DefaultBaseFee * 5 / 4 * 2)
	w.Mine(1)
	expectStatus(t, w, tx, chain.TxPooled)

	_, err := w.Build(t.Context(), order)
	expectCode(t, "Build within the old estimate", err, fault.Limited, "fee_above_maximum")

	w.SetPrice(sim.DefaultBaseFee * 5 / 4)
	w.Mine(1)

	status := expectStatus(t, w, tx, chain.TxIncluded)
	if want := chain.Units(sim.DefaultBaseFee * 5 / 4).Mul(sim.GasNative); status.Fee != want {
		t.Errorf("the fee is %s, want %s", status.Fee, want)
	}
}

func TestWindowsByAddressShowsSignaturesLate(t *testing.T) {
	w := sim.NewWindows(sim.WindowsConfig{Clock: fixed, LateBlocks: 2})
	driver := w.ByAddress()
	to := w.NewAddress()
	hash := w.Pay(to, "USDX", dollars(3))
	w.Mine(1)

	if _, ok := driver.(chain.BlockScanner); ok {
		t.Error("a driver that reads by address reads blocks too")
	}

	for _, want := range []int{0, 0, 1} {
		tip := w.Mine(0)

		blocks, err := driver.(chain.AddressScanner).TransfersTo(
			t.Context(),
			[]chain.Address{to},
			1,
			tip.Height,
		)
		if err != nil || len(blocks) != want {
			t.Fatalf("at tip %d: %+v, %v, want %d blocks", tip.Height, blocks, err, want)
		}

		if want > 0 && (blocks[0].Height != 1 || blocks[0].Transfers[0].TxHash != hash) {
			t.Errorf("%+v, want %s in block 1", blocks, hash)
		}

		w.Mine(1)
	}

	if found, err := w.Transaction(t.Context(), hash); err != nil || found.Block.Height != 1 {
		t.Errorf("by its hash it is %+v, %v", found, err)
	}
}

func TestWindowsNodeFaults(t *testing.T) {
	w, signer, wallet := newWindows(t, sim.WindowsConfig{})
	tx := signedBy(t, w, signer, windowsOrder(t, w, wallet, w.NewAddress()))

	w.LoseNextResponses(1)
	expectCode(t, "a lost response", w.Broadcast(t.Context(), tx), fault.Unavailable, "node_unavailable")
	w.Mine(1)
	expectStatus(t, w, tx, chain.TxIncluded)
	w.Lag(1)
	expectStatus(t, w, tx, chain.TxUnknown)
	w.Lag(0)
	w.FailNext(sim.AnyMethod, sim.Unavailable(), 1)

	if _, err := w.Head(t.Context()); !errors.Is(err, fault.Unavailable) {
		t.Errorf("Head: %v", err)
	}

	w.Prune(1)

	_, err := w.Blocks(t.Context(), 0, 1)
	expectCode(t, "a pruned range", err, fault.Stopped, "node_pruned")
}

func TestWindowsIsDeterministic(t *testing.T) {
	run := func(seed uint64) chain.Ref {
		w, signer, wallet := newWindows(t, sim.WindowsConfig{Seed: seed})
		for range 20 {
			w.Pay(wallet.Address, "USDX", dollars(1))
		}

		if err := w.Broadcast(t.Context(), signedBy(
			t, w, signer, windowsOrder(t, w, wallet, w.NewAddress()),
		)); err != nil {
			t.Fatal(err)
		}

		w.Mine(2)
		w.Fork(sim.Fork{Depth: 2})

		return w.Mine(2)
	}

	if a, b := run(1), run(1); a != b {
		t.Errorf("the same calls made %+v and %+v", a, b)
	}

	if a, b := run(1), run(2); a.Hash == b.Hash {
		t.Error("another seed made the same blocks")
	}
}

func TestWindowsRefuseLongerWindows(t *testing.T) {
	long, signer, wallet := newWindows(t, sim.WindowsConfig{ValidBlocks: 9})
	short, _, _ := newWindows(t, sim.WindowsConfig{ValidBlocks: 8})
	tx := signedBy(t, long, signer, windowsOrder(t, long, wallet, long.NewAddress()))

	expectCode(t, "Broadcast", short.Broadcast(t.Context(), tx), fault.State, "transaction_expired")
}
