package follow_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// slowLedger is a ledger that stores a block in perBlock, and refuses batches of more than most blocks.
type slowLedger struct {
	ledger
	clock    *time.Time
	perBlock time.Duration
	most     int
	sizes    []int
}

func (l *slowLedger) Apply(ctx context.Context, b follow.Batch) error {
	l.sizes = append(l.sizes, len(b.Blocks))
	*l.clock = l.clock.Add(time.Duration(len(b.Blocks)) * l.perBlock)

	if l.most > 0 && len(b.Blocks) > l.most {
		return fault.New(fault.Unavailable, "store_unavailable", "the transaction took too long")
	}

	return l.ledger.Apply(ctx, b)
}

// Blocks that take long to store are stored a few at a time, and more of them as soon as they do not.
func TestBatchesAreAsLargeAsTheStoreIsFast(t *testing.T) {
	c, d, clock := sim.New(sim.Config{NoFinality: true}), newDB(), now()
	slow := &slowLedger{ledger: ledger{d, c}, clock: &clock, perBlock: 400 * time.Millisecond}

	f, err := follow.New(follow.Config{
		Driver:       c,
		Handler:      slow,
		DB:           d,
		Owner:        "a",
		Log:          quiet(),
		BatchBlocks:  32,
		FirstAddress: longAgo,
		Now:          func() time.Time { return clock },
	})
	if err != nil {
		t.Fatal(err)
	}

	read := func(blocks int) []int {
		t.Helper()

		slow.sizes = nil

		for range blocks {
			c.Pay(c.NewAddress(), "SIM", chain.Units(5))
			c.Mine(1)
		}

		for at := d.at(c.Network().Slug) + uint64(blocks); d.at(c.Network().Slug) < at; {
			if _, err := f.Step(t.Context()); err != nil {
				t.Log(err)
			}
		}

		return slow.sizes
	}

	read(1) // its first position

	for _, test := range []struct {
		what     string
		perBlock time.Duration
		most     int
		blocks   int
		want     []int
	}{
		{"a block at the tip", time.Millisecond, 0, 1, []int{1}},
		{"the first that are many", time.Millisecond, 0, 56, []int{8, 16, 32}},
		{"slow blocks", 400 * time.Millisecond, 0, 62, []int{32, 16, 8, 4, 2}},
		{"slower ones", 5 * time.Second, 0, 6, []int{4, 2}},
		{"fast ones", time.Millisecond, 0, 63, []int{1, 2, 4, 8, 16, 32}},
		{"a store that ends long transactions", time.Millisecond, 7, 14, []int{14, 7, 7}},
	} {
		slow.perBlock, slow.most = test.perBlock, test.most
		if got := read(test.blocks); !slices.Equal(got, test.want) {
			t.Errorf("%s are stored in batches of %v, want %v", test.what, got, test.want)
		}
	}
}
