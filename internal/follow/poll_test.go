package follow_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// polled is a simulated network that can only be asked by address.
type polled struct {
	chain.Driver
	c *sim.Chain
	// ours are the addresses that were made, with the time of each.
	ours map[chain.Address]time.Time
	// hidden are transactions that the node does not show yet.
	hidden map[string]bool
	// asked runs before each answer.
	asked func()
	time  time.Time
	// oldest is the first height of which the node has histories.
	oldest uint64
}

func newPolled(c *sim.Chain) *polled {
	return &polled{
		Driver: c,
		c:      c,
		ours:   map[chain.Address]time.Time{},
		hidden: map[string]bool{},
		asked:  func() {},
		time:   now(),
	}
}

// pay pays to a new address of ours.
func (p *polled) pay() string {
	a := p.c.NewAddress()
	p.ours[a] = p.time

	return p.c.Pay(a, "SIM", chain.Units(5))
}

func (p *polled) addresses(_ context.Context, since time.Time) ([]chain.AddressCursor, error) {
	var out []chain.AddressCursor

	for a, made := range p.ours {
		if !made.Before(since) {
			out = append(out, chain.AddressCursor{Address: a, Since: made})
		}
	}

	return out, nil
}

// ParentAt is that of the chain's blocks.
func (p *polled) ParentAt(ctx context.Context, height uint64) (string, error) {
	blocks, err := p.c.Blocks(ctx, height, height)
	if err != nil {
		return "", err
	}

	return blocks[0].Parent, nil
}

func (p *polled) TransfersTo(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	p.asked()

	var out []chain.Block

	for next := from; next <= to; {
		blocks, err := p.c.Blocks(ctx, next, to)
		if err != nil {
			return nil, err
		}

		for _, b := range blocks {
			next = b.Height + 1

			b.Transfers = slices.DeleteFunc(
				b.Transfers,
				func(t chain.Transfer) bool { return p.hidden[t.TxHash] || !slices.Contains(addresses, t.To) },
			)
			if len(b.Transfers) > 0 {
				out = append(out, b)
			}
		}
	}

	return out, nil
}

func (p *polled) follow(t interface{ Fatal(...any) }, d *db) *follow.Follower {
	return p.followAs(t, d, p)
}

// followAs returns a follower of the network by a driver of it.
func (p *polled) followAs(t interface{ Fatal(...any) }, d *db, driver chain.Driver) *follow.Follower {
	f, err := follow.New(follow.Config{
		Driver:       driver,
		Handler:      ledger{d, p.c},
		DB:           d,
		Owner:        "a",
		Now:          func() time.Time { return p.time },
		Log:          quiet(),
		FirstAddress: longAgo,
		Addresses:    p.addresses,
	})
	if err != nil {
		t.Fatal(err)
	}

	return f
}

func TestPollingNeedsAddresses(t *testing.T) {
	_, err := follow.New(
		follow.Config{Driver: newPolled(sim.New(sim.Config{})), DB: newDB(), Now: now, Log: quiet()},
	)
	if !errors.Is(err, fault.Unsupported) {
		t.Errorf("a driver without blocks, and no addresses to ask for: %v", err)
	}
}

// TestPollingFindsWhatIsShownLate reads blocks again, so that a transaction that a node shows late is found.
func TestPollingFindsWhatIsShownLate(t *testing.T) {
	p, d := newPolled(sim.New(sim.Config{NoFinality: true})), newDB()
	f := p.follow(t, d)
	p.pay()
	p.c.Mine(2)
	drainAll(t, f)

	p.hidden[p.pay()] = true
	p.c.Mine(1)
	drainAll(t, f)

	if len(d.seen) != 1 {
		t.Fatalf("%d transfers are seen, one is hidden", len(d.seen))
	}

	clear(p.hidden)
	p.c.Mine(1)
	drainAll(t, f)

	p.time = p.time.Add(2 * time.Minute)
	p.c.Mine(1)
	drainAll(t, f)

	if diff := cmp.Diff(truth(t, p.c), d.seen); diff != "" {
		t.Fatal(diff)
	}
}

// asking is a network by address that keeps from which heights transfers were asked for.
type asking struct {
	*polled
	from *[]uint64
}

func (a asking) TransfersTo(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	*a.from = append(*a.from, from)

	return a.polled.TransfersTo(ctx, addresses, from, to)
}

