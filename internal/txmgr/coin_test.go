package txmgr_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/store"
)

// outputs is a sender that spends outputs, as on Bitcoin: each transaction takes the first coin it
// is offered or those that it has to, or, when careless, the last one.
type outputs struct {
	chain.Driver
	careless bool
	all      bool                             // takes all coins in blocks, and of replaced bytes their inputs
	least    bool                             // replaces within any maximum, by bytes that pay a little more
	estimate chain.Amount                     // what EstimateFee says, and a replacement costs
	parents  map[chain.Outpoint][]chain.Spend // unconfirmed ones of a coin
	offered  map[string]int                   // by destination, how many coins the last Build was offered
	status   map[string]chain.TxStatus
	blocks   map[uint64]chain.Block
	sent     []string
}

func (o *outputs) Build(_ context.Context, order chain.Order) (chain.Unsigned, error) {
	o.offered[string(order.Outputs[0].To)] = len(order.Coins)
	if len(order.Coins) == 0 {
		return chain.Unsigned{}, fault.New(fault.State, "insufficient_funds", "no coins")
	}

	if order.Replaces != nil && order.MaxFee.Less(o.estimate) && !o.least {
		return chain.Unsigned{}, fault.New(
			fault.Unavailable,
			"fee_above_maximum",
			"it asks for %s",
			o.estimate,
		)
	}

	coin := order.Coins[0]
	if (order.Replaces != nil || len(order.Spends) > 0) && o.careless {
		coin = order.Coins[len(order.Coins)-1]
	}

	inputs := []chain.Outpoint{coin.Outpoint}
	if len(order.Spends) > 0 && !o.careless {
		inputs = order.Spends
	}

	if o.all {
		inputs = o.allOf(order)
	}

	raw := fmt.Sprintf("%v to %s replacing %v", inputs, order.Outputs[0].To, order.Replaces != nil)
	if o.least {
		raw += fmt.Sprintf(" after %d", len(o.sent))
	}

	return chain.Unsigned{
		Raw:      []byte(raw),
		Payloads: []chain.Payload{{Key: order.From.Key, Data: make([]byte, 32)}},
		MaxFee:   chain.Units(1),
		Inputs:   inputs,
		Outputs:  order.Outputs,

		UnconfirmedParents: o.parents[coin.Outpoint],
	}, nil
}

func (o *outputs) allOf(order chain.Order) (inputs []chain.Outpoint) {
	if order.Replaces != nil {
		return order.Replaces.Inputs
	}

	for _, c := range order.Coins {
		if c.Height > 0 {
			inputs = append(inputs, c.Outpoint)
		}
	}

	return inputs
}

func (o *outputs) EstimateFee(context.Context, chain.Order) (chain.Amount, error) {
	return o.estimate, nil
}

func (o *outputs) Assemble(
	order chain.Order,
	u chain.Unsigned,
	_ []chain.PublicKey,
	_ [][]byte,
) (chain.Signed, error) {
	return chain.Signed{
		TxHash:  "hash of " + string(u.Raw),
		Raw:     u.Raw,
		MaxFee:  u.MaxFee,
		Inputs:  u.Inputs,
		Outputs: u.Outputs,
		From:    order.From.Address,

		UnconfirmedParents: u.UnconfirmedParents,
	}, nil
}

func (o *outputs) Broadcast(_ context.Context, tx chain.Signed) error {
	o.sent = append(o.sent, tx.TxHash)
	return nil
}

func (o *outputs) Status(_ context.Context, tx chain.Signed) (chain.TxStatus, error) {
	if s, known := o.status[tx.TxHash]; known {
		for _, out := range tx.Outputs {
			s.Transfers = append(
				s.Transfers,
				chain.Transfer{TxHash: tx.TxHash, To: out.To, AssetID: out.AssetID, Amount: out.Amount},
			)
		}

		return s, nil
	}

	return chain.TxStatus{State: chain.TxPooled}, nil
}

// Blocks makes it a network whose blocks are read; see harness.scripted.
func (o *outputs) Blocks(_ context.Context, from, _ uint64) ([]chain.Block, error) {
	if b, ok := o.blocks[from]; ok {
		return []chain.Block{b}, nil
	}

	return nil, fault.New(fault.Unavailable, "blocks_scripted", "nobody asks here")
}

// Unspent makes it a network that spends outputs.
func (o *outputs) Unspent(context.Context, []chain.Outpoint) (chain.Ref, []chain.Amount, error) {
	return chain.Ref{}, nil, fault.New(fault.Unavailable, "unspent_unknown", "nobody asks here")
}

