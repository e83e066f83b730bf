package ingest

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// What blocks showed is read anew when it is too old for a batch that needs it: reading all of them may take longer
// than it is used. What no batch needs is dropped.
func TestOldReadingsAreReadAnewWhereNeeded(t *testing.T) {
	network := sim.New(sim.Config{Nodes: 1})
	needed, other := network.Mine(1), network.Mine(1)
	slug := network.Network().Slug

	registry, err := chain.NewRegistry(network)
	if err != nil {
		t.Fatal(err)
	}

	now := time.Unix(1e9, 0)
	s := New(Config{Registry: registry, Now: func() time.Time { return now }})

	for _, at := range []chain.Ref{needed, other} {
		s.suspectBlock(slug, at, "x")
	}

	read := func() map[string]rereadBlock {
		return s.rereadBlocks(t.Context(), slug, map[string]bool{needed.Hash: true})
	}

	if blocks := read(); len(blocks) != 2 {
		t.Fatalf("%d blocks were read", len(blocks))
	}

	now = now.Add(rereadFor + time.Second)

	blocks := read()
	if len(blocks) != 1 || blocks[needed.Hash].until != now.UTC().Add(rereadFor) {
		t.Errorf("later they are %+v", blocks)
	}
}