// What a node may show late is read again over a time, not over a number of blocks.
func TestPollingReadsAMinuteAgain(t *testing.T) {
	for pace, more := range map[time.Duration]uint64{
		200 * time.Millisecond: 300,
		450 * time.Millisecond: 134,
		12 * time.Second:       5,
		10 * time.Minute:       1,
	} {
		t.Run(pace.String(), func(t *testing.T) {
			p, d := newPolled(nil), newDB()
			p.c = sim.New(sim.Config{NoFinality: true, Clock: func() time.Time { return p.time }})
			p.Driver = p.c

			var from []uint64

			f := p.followAs(t, d, asking{p, &from})
			p.pay()

			// A look every two minutes or each block: each cursor remembers the time of its block.
			for range 30 {
				for range max(1, 2*time.Minute/pace) {
					p.time = p.time.Add(pace)
					p.c.Mine(1)
				}

				if _, err := f.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}

			before := d.cursors["simnet"].At.Height
			from = nil
			p.time = p.time.Add(time.Minute)
			p.c.Mine(1)

			if _, err := f.Step(t.Context()); err != nil {
				t.Fatal(err)
			}

			if want := before + 1 - more; len(from) != 1 || from[0] < want-2 || from[0] > want+2 {
				t.Errorf("read up to %d, it reads again from %v, want about %d", before, from, want)
			}
		})
	}
}

// TestPollingFindsNewAddresses has an address made and paid after the follower has read the
// tip.
func TestPollingFindsNewAddresses(t *testing.T) {
	p, d := newPolled(sim.New(sim.Config{NoFinality: true})), newDB()
	f := p.follow(t, d)
	p.pay()
	p.c.Mine(1)

	made := false
	p.asked = func() {
		if !made {
			made = true

			p.pay()
			p.c.Mine(1)
		}
	}

	drainAll(t, f)

	if diff := cmp.Diff(truth(t, p.c), d.seen); diff != "" || len(d.seen) != 2 {
		t.Fatal(diff, d.seen)
	}
}

// TestPollingAcrossAFork has the chain fork below the cursor after the head was read, with a
// payment in the very block that takes the place of the tip.
func TestPollingAcrossAFork(t *testing.T) {
	p, d := newPolled(sim.New(sim.Config{NoFinality: true})), newDB()
	f := p.follow(t, d)
	p.c.Mine(5)
	p.pay()
	p.c.Mine(1)
	drainAll(t, f)
	p.c.Mine(1)

	head, err := p.c.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	known := p.c.NewAddress()
	p.ours[known] = p.time
	forked := false
	p.asked = func() {
		if forked {
			return
		}

		forked = true

		p.c.Fork(sim.Fork{Depth: 3, Length: 1, Fate: sim.DropOrphan})

		for now, err := p.c.Head(t.Context()); err == nil &&
			now.Tip.Height < head.Tip.Height; now, err = p.c.Head(t.Context()) {
			p.c.Pay(known, "SIM", chain.Units(3))
			p.c.Mine(1)
		}
	}

	for range 3 {
		_, _ = f.Step(t.Context()) // one of them may find that the chain moved
	}

	p.c.Mine(5)
	drainAll(t, f)

	if diff := cmp.Diff(truth(t, p.c), d.seen); diff != "" || !forked {
		t.Fatal(diff)
	}
}

// TestPollingLetsOldAddressesRest asks no more for addresses older than PollFor, but for all of
// them after a fork.
func TestPollingLetsOldAddressesRest(t *testing.T) {
	p, d := newPolled(sim.New(sim.Config{NoFinality: true})), newDB()
	f := p.follow(t, d)
	p.pay()
	p.c.Mine(1)
	drainAll(t, f)

	old := p.c.NewAddress()
	p.ours[old] = p.time
	p.time = p.time.Add(31 * 24 * time.Hour)
	p.c.Pay(old, "SIM", chain.Units(9))
	p.c.Mine(1)
	drainAll(t, f)

	if len(d.seen) != 1 {
		t.Fatalf("%d transfers are seen; an address 31 days old was asked for", len(d.seen))
	}

	p.c.Fork(sim.Fork{Depth: 2, Fate: sim.Reinclude})
	p.c.Mine(2)
	drainAll(t, f)

	if diff := cmp.Diff(truth(t, p.c), d.seen); diff != "" {
		t.Fatal("after a fork:\n", diff)
	}
}

