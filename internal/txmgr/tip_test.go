package txmgr

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// cursorDB has a cursor and nothing else.
type cursorDB struct {
	DB
	at       chain.Ref
	followed bool
}

func (db *cursorDB) Cursor(context.Context, string) (scan.Cursor, bool, error) {
	return scan.Cursor{Network: "simnet", At: db.at, Tip: db.at}, db.followed, nil
}

// A process signs only once its network is read up to the tip that it saw first, whatever the stored cursor says of
// the tip; blocks that come later do not matter.
func TestNetworkIsReadUpToTheFirstTip(t *testing.T) {
	network := sim.New(sim.Config{})

	registry, err := chain.NewRegistry(network)
	if err != nil {
		t.Fatal(err)
	}

	db := &cursorDB{}
	worker := &walletWorker{
		Manager: &Manager{config: Config{Now: time.Now}, db: db, registry: registry},
		network: network.Network(),
	}

	read := func() bool {
		t.Helper()

		read, err := worker.isRead(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		return read
	}
	at := func(height uint64) {
		t.Helper()

		ref, err := network.RefAt(t.Context(), height)
		if err != nil {
			t.Fatal(err)
		}

		db.at, db.followed = ref, true
	}

	if !read() {
		t.Error("nothing runs, and single workers are held up")
	}

	defer worker.Begin()()

	first := network.Mine(10).Height

	if read() {
		t.Error("a network without a cursor is read")
	}

	at(first - 1)

	if read() {
		t.Error("a block is missing")
	}

	network.Mine(10)
	at(first)

	if !read() {
		t.Error("it is read up to the first tip")
	}

	at(first - 5) // a fork

	if !read() {
		t.Error("what was read is forgotten")
	}
}

// moving is a driver without blocks, whose tip is another whenever it is asked for.
type moving struct {
	chain.Driver
	network *sim.Chain
}

func (d moving) Head(ctx context.Context) (chain.Head, error) {
	d.network.Mine(1)
	return d.Driver.Head(ctx)
}

// A network that is read by histories, and makes blocks faster than it is asked for them, is read once the histories
// come to the first tip: nobody can read up to a tip that moves.
func TestHistoriesAreReadUpToTheFirstTip(t *testing.T) {
	network := sim.New(sim.Config{})

	registry, err := chain.NewRegistry(moving{network, network})
	if err != nil {
		t.Fatal(err)
	}

	db := &cursorDB{at: network.Mine(1), followed: true}
	manager := &Manager{config: Config{Now: time.Now}, db: db, registry: registry}

	defer manager.Begin()()

	for range 2 {
		read, err := manager.IsRead(t.Context(), "simnet", "wallet")
		if err != nil {
			t.Fatal(err)
		}

		if read {
			t.Fatalf("at %d it is read, the first tip is above", db.at.Height)
		}
	}

	db.at = network.Mine(1)

	if read, err := manager.IsRead(t.Context(), "simnet", "wallet"); !read || err != nil {
		t.Errorf("the histories are read up to %d, above the first tip, and the network is read: %t, %v",
			db.at.Height, read, err)
	}
}

// What a node shows that is below the blocks on record is no first look: what the records lack may be in blocks that
// it has not seen. Seed 17 of BIAS=restore.
func TestNodeBelowTheRecordsIsNoFirstLook(t *testing.T) {
	network := sim.New(sim.Config{})

	registry, err := chain.NewRegistry(network)
	if err != nil {
		t.Fatal(err)
	}

	db := &cursorDB{at: network.Mine(10), followed: true}
	manager := &Manager{config: Config{Now: time.Now}, db: db, registry: registry}

	defer manager.Begin()()

	read := func() bool {
		t.Helper()

		read, err := manager.IsRead(t.Context(), "simnet", "wallet")
		if err != nil {
			t.Fatal(err)
		}

		refused := manager.CompareWallet(t.Context(), "simnet", "wallet")
		if read != (refused == nil) {
			t.Errorf("the network is read: %t, and a wallet is compared with it as %v", read, refused)
		}

		return read
	}

	tip := network.Mine(10)
	network.SetNode(0, sim.NodeFaults{Behind: 15})

	for range 2 {
		if read() {
			t.Error("the node is below what was read, and wallets sign")
		}
	}

	network.SetNode(0, sim.NodeFaults{})

	db.at = tip

	if !read() {
		t.Error("the network is read to its tip, and wallets do not sign")
	}
}

// One of two nodes is between the records and the tip: what the other has above it is read before wallets sign.
func TestFirstLookIsOfTheHighestTip(t *testing.T) {
	for _, c := range []struct {
		name            string
		behind, another uint64
		// read is how far the records are read, below the tip, when wallets sign.
		read uint64
	}{
		{name: "the preferred node is behind", behind: 9},
		{name: "by one block", behind: 1},
		{name: "both are behind", behind: 9, another: 3, read: 3},
		{name: "no node is behind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			network := sim.New(sim.Config{Nodes: 2})

			registry, err := chain.NewRegistry(network)
			if err != nil {
				t.Fatal(err)
			}

			db := &cursorDB{at: network.Mine(10), followed: true}
			manager := &Manager{config: Config{Now: time.Now}, db: db, registry: registry}

			defer manager.Begin()()

			tip := network.Mine(40)
			network.SetNode(0, sim.NodeFaults{Behind: c.behind})
			network.SetNode(1, sim.NodeFaults{Behind: c.another})

			for height := db.at.Height; height <= tip.Height; height++ {
				if db.at, err = network.RefAt(t.Context(), height); err != nil {
					break // the node that lags is asked
				}

				read, err := manager.IsRead(t.Context(), "simnet", "wallet")
				if err != nil || read != (height >= tip.Height-c.read) {
					t.Fatalf(
						"read up to %d of %d, the network is read: %t (%v)",
						height,
						tip.Height,
						read,
						err,
					)
				}
			}
		})
	}
}

