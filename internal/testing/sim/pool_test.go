package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// wallet is a funded wallet on a network.
type wallet struct {
	c     *sim.Chain
	s     *sim.Signer
	party chain.Party
}

func newWallet(t *testing.T, c *sim.Chain, units uint64) wallet {
	t.Helper()

	s := sim.NewSigner(1, nil)
	p := wallet{c: c, s: s, party: s.Party(chain.RoleMaster, 0, c)}
	c.Fund(p.party.Address, "SIM", coin(units))

	return p
}

// order pays one coin to a new address.
func (p wallet) order(t *testing.T, nonce uint64) chain.Order {
	t.Helper()

	return chain.Order{
		From:    p.party,
		Nonce:   nonce,
		MaxFee:  coin(1),
		Outputs: []chain.Output{{To: p.c.NewAddress(), AssetID: asset(t, p.c, "SIM").ID, Amount: coin(1)}},
	}
}

func (p wallet) sign(t *testing.T, o chain.Order) chain.Signed {
	t.Helper()
	return sign(t, p.c, p.s, o)
}

func TestPoolRules(t *testing.T) {
	t.Run("a gap waits until it is filled", func(t *testing.T) {
		c := newChain(t)
		p := newWallet(t, c, 10)
		second, third := p.sign(t, p.order(t, 1)), p.sign(t, p.order(t, 2))
		broadcast(t, c, third)
		broadcast(t, c, second)
		c.Mine(2)
		wantState(t, c, second, chain.TxPooled)

		if pool, err := c.Pool(t.Context()); err != nil || len(pool) != 0 {
			t.Errorf("Pool shows what cannot be mined: %+v, %v", pool, err)
		}

		first := p.sign(t, p.order(t, 0))
		broadcast(t, c, first)

		if pool, _ := c.Pool(t.Context()); len(pool) != 3 {
			t.Errorf("Pool shows %d transactions, want 3", len(pool))
		}

		c.Mine(1)

		for _, tx := range []chain.Signed{first, second, third} {
			if st := wantState(t, c, tx, chain.TxIncluded); st.Block.Height != 3 {
				t.Errorf("nonce %d is in block %d, want 3", tx.Nonce, st.Block.Height)
			}
		}
	})

	t.Run("a replacement pays a tenth more", func(t *testing.T) {
		c := newChain(t)
		p := newWallet(t, c, 10)
		old := p.sign(t, p.order(t, 0))
		broadcast(t, c, old)
		c.SetFee(sim.DefaultBaseFee*109/100, sim.DefaultPriority*109/100)
		wantFault(
			t, c.Broadcast(t.Context(), p.sign(t, p.order(t, 0))), fault.State,
			"replacement_underpriced",
		)
		wantState(t, c, old, chain.TxPooled)
		c.SetFee(sim.DefaultBaseFee*110/100, sim.DefaultPriority*110/100)

		enough := p.sign(t, p.order(t, 0))
		broadcast(t, c, enough)
		wantState(t, c, old, chain.TxUnknown)
		wantState(t, c, enough, chain.TxPooled)
		wantFault(t, c.Broadcast(t.Context(), old), fault.State, "replacement_underpriced")
	})

	t.Run("Replaces offers just enough", func(t *testing.T) {
		c := newChain(t)
		p := newWallet(t, c, 10)
		last := p.sign(t, p.order(t, 0))
		broadcast(t, c, last)

		for range 5 {
			o := p.order(t, 0)
			o.Replaces = &last
			next := p.sign(t, o)
			broadcast(t, c, next)
			last = next
		}

		c.Mine(1)
		wantState(t, c, last, chain.TxIncluded)
	})

	t.Run("a used nonce is no proof", func(t *testing.T) {
		c := newChain(t)
		p := newWallet(t, c, 10)
		late := p.sign(t, p.order(t, 0))
		c.CancelNonce(p.party.Address)
		c.Mine(1)
		wantFault(t, c.Broadcast(t.Context(), late), fault.State, "nonce_used")
	})

	t.Run("who cannot pay is refused", func(t *testing.T) {
		c := newChain(t)
		p := newWallet(t, c, 2)
		first, second := p.sign(t, p.order(t, 0)), p.sign(t, p.order(t, 1))
		broadcast(t, c, first)
		c.Mine(1)
		wantFault(t, c.Broadcast(t.Context(), second), fault.Invalid, "insufficient_funds")
	})

	t.Run("who can no longer pay waits", func(t *testing.T) {
		c := newChain(t)
		p := newWallet(t, c, 2)
		first, second := p.sign(t, p.order(t, 0)), p.sign(t, p.order(t, 1))
		broadcast(t, c, first)
		broadcast(t, c, second)
		c.Mine(1)
		wantState(t, c, first, chain.TxIncluded)
		wantState(t, c, second, chain.TxPooled)
		c.Fund(p.party.Address, "SIM", coin(1))
		c.Mine(1)
		wantState(t, c, second, chain.TxIncluded)
	})

	t.Run("too low a price waits", func(t *testing.T) {
		c := newChain(t)
		p := newWallet(t, c, 10)
		tx := p.sign(t, p.order(t, 0))
		broadcast(t, c, tx)
		c.SetFee(100*sim.DefaultBaseFee, 0)
		c.Mine(1)
		wantState(t, c, tx, chain.TxPooled)
		c.SetFee(2*sim.DefaultBaseFee, sim.DefaultPriority)
		c.Mine(1)
		st := wantState(t, c, tx, chain.TxIncluded)
		// The base fee doubled: the price is capped at twice the old base fee plus the priority price.
		want := chain.Units(2*sim.DefaultBaseFee + sim.DefaultPriority).Mul(sim.GasNative)
		if st.Fee != want {
			t.Errorf("fee %s, want %s", st.Fee, want)
		}
	})

	t.Run("the better payer comes first", func(t *testing.T) {
		c := newChain(t)
		to := c.NewAddress()
		cheap := c.Pay(to, "SIM", coin(1))
		c.SetFee(sim.DefaultBaseFee, 5*sim.DefaultPriority)
		dear := c.Pay(to, "SIM", coin(2))
		c.Mine(1)

		blocks, err := c.Blocks(t.Context(), 1, 1)
		if err != nil {
			t.Fatal(err)
		}

		var order []string
		for _, tr := range blocks[0].Transfers {
			order = append(order, tr.TxHash)
		}

		if !slices.Equal(order, []string{dear, cheap}) {
			t.Errorf("the block holds %v, want %v", order, []string{dear, cheap})
		}
	})

	t.Run("a dropped transaction can be sent again", func(t *testing.T) {
		c := newChain(t)
		p := newWallet(t, c, 10)
		tx := p.sign(t, p.order(t, 0))
		broadcast(t, c, tx)

		if !c.Drop(tx.TxHash) || c.Drop(tx.TxHash) {
			t.Error("Drop does not say whether it dropped anything")
		}

		c.Mine(1)
		wantState(t, c, tx, chain.TxUnknown)
		broadcast(t, c, tx)
		c.Mine(1)
		wantState(t, c, tx, chain.TxIncluded)
	})

	t.Run("a payment is displaced by its sender", func(t *testing.T) {
		c := newChain(t)
		to := c.NewAddress()
		hash := c.Pay(to, "USDX", dollars(3))
		other := c.Replace(hash)
		c.Mine(1)

		if _, err := c.Transaction(t.Context(), hash); err == nil {
			t.Error("the displaced payment is still to be found")
		}

		found, err := c.Transaction(t.Context(), other)
		if err != nil || found.Block.Height != 1 || len(found.Transfers) != 0 {
			t.Errorf("the double spend is %+v, %v", found, err)
		}

		if got := c.Balance(to, "USDX"); !got.IsZero() {
			t.Errorf("the displaced payment paid %s", got)
		}
	})
}