func TestPollingBackfills(t *testing.T) {
	p, d := newPolled(sim.New(sim.Config{})), newDB()

	var addresses []chain.Address

	for range 12 {
		p.pay()
		p.c.Mine(1)
	}

	for a := range p.ours {
		addresses = append(addresses, a)
	}

	f, err := follow.New(
		follow.Config{
			Driver:      p,
			Handler:     ledger{d, p.c},
			DB:          d,
			Owner:       "a",
			Now:         now,
			Log:         quiet(),
			BatchBlocks: 4,
			Addresses:   p.addresses,
		},
	)
	if err != nil {
		t.Fatal(err)
	}

	drainAll(t, f)

	d.ranges["r"] = scan.Range{ID: "r", Network: p.Network().Slug, Next: 1, To: 12, Addresses: addresses}

	drainAll(t, f)

	if diff := cmp.Diff(truth(t, p.c), d.seen); diff != "" || len(d.ranges) != 0 {
		t.Fatalf("after the back-fill %d ranges are left:\n%s", len(d.ranges), diff)
	}
}

// Whatever happens in between (payments, blocks, forks at any moment, lag, crashes, restarts), the
// ledger ends as the chain is.
func TestAnyPolledHistoryEndsAsTheChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, d := newPolled(
			sim.New(sim.Config{NoFinality: true, Seed: rapid.Uint64().Draw(t, "seed")}),
		), newDB()
		f := p.follow(t, d)
		p.c.Mine(1)

		fork := func() {
			head, _ := p.c.Head(context.Background())
			if depth := rapid.IntRange(1, 12).Draw(t, "depth"); uint64(depth) < head.Tip.Height {
				p.c.Fork(
					sim.Fork{
						Depth: uint64(depth),
						Fate: rapid.SampledFrom([]sim.OrphanFate{sim.ReturnToPool, sim.Reinclude, sim.DropOrphan}).
							Draw(t, "fate"),
					},
				)
				p.c.Mine(rapid.IntRange(1, depth+2).Draw(t, "new"))
			}
		}

		for range rapid.IntRange(1, 40).Draw(t, "events") {
			switch rapid.IntRange(0, 7).Draw(t, "event") {
			case 0:
				p.pay()
			case 1:
				p.c.Mine(rapid.IntRange(1, 6).Draw(t, "blocks"))
			case 2:
				fork()
			case 3:
				d.crash = true
			case 4:
				p.c.Lag(uint64(rapid.IntRange(0, 3).Draw(t, "lag")))
			case 5:
				d.loseHeartbeats()
				f = p.follow(t, d) // the process starts again
			case 6:
				_, _ = f.Step(context.Background())
			case 7:
				p.asked = func() { p.asked = func() {}; fork() }
				_, _ = f.Step(context.Background())
			}
		}

		p.c.Lag(0)
		d.crash, p.asked = false, func() {}
		p.c.Mine(20) // longer than whatever was read before
		drainAll(t, f)

		if diff := cmp.Diff(truth(t, p.c), d.seen); diff != "" {
			t.Fatal(diff)
		}
	})
}

// twoAtATime is a polled network of which a reading asks for two addresses.
type twoAtATime struct{ *polled }

func (twoAtATime) ReadingPace(int) (perReading int, every time.Duration) { return 2, 0 }

// ReadAddresses reads each address from the height in its position on.
func (r twoAtATime) ReadAddresses(
	ctx context.Context,
	cursors []chain.AddressCursor,
	to uint64,
) (reading chain.AddressReading, err error) {
	byHeight := map[uint64]chain.Block{}

	for _, cursor := range cursors {
		read, _ := strconv.ParseUint(cursor.Position, 10, 64)

		blocks, err := r.TransfersTo(ctx, []chain.Address{cursor.Address}, max(read+1, r.oldest), to)
		if err != nil {
			return chain.AddressReading{}, err
		}

		for _, block := range blocks {
			block.Transfers = append(block.Transfers, byHeight[block.Height].Transfers...)
			byHeight[block.Height] = block
		}

		if len(blocks) > 0 {
			cursor.Position = strconv.FormatUint(to, 10)
			reading.Moved = append(reading.Moved, cursor)
		}
	}

	for _, height := range slices.Sorted(maps.Keys(byHeight)) {
		reading.Blocks = append(reading.Blocks, byHeight[height])
	}

	reading.At, err = r.c.RefAt(ctx, to)

	return reading, err
}

// However long nothing was read, each address is read on from where it was read to, a few in a round.
func TestEveryAddressIsReadFromWhereItWasReadTo(t *testing.T) {
	p, d := newPolled(sim.New(sim.Config{NoFinality: true})), newDB()
	for range 8 {
		p.pay()
		p.c.Mine(1)
	}

	p.c.Mine(3000)

	f := p.followAs(t, d, twoAtATime{p})

	for range 10 {
		if _, err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}

		p.time = p.time.Add(time.Minute)
		p.c.Mine(1)
	}

	if diff := cmp.Diff(truth(t, p.c), d.seen); diff != "" {
		t.Error(diff)
	}
}