// A second node that does not answer holds wallets back for a while, and not for good.
func TestFirstLookWaitsForASecondNode(t *testing.T) {
	network := sim.New(sim.Config{Nodes: 2})

	registry, err := chain.NewRegistry(network)
	if err != nil {
		t.Fatal(err)
	}

	now := time.Now()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	db := &cursorDB{at: network.Mine(10), followed: true}
	manager := &Manager{
		config:   Config{Now: func() time.Time { return now }, Log: log},
		db:       db,
		registry: registry,
	}

	defer manager.Begin()()

	network.SetNode(1, sim.NodeFaults{Syncing: true})

	for _, want := range []bool{false, false, true} {
		read, err := manager.IsRead(t.Context(), "simnet", "wallet")
		if err != nil || read != want {
			t.Errorf("at %s the network is read: %t (%v)", now, read, err)
		}

		now = now.Add(poolPatience - time.Second)
	}
}

// With one node nothing confirms what it says, and Health says so.
func TestOneEndpointConfirmsNothing(t *testing.T) {
	for nodes, want := range map[int]string{1: "nothing is confirmed by a second node: one is configured", 2: ""} {
		network := sim.New(sim.Config{Nodes: nodes})

		registry, err := chain.NewRegistry(network)
		if err != nil {
			t.Fatal(err)
		}

		db := &cursorDB{at: network.Mine(1), followed: true}
		manager := &Manager{config: Config{Now: time.Now}, db: db, registry: registry}

		end := manager.Begin()
		if _, err := manager.IsRead(t.Context(), "simnet", ""); err != nil {
			t.Fatal(err)
		}

		end()

		if got := manager.Unconfirmed("simnet"); got != want {
			t.Errorf("with %d endpoints: %q, want %q", nodes, got, want)
		}
	}
}

// boaster is a network of which one node says that it has every block up to a height, or any.
type boaster struct {
	*sim.Chain
	upTo *uint64
}

func (b boaster) Nodes() []chain.NodeState {
	nodes := b.Chain.Nodes()
	nodes[1].Tip = max(nodes[1].Tip, *b.upTo)

	return nodes
}

// A node that boasts of blocks that nobody has holds wallets back while it does, and not longer.
func TestBoastedHeightIsForgotten(t *testing.T) {
	network, boast := sim.New(sim.Config{Nodes: 2}), uint64(0)

	registry, err := chain.NewRegistry(boaster{network, &boast})
	if err != nil {
		t.Fatal(err)
	}

	now := time.Now()
	db := &cursorDB{at: network.Mine(10), followed: true}
	manager := &Manager{config: Config{Now: func() time.Time { return now }}, db: db, registry: registry}

	defer manager.Begin()()

	for _, c := range []struct {
		boast uint64
		want  bool
	}{{5000, false}, {5000, false}, {0, true}, {math.MaxUint64, true}} {
		boast = c.boast
		db.at = network.Mine(1) // the follower is at the tip, which rises

		read, err := manager.IsRead(t.Context(), "simnet", "wallet")
		if err != nil || read != c.want {
			t.Errorf("while a node boasts of %d blocks the network is read: %t (%v)", c.boast, read, err)
		}

		now = now.Add(lookEvery)
	}

	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	fresh := &Manager{
		config:   Config{Now: func() time.Time { return now }, Log: log},
		db:       db,
		registry: registry,
	}

	defer fresh.Begin()()

	if read, err := fresh.IsRead(t.Context(), "simnet", "wallet"); err != nil || !read {
		t.Errorf("beside a node that boasts of any height: %t (%v)", read, err)
	}
}

// The network goes on while the first look is read up to: once the follower is past it, wallets sign.
func TestFirstLookIsPassed(t *testing.T) {
	network := sim.New(sim.Config{})

	registry, err := chain.NewRegistry(network)
	if err != nil {
		t.Fatal(err)
	}

	now := time.Now()
	db := &cursorDB{at: network.Mine(10), followed: true}
	manager := &Manager{config: Config{Now: func() time.Time { return now }}, db: db, registry: registry}

	defer manager.Begin()()

	tip := network.Mine(20)

	for _, want := range []bool{false, true} {
		read, err := manager.IsRead(t.Context(), "simnet", "wallet")
		if err != nil || read != want {
			t.Errorf("read up to %d, first seen at %d: %t (%v)", db.at.Height, tip.Height, read, err)
		}

		db.at, now = network.Mine(5), now.Add(lookEvery)
	}
}
