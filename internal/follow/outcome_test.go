package follow_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// oneWord is a network without nonces whose blocks are one node's word: they lack their transfers until they are read
// again.
type oneWord struct {
	*sim.Chain

	again func(block chain.Block) (chain.Block, error)
}

func (o *oneWord) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	blocks, err := o.Chain.Blocks(ctx, from, to)
	for i := range blocks {
		for _, moved := range blocks[i].Transfers {
			signed := chain.Spend{Sender: moved.From, By: moved.TxHash, Shared: true}
			blocks[i].Spent = append(blocks[i].Spent, signed)
		}

		blocks[i].Transfers = nil
	}

	return blocks, err
}

func (o *oneWord) AgreedBlock(ctx context.Context, at chain.Ref, _ []string) (chain.Block, error) {
	blocks, err := o.Chain.Blocks(ctx, at.Height, at.Height)
	if err != nil {
		return chain.Block{}, err
	}

	return o.again(blocks[0])
}

// outcomeReader has every unproven block read again.
type outcomeReader struct{ ledger }

func (r outcomeReader) Apply(ctx context.Context, b follow.Batch) error {
	if err := r.ledger.Apply(ctx, b); err != nil {
		return err
	}

	return r.Update(
		ctx,
		func(ctx context.Context, w scan.Tx) error { return b.RereadTx(ctx, w, b.Unproven()) },
	)
}

// What blocks say of our transactions where nothing binds it is read again until several nodes say the same. It holds
// up nothing else, is named where they contradict each other, and is given up where no node has the block.
func TestOutcomesAreReadAgain(t *testing.T) {
	unread := chain.Unread{TxHash: "x", Why: "no two nodes show the same of it"}
	shown := func(block chain.Block) (chain.Block, error) { return block, nil }
	fails := func(kind error) func(chain.Block) (chain.Block, error) {
		return func(chain.Block) (chain.Block, error) { return chain.Block{}, fault.New(kind, "why", "why") }
	}

	for name, c := range map[string]struct {
		again func(block chain.Block) (chain.Block, error)
		named bool // in the health report
		over  bool // the block is not read again
		seen  bool // what it shows is stored
	}{
		"two nodes show the same": {again: shown, over: true, seen: true},
		"they do not": {again: func(block chain.Block) (chain.Block, error) {
			block.Transfers, block.Unread = nil, []chain.Unread{unread}
			return block, nil
		}, named: true},
		"the second one is behind":       {again: fails(fault.Unavailable)},
		"the second one has another":     {again: fails(fault.NotFound)},
		"no node has the block any more": {again: fails(fault.Stopped), over: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := &oneWord{sim.New(sim.Config{}), c.again}
			d := newDB()
			clock := now()

			f, err := follow.New(follow.Config{
				Driver:       o,
				Handler:      outcomeReader{ledger{d, o.Chain}},
				DB:           d,
				Owner:        "a",
				Now:          func() time.Time { return clock },
				Log:          quiet(),
				FirstAddress: longAgo,
			})
			if err != nil {
				t.Fatal(err)
			}

			address := o.NewAddress()
			o.Mine(1)
			drainAll(t, f)
			o.Pay(address, "SIM", chain.Units(1))
			o.Mine(1)

			later := scan.Range{ID: "z", Network: o.Network().Slug, Next: 1, To: 1}
			d.ranges[later.ID] = later

			drainAll(t, f)
			drainAll(t, f) // what waits is put off

			if _, waits := d.ranges[later.ID]; waits {
				t.Error("another range waits for it")
			}

			expect := func(over, named, seen bool) {
				t.Helper()

				if (len(d.ranges) == 0) != over || (len(d.seen) == 1) != seen {
					t.Errorf("left to be read again: %v; seen: %v", d.ranges, d.seen)
				}

				report := f.Health().Unread
				if slices.ContainsFunc(
					report,
					func(u health.Unread) bool { return u.TxHash == unread.TxHash },
				) != named {
					t.Errorf("the health report is %+v", report)
				}
			}
			expect(c.over, c.named, c.seen)

			if c.over {
				return
			}

			o.again, clock = shown, clock.Add(time.Minute)

			drainAll(t, f)
			expect(true, false, true)
		})
	}
}

// Where many ranges wait no more are added: reading on is worth more.
func TestFewOutcomesWait(t *testing.T) {
	o := &oneWord{Chain: sim.New(sim.Config{})}
	d := newDB()

	for i := range 256 {
		id := fmt.Sprint("a", i)
		d.ranges[id] = scan.Range{ID: id, Network: o.Network().Slug, Next: 1_000_000, To: 1_000_000}
	}

	f, err := follow.New(follow.Config{
		Driver:       o,
		Handler:      outcomeReader{ledger{d, o.Chain}},
		DB:           d,
		Owner:        "a",
		Now:          now,
		Log:          quiet(),
		FirstAddress: longAgo,
	})
	if err != nil {
		t.Fatal(err)
	}

	o.Pay(o.NewAddress(), "SIM", chain.Units(1))
	o.Mine(1)
	drainAll(t, f)

	if len(d.ranges) != 256 {
		t.Errorf("%d ranges wait", len(d.ranges))
	}
}
