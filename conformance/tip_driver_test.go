package conformance_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// tipped is the simulated driver with a call for its newest block alone.
type tipped struct {
	*sim.Chain
	read func(ctx context.Context, head func(context.Context) (chain.Head, error)) (chain.Ref, error)
}

func (d tipped) Tip(ctx context.Context) (chain.Ref, error) { return d.read(ctx, d.Head) }

var _ chain.TipReader = tipped{}

// readTip returns what Head returns.
func readTip(ctx context.Context, head func(context.Context) (chain.Head, error)) (chain.Ref, error) {
	h, err := head(ctx)

	return h.Tip, err
}

// tipMutants break a sentence of chain.TipReader.
var tipMutants = map[string]struct {
	fails string
	read  func(ctx context.Context, head func(context.Context) (chain.Head, error)) (chain.Ref, error)
}{
	"its tip is the safe block": {
		"TipReader/TipIsThatOfHead",
		func(ctx context.Context, head func(context.Context) (chain.Head, error)) (chain.Ref, error) {
			h, err := head(ctx)
			return h.Safe, err
		},
	},
	"its tip has no time": {
		"TipReader/TipIsThatOfHead",
		func(ctx context.Context, head func(context.Context) (chain.Head, error)) (chain.Ref, error) {
			h, err := head(ctx)
			return chain.Ref{Height: h.Tip.Height, Hash: h.Tip.Hash}, err
		},
	},
	"a tip without a node is none": {
		"Calls/NoNodeIsUnavailable",
		func(ctx context.Context, head func(context.Context) (chain.Head, error)) (chain.Ref, error) {
			h, _ := head(ctx)
			return h.Tip, nil
		},
	},
}

func TestDriverThatReadsItsTipAlone(t *testing.T) {
	conformance.TestDriver(t, func(t *testing.T) conformance.DriverHarness {
		c := sim.New(sim.Config{MaxOutputs: 8})
		h := simulated(t, c)

		read := readTip
		if broken := tipMutants[os.Getenv(mutantVariable)]; broken.read != nil {
			read, h.Patience = broken.read, 200*time.Millisecond
		}

		h.Driver, h.Network = tipped{c, read}, simControls{c}
		h.Unreachable = tipped{h.Unreachable.(*sim.Chain), read}
		h.Absent = slices.DeleteFunc(h.Absent, func(c string) bool { return c == "chain.TipReader" })
		h.Absent = append(h.Absent, "control.NodeFaker", "control.Pruner")

		return h
	})
}