func TestForkRules(t *testing.T) {
	t.Run("fates", func(t *testing.T) {
		c := newChain(t)
		to := c.NewAddress()
		kept := c.Pay(to, "SIM", coin(1))
		returned := c.Pay(to, "SIM", coin(2))
		forgotten := c.Pay(to, "SIM", coin(4))
		old := c.Mine(3)

		tip := c.Fork(sim.Fork{
			Depth: 3,
			Each:  map[string]sim.OrphanFate{kept: sim.Reinclude, forgotten: sim.DropOrphan},
		})
		if tip.Height != old.Height+1 || tip.Hash == old.Hash {
			t.Errorf("the tip was %+v and is %+v", old, tip)
		}

		if got := c.Balance(to, "SIM"); got != coin(1) {
			t.Errorf("balance %s after the fork, want that of the kept payment", got)
		}

		if found, err := c.Transaction(t.Context(), returned); err != nil || !found.Block.IsZero() {
			t.Errorf("the returned payment is %+v, %v", found, err)
		}

		_, err := c.Transaction(t.Context(), forgotten)
		wantFault(t, err, fault.NotFound, "transaction_unknown")
		c.Mine(1)

		if got := c.Balance(to, "SIM"); got != coin(3) {
			t.Errorf("balance %s after mining again, want %s", got, coin(3))
		}
	})

	t.Run("the state goes back", func(t *testing.T) {
		c := newChain(t)
		p := newWallet(t, c, 10)
		c.Mine(2)

		tx := p.sign(t, p.order(t, 0))
		broadcast(t, c, tx)
		before := c.Balance(p.party.Address, "SIM")
		c.Mine(1)
		c.Fork(sim.Fork{Depth: 2, Length: 1, Fate: sim.DropOrphan})

		if got := c.Balance(p.party.Address, "SIM"); got != before {
			t.Errorf("balance %s after the fork, before the payment it was %s", got, before)
		}

		if n, err := c.Nonce(t.Context(), p.party.Address); err != nil || n != 0 {
			t.Errorf("nonce %d, %v after the fork", n, err)
		}

		wantState(t, c, tx, chain.TxUnknown)

		if head, err := c.Head(t.Context()); err != nil || head.Tip.Height != 2 {
			t.Errorf("head %+v, %v, want height 2 on the shorter branch", head, err)
		}
	})

	t.Run("what was replaced does not come back beside it", func(t *testing.T) {
		c := newChain(t)
		p := newWallet(t, c, 10)
		tx := p.sign(t, p.order(t, 0))
		broadcast(t, c, tx)
		c.Mine(1)
		c.Fork(sim.Fork{Depth: 1, Fate: sim.DropOrphan})
		rival := c.CancelNonce(p.party.Address)
		c.Mine(1)
		c.Fork(sim.Fork{Depth: 1}) // the rival returns to the pool
		wantFault(t, c.Broadcast(t.Context(), tx), fault.State, "replacement_underpriced")
		c.Mine(1)

		if found, err := c.Transaction(t.Context(), rival); err != nil || found.Block.IsZero() {
			t.Errorf("the rival is %+v, %v", found, err)
		}

		c.Mine(1)
		wantState(t, c, tx, chain.TxUnknown)
		c.Mine(1)

		if st := wantState(t, c, tx, chain.TxDead); st.Reason != chain.ReasonConflict {
			t.Errorf("death of %q", st.Reason)
		}
	})

	t.Run("what no longer works out waits", func(t *testing.T) {
		c := newChain(t)
		p := newWallet(t, c, 10)
		first, second := p.sign(t, p.order(t, 0)), p.sign(t, p.order(t, 1))
		broadcast(t, c, first)
		c.Mine(1)
		broadcast(t, c, second)
		c.Mine(1)
		c.Fork(
			sim.Fork{
				Depth: 2,
				Fate:  sim.Reinclude,
				Each:  map[string]sim.OrphanFate{first.TxHash: sim.DropOrphan},
			},
		)
		wantState(t, c, second, chain.TxPooled)
	})

	t.Run("below the final block", func(t *testing.T) {
		c := newChain(t)
		c.Mine(10)

		head, err := c.Head(t.Context())
		if err != nil || head.Final.Height != 8 || head.Safe.Height != 9 {
			t.Fatalf("head %+v, %v, want final 8 and safe 9", head, err)
		}

		c.Fork(sim.Fork{Depth: 2, Length: 1})

		if after, _ := c.Head(t.Context()); after.Final.Height > 8 {
			t.Errorf("final %d rose through a shorter branch", after.Final.Height)
		}

		c.Fork(sim.Fork{Depth: 5})

		ref, err := c.RefAt(t.Context(), head.Final.Height)
		if err != nil || ref.Hash == head.Final.Hash {
			t.Errorf(
				"block %d is %+v, %v: the fork did not go below the final block",
				head.Final.Height, ref, err,
			)
		}
	})

	t.Run("too deep", func(t *testing.T) {
		c := newChain(t)
		c.Mine(2)

		defer func() {
			if recover() == nil {
				t.Error("a fork of the genesis block is a mistake of the program")
			}
		}()

		c.Fork(sim.Fork{Depth: 3})
	})
}

// What a sender cannot pay for leaves the pool after hours, as from go-ethereum's.
func TestPoolDropsWhatIsNotPaidFor(t *testing.T) {
	c := newChain(t)
	p := newWallet(t, c, 2)
	first, second := p.sign(t, p.order(t, 0)), p.sign(t, p.order(t, 1))
	broadcast(t, c, first)
	broadcast(t, c, second)
	c.Mine(1)
	wantState(t, c, first, chain.TxIncluded)

	c.Advance(2 * time.Hour)
	c.Mine(1)
	wantState(t, c, second, chain.TxPooled)
	c.Advance(time.Hour)
	c.Mine(2)

	if c.Drop(second.TxHash) {
		t.Error("what nobody can pay for is in the pool after three hours")
	}
}
