package sim_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

func TestFailNext(t *testing.T) {
	c := newChain(t)
	c.FailNext(sim.MethodHead, sim.Unavailable(), 2)

	if _, err := c.RefAt(t.Context(), 0); err != nil {
		t.Errorf("RefAt failed in place of Head: %v", err)
	}

	for range 2 {
		_, err := c.Head(t.Context())
		wantFault(t, err, fault.Unavailable, "node_unavailable")
	}

	if _, err := c.Head(t.Context()); err != nil {
		t.Errorf("the third call fails as well: %v", err)
	}

	own := errors.New("own")
	c.FailNext(sim.AnyMethod, own, 1)

	if _, err := c.Pool(t.Context()); !errors.Is(err, own) {
		t.Errorf("error %v, want the one that was set", err)
	}

	if heads, all := c.Calls(sim.MethodHead), c.Calls(sim.AnyMethod); heads != 3 || all != 5 {
		t.Errorf("%d calls of Head of %d, want 3 of 5", heads, all)
	}
}

func TestFailedBroadcastHasNoEffectAndALostAnswerHas(t *testing.T) {
	c := newChain(t)
	p := newWallet(t, c, 10)
	tx := p.sign(t, p.order(t, 0))

	c.FailNext(sim.MethodBroadcast, sim.Unavailable(), 1)
	wantFault(t, c.Broadcast(t.Context(), tx), fault.Unavailable, "node_unavailable")
	wantState(t, c, tx, chain.TxUnknown)
	c.LoseNextResponses(1)
	wantFault(t, c.Broadcast(t.Context(), tx), fault.Unavailable, "node_unavailable")
	wantState(t, c, tx, chain.TxPooled)
	broadcast(t, c, tx)
}

func TestInterceptSeesEveryCallAndMayUseTheControls(t *testing.T) {
	var (
		methods []sim.Method
		c       *sim.Chain
	)

	c = sim.New(sim.Config{
		Clock: fixed,
		Intercept: func(_ context.Context, m sim.Method) error {
			methods = append(methods, m)
			if m == sim.MethodHead {
				c.Mine(1)
			}

			return nil
		},
	})

	head, err := c.Head(t.Context())
	if err != nil || head.Tip.Height != 1 {
		t.Errorf("Head = %+v, %v, want the block that was mined before it", head, err)
	}

	if _, err := c.Blocks(t.Context(), 0, 0); err != nil {
		t.Error(err)
	}

	if !slices.Equal(methods, []sim.Method{sim.MethodHead, sim.MethodBlocks}) {
		t.Errorf("intercepted %v", methods)
	}

	refused := errors.New("refused")

	c.SetIntercept(func(context.Context, sim.Method) error { return refused })

	if _, err := c.Head(t.Context()); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}

	c.SetIntercept(nil)

	if _, err := c.Head(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLaggingNode(t *testing.T) {
	c := newChain(t)
	p := newWallet(t, c, 10)
	c.Mine(5)

	tx := p.sign(t, p.order(t, 0))
	broadcast(t, c, tx)
	c.Mine(4)
	c.Lag(4)

	head, err := c.Head(t.Context())
	if err != nil || head.Tip.Height != 5 || head.Final.Height != 3 {
		t.Errorf("head %+v, %v, want tip 5 and final 3", head, err)
	}

	_, err = c.RefAt(t.Context(), 6)
	wantFault(t, err, fault.NotFound, "block_unknown")
	wantState(t, c, tx, chain.TxUnknown)

	if n, err := c.Nonce(t.Context(), p.party.Address); err != nil || n != 0 {
		t.Errorf("nonce %d, %v", n, err)
	}

	c.Lag(0)

	if st := wantState(t, c, tx, chain.TxIncluded); !st.Final {
		t.Errorf("status %+v", st)
	}
}

func TestExpiry(t *testing.T) {
	t.Run("by height", func(t *testing.T) {
		c := sim.New(sim.Config{Clock: fixed, ValidBlocks: 3})
		p := newWallet(t, c, 10)

		tx := p.sign(t, p.order(t, 0))
		if tx.ValidToHeight != 3 || !tx.ValidTo.IsZero() {
			t.Fatalf("valid to height %d and %v", tx.ValidToHeight, tx.ValidTo)
		}

		c.MineEmpty(2)
		broadcast(t, c, tx)
		c.MineEmpty(1)
		wantState(t, c, tx, chain.TxUnknown) // evicted, but block 3 may still be replaced by another with it
		wantFault(t, c.Broadcast(t.Context(), tx), fault.State, "transaction_expired")
		c.Mine(2)
		wantState(t, c, tx, chain.TxUnknown)
		c.Mine(1) // block 4 is final

		if st := wantState(t, c, tx, chain.TxDead); st.Reason != chain.ReasonExpired {
			t.Errorf("death of %q", st.Reason)
		}
	})
	t.Run("by time", func(t *testing.T) {
		c := sim.New(sim.Config{Clock: fixed, ValidFor: time.Minute})
		p := newWallet(t, c, 10)

		in, out := p.sign(t, p.order(t, 0)), p.sign(t, p.order(t, 1))
		if !in.ValidTo.Equal(start.Add(time.Minute)) {
			t.Fatalf("valid to %v", in.ValidTo)
		}

		broadcast(t, c, in)
		c.Advance(time.Minute)
		c.Mine(1)
		wantState(t, c, in, chain.TxIncluded)
		broadcast(t, c, out)
		c.Advance(time.Millisecond)
		c.Mine(3)

		if st := wantState(t, c, out, chain.TxDead); st.Reason != chain.ReasonExpired {
			t.Errorf("death of %q", st.Reason)
		}

		wantState(t, c, in, chain.TxIncluded)
	})
}

func TestTickMinesWhatIsDue(t *testing.T) {
	c := newChain(t)
	if n := c.Tick(start.Add(1999 * time.Millisecond)); n != 0 {
		t.Errorf("%d blocks before the first is due", n)
	}

	if n := c.Tick(start.Add(5 * time.Second)); n != 2 {
		t.Errorf("%d blocks after 5 s, want 2", n)
	}

	ref, err := c.RefAt(t.Context(), 2)
	if err != nil || !ref.Time.Equal(start.Add(4*time.Second)) {
		t.Errorf("block 2 is %+v, %v", ref, err)
	}
}

func TestRunMinesUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := sim.New(sim.Config{BlockTime: time.Second})
		ctx, cancel := context.WithCancel(t.Context())

		var wg sync.WaitGroup
		wg.Go(func() { c.Run(ctx) })
		time.Sleep(3500 * time.Millisecond) // the bubble's time
		cancel()
		wg.Wait()

		head, err := c.Head(t.Context())
		if err != nil || head.Tip.Height != 3 {
			t.Errorf("height %d, %v after 3.5 s, want 3", head.Tip.Height, err)
		}
	})
}

