package conformance_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

func TestDriverOfSeveralSims(t *testing.T) { conformance.TestDriver(t, severalHarness) }

// severalHarness is a network whose driver asks two nodes, and believes neither alone.
func severalHarness(t *testing.T) conformance.DriverHarness {
	t.Helper()

	c := sim.New(sim.Config{MaxOutputs: 8, Nodes: 2})
	h := simulated(t, c)
	h.Network = twoNodes{simControls{c}, &sim.NodeFaults{}}
	h.Absent = append(h.Absent, "control.Pruner")
	h.Driver = careful{c}

	if broken := severalMutants[os.Getenv(mutantVariable)]; broken.change != nil {
		h.Driver = broken.change(careful{c})
		h.Patience = 200 * time.Millisecond
	}

	return h
}

// careful is the simulated driver as one that checks what a node says about a hash against verified
// blocks. *sim.Chain hands on what the first node says, so that what stands above it can be tested.
type careful struct{ *sim.Chain }

// holding returns the canonical block at a height with what it has of a transaction.
func (d careful) holding(
	ctx context.Context,
	height uint64,
	hash string,
) (b chain.Block, spent []chain.Spend, transfers []chain.Transfer, err error) {
	blocks, err := d.Blocks(ctx, height, height)
	if err != nil {
		return b, nil, nil, err
	}

	for _, spend := range blocks[0].Spent {
		if spend.By == hash {
			spent = append(spent, spend)
		}
	}

	for _, t := range blocks[0].Transfers {
		if t.TxHash == hash {
			transfers = append(transfers, t)
		}
	}

	return blocks[0], spent, transfers, nil
}

func (d careful) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
	found, err := d.Chain.Transaction(ctx, hash)
	if err != nil || found.Block.IsZero() {
		return found, err
	}

	b, spent, transfers, err := d.holding(ctx, found.Block.Height, found.TxHash)
	if err != nil {
		return chain.FoundTx{}, err
	}

	if len(spent) == 0 || b.Hash != found.Block.Hash || len(transfers) > len(found.Transfers) {
		return chain.FoundTx{}, sim.Unavailable()
	}

	return found, nil
}

func (d careful) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	st, err := d.Chain.Status(ctx, tx)

	switch {
	case err != nil:
		return st, err
	case st.State == chain.TxIncluded:
		b, spent, transfers, err := d.holding(ctx, st.Block.Height, tx.TxHash)
		if err != nil || len(spent) == 0 || b.Hash != st.Block.Hash || len(transfers) > len(st.Transfers) {
			return chain.TxStatus{}, sim.Unavailable()
		}
	case st.State == chain.TxDead && st.Reason == chain.ReasonConflict:
		return d.excluded(ctx, tx, st)
	}

	return st, nil
}

// excluded answers TxDead only with the final block in which another transaction has the nonce.
func (d careful) excluded(ctx context.Context, tx chain.Signed, said chain.TxStatus) (chain.TxStatus, error) {
	head, err := d.Head(ctx)
	if err != nil {
		return chain.TxStatus{}, err
	}

	for height := uint64(0); height <= head.Final.Height; height++ {
		blocks, err := d.Blocks(ctx, height, height)
		if err != nil {
			return chain.TxStatus{}, err
		}

		for _, spend := range blocks[0].Spent {
			if spend.Sender == tx.From && spend.Nonce == tx.Nonce && spend.By != tx.TxHash {
				return said, nil
			}
		}
	}

	return chain.TxStatus{State: chain.TxUnknown}, nil
}

// twoNodes are the controls of a network with two nodes, the first of which can be made to lie.
type twoNodes struct {
	simControls
	faults *sim.NodeFaults
}

func (s twoNodes) Deny(_ context.Context, hash string) error {
	s.faults.Denies = append(s.faults.Denies, hash)
	s.c.SetNode(0, *s.faults)

	return nil
}

func (s twoNodes) HideLogs(_ context.Context, hash string) error {
	s.faults.EmptyReceipts = append(s.faults.EmptyReceipts, hash)
	s.c.SetNode(0, *s.faults)

	return nil
}

func (s twoNodes) ShowOther(_ context.Context, height uint64) error {
	s.faults.Blocks = map[uint64]chain.Block{height: {}}
	s.c.SetNode(0, *s.faults)

	return nil
}

func (s twoNodes) Silence(context.Context) error {
	s.c.SetNode(1, sim.NodeFaults{Syncing: true})
	return nil
}

func (s twoNodes) UpgradeHeaders(context.Context) error {
	for i := range 2 {
		s.c.SetNode(i, sim.NodeFaults{UnknownHeader: true})
	}

	return nil
}