func newOutputs(t *testing.T, coins int) (*harness, *outputs) {
	t.Helper()
	w := newHarness(t, sim.Config{})
	w.follower = nil
	driver := &outputs{
		Driver:  spy{w.chain, w},
		offered: map[string]int{},
		status:  map[string]chain.TxStatus{},
	}
	w.offers = func(to chain.Address) int { return driver.offered[string(to)] }

	registry, err := chain.NewRegistry(driver)
	if err != nil {
		t.Fatal(err)
	}

	clock := func() time.Time { return w.now }
	w.outbox = txmgr.New(
		txmgr.Config{
			DB:       db{w.store, w},
			Registry: registry,
			Signer:   w.signer,
			IDs:      id.New(clock, nil),
			Now:      clock,
			Process:  "utxo",
			// Others use the wallets' keys in these tests; freezing has its own.
			Foreign: wallet.Tolerate,
		},
	)

	err = w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		for i := range coins {
			c := wallet.Coin{
				Network: network,
				Coin: chain.Coin{
					Outpoint: chain.Outpoint{TxHash: "c", Vout: uint32(i)},
					Owner:    w.master(),
					Amount:   coin(5),
					Height:   1,
				},
			}
			if err := tx.PutCoin(ctx, &c); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return w, driver
}

func (w *harness) coins() map[uint32]wallet.Coin {
	w.t.Helper()

	coins, err := w.store.Coins(w.t.Context(), network, w.master().Address)
	if err != nil {
		w.t.Fatal(err)
	}

	out := map[uint32]wallet.Coin{}
	for _, c := range coins {
		out[c.Outpoint.Vout] = c
	}

	return out
}

func TestCoinsAreSpentByOneTransactionEach(t *testing.T) {
	w, driver := newOutputs(t, 1)
	second, parent := chain.Outpoint{TxHash: "c", Vout: 1}, chain.Outpoint{TxHash: "parent"}
	driver.parents = map[chain.Outpoint][]chain.Spend{second: spends("change", "parent")}

	if err := w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		waiting := wallet.Coin{
			Network: network,
			Coin:    chain.Coin{Outpoint: second, Owner: w.master(), Amount: coin(5)},
			Depth:   1,
		}
		if err := tx.PutCoin(ctx, &waiting); err != nil {
			return err
		}

		return tx.PutCoin(ctx, &wallet.Coin{
			Network: network,
			Coin:    chain.Coin{Outpoint: parent, Owner: w.master(), Amount: coin(5), Height: 1},
			SpentBy: "change",
		})
	}); err != nil {
		t.Fatal(err)
	}

	p, q, r := w.payout("SIM", coin(1)), w.payout("SIM", coin(2)), w.payout("SIM", coin(3))
	w.work()

	if got := w.coins(); got[0].ReservedBy != p.ID || got[1].ReservedBy != q.ID {
		t.Fatalf("reserved as %+v", got)
	}

	if got := w.get(r.ID); got.State != wallet.Queued || driver.offered[string(r.Order.Outputs[0].To)] != 0 {
		t.Fatalf(
			"the third one is %s and was offered %d coins",
			got.State, driver.offered[string(r.Order.Outputs[0].To)],
		)
	}

	mined := block(20, "a", nil, chain.Spend{
		Outpoint: chain.Outpoint{TxHash: "c"},
		By:       w.get(p.ID).TxHash,
	}, chain.Spend{
		Outpoint: parent,
		By:       "thief",
	})
	driver.parents = nil
	driver.status[w.get(p.ID).TxHash] = chain.TxStatus{State: chain.TxIncluded, Block: mined.Ref}
	w.scripted(buried(mined, "a"))
	w.wait(time.Minute)

	if a, b := w.get(p.ID), w.get(q.ID); a.State != wallet.Confirmed || b.Failure != wallet.FailConflict {
		t.Fatalf("they are %s and %s %s", a.State, b.State, b.Failure)
	}

	if got := w.get(q.ID).Conflict; got != (wallet.Conflict{TxHash: "thief"}) {
		t.Errorf("it names %+v", got)
	}

	w.wait(time.Minute)

	got := w.coins()
	if got[0].ReservedBy != p.ID {
		t.Errorf(
			"the coin of a confirmed transaction, whose block is not booked yet, is reserved by %q",
			got[0].ReservedBy,
		)
	}

	if got[1].ReservedBy != r.ID || w.get(r.ID).State != wallet.Broadcast {
		t.Errorf(
			"the coin of a dead transaction is reserved by %q, not by the one that waits",
			got[1].ReservedBy,
		)
	}
}

// A replacement that shares no coin with what it replaces would pay twice.
func TestReplacementWithOtherCoinsIsThrownAway(t *testing.T) {
	for _, careless := range []bool{false, true} {
		w, driver := newOutputs(t, 3)
		driver.careless = careless
		p := w.payout("SIM", coin(1))
		w.work()
		w.wait(5 * time.Minute)

		got := w.get(p.ID)
		if want := map[bool]int{false: 2, true: 1}[careless]; len(got.Attempts) != want ||
			len(driver.sent) != want {
			t.Errorf("careless %v: %d attempts, %d sent", careless, len(got.Attempts), len(driver.sent))
		}
	}
}
