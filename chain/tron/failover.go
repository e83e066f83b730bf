package tron

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// refused is the kind of a node that answers with an error.
const refused failover.Kind = "refused"

// ask is failover.Set.Ask for as many rounds as configured.
func (d *Driver) ask(ctx context.Context, need uint64, f func(context.Context, *endpoint) error) error {
	return d.nodes.Ask(ctx, d.attempts, need, f)
}

// verify compares the endpoint's genesis block with the network's.
func (d *Driver) verify(ctx context.Context, e *endpoint) error {
	var genesis blockJSON

	found, err := e.post(ctx, full, "getblockbynum", numRequest{0}, &genesis)
	if err != nil {
		return err
	}

	if !found || !isLowerHex(genesis.BlockID, 64) {
		return e.Garbled("getblockbynum: it does not say what its genesis block is")
	}

	if got := genesis.BlockID[56:]; got != d.genesis {
		return &failover.Mismatch{
			Host:  e.Host,
			Shows: "serves the network tron:0x" + got,
			Want:  "tron:0x" + d.genesis,
		}
	}

	return nil
}

// checkHeight asks for the endpoint's newest height; below need it is failover.ErrLagging.
func checkHeight(ctx context.Context, e *endpoint, need uint64) error {
	tip, err := e.latest(ctx, full)
	if err == nil && tip.Height < need {
		err = failover.ErrLagging
	}

	return err
}