func TestSameSeedSameHashes(t *testing.T) {
	history := func(seed uint64) string {
		c := sim.New(sim.Config{Clock: fixed, Seed: seed})
		c.Pay(c.NewAddress(), "USDX", dollars(1))
		c.Mine(3)

		return c.Fork(sim.Fork{Depth: 2}).Hash
	}
	if a, b := history(1), history(1); a != b {
		t.Errorf("the same calls gave %s and %s", a, b)
	}

	if a, b := history(1), history(2); a == b {
		t.Errorf("two seeds gave the same %s", a)
	}
}

func TestHiddenPayment(t *testing.T) {
	c := newChain(t)
	to := c.NewAddress()

	hash := c.PayInternal(to, coin(2))
	if pool, err := c.Pool(t.Context()); err != nil || len(pool) != 0 {
		t.Errorf("the pool shows it: %+v, %v", pool, err)
	}

	tip := c.Mine(1)

	blocks, err := c.Blocks(t.Context(), 1, 1)
	if err != nil || len(blocks[0].Transfers) != 0 {
		t.Errorf("its block shows it: %+v, %v", blocks, err)
	}

	got, err := c.Balances(t.Context(), tip, []chain.Holding{{Address: to, AssetID: asset(t, c, "SIM").ID}})
	if err != nil || got[0] != coin(2) {
		t.Errorf("balances %v, %v", got, err)
	}

	found, err := c.Transaction(t.Context(), hash)
	if err != nil || len(found.Transfers) != 1 || found.Transfers[0].Index != 1<<20 ||
		found.Transfers[0].Amount != coin(2) {
		t.Errorf("found %+v, %v, want one transfer with index 2^20", found, err)
	}
}

func TestManyPaymentsInOneTransaction(t *testing.T) {
	c := newChain(t)
	native, token := asset(t, c, "SIM").ID, asset(t, c, "USDX").ID
	a, b := c.NewAddress(), c.NewAddress()
	c.PayMany(
		chain.Output{To: a, AssetID: native, Amount: coin(1)},
		chain.Output{To: a, AssetID: token, Amount: dollars(1)},
		chain.Output{To: b, AssetID: token},
		chain.Output{To: b, AssetID: token, Amount: dollars(2)},
	)
	c.Mine(1)

	blocks, err := c.Blocks(t.Context(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}

	var indices []uint32
	for _, tr := range blocks[0].Transfers {
		indices = append(indices, tr.Index)
	}

	if !slices.Equal(indices, []uint32{0, 1, 3}) { // the log of the payment of 0 counts
		t.Errorf("indices %v, want 0, 1, 3", indices)
	}
}

func TestNoFinality(t *testing.T) {
	c := sim.New(sim.Config{Clock: fixed, NoFinality: true})
	c.Mine(5)

	head, err := c.Head(t.Context())
	if err != nil || !head.Final.IsZero() || !head.Safe.IsZero() {
		t.Errorf("head %+v, %v", head, err)
	}
}
