package bitcoin

import (
	"bytes"
	"context"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// A fork may remove a payer's transaction from the chain, and the pool of a node may refuse to take it back.
// Then every node refuses the transactions that we sent on top of it. Its bytes are in the pool of another
// node, or in the block that left the chain, which nodes keep. They are verified by their hash and sent
// again.

const (
	// maxParents bounds the number of parents that are sent again for a transaction of ours: the number of
	// unconfirmed ancestors that nodes accept.
	maxParents = 25
	// maxStaleBlocks bounds the blocks outside of a node's chain that are searched.
	maxStaleBlocks = 24
)

// resendParents sends the lost unconfirmed parents of a transaction again: those in neither the chain nor the
// pool of a node. It reports whether it sent one.
func (d *driver) resendParents(ctx context.Context, tx *wire.MsgTx) (sent bool, err error) {
	parents := &parentSearch{driver: d, seen: map[string]bool{}}
	if err := parents.collect(ctx, tx); err != nil {
		return false, err
	}

	for _, parent := range parents.found { // grandparents come first
		signed := chain.Signed{TxHash: parent.TxHash().String(), Raw: rawBytes(parent)}
		if d.send(ctx, signed) == nil {
			sent = true

			d.log.InfoContext(
				ctx, "sent a transaction again that one of ours rests on",
				"network", d.network.Slug, "tx_hash", signed.TxHash, "for", tx.TxHash().String(),
			)
		}
	}

	return sent, nil
}

// parentSearch looks for the lost unconfirmed parents of a transaction of ours.
type parentSearch struct {
	*driver
	seen  map[string]bool
	found []*wire.MsgTx
}

// collect adds the lost parents of a transaction to found, each after its own parents.
func (p *parentSearch) collect(ctx context.Context, tx *wire.MsgTx) error {
	for _, in := range tx.TxIn {
		id := in.PreviousOutPoint.Hash.String()
		if p.seen[id] || len(p.seen) >= maxParents {
			continue
		}

		p.seen[id] = true

		parent, err := p.lost(ctx, in.PreviousOutPoint)
		if err != nil {
			return err
		}

		if parent == nil {
			continue
		}

		if err := p.collect(ctx, parent); err != nil {
			return err
		}

		p.found = append(p.found, parent)
	}

	return nil
}

// lost returns the transaction that made an output, from a node's pool or from a block that left the chain;
// nil if it is in the chain, or not found.
func (p *parentSearch) lost(ctx context.Context, outpoint wire.OutPoint) (lost *wire.MsgTx, err error) {
	id := outpoint.Hash.String()

	for _, node := range p.nodes.Nodes {
		if p.nodes.Check(ctx, node) != nil || node.checkFork(ctx) != nil {
			continue
		}

		unspent := newCall("gettxout", id, outpoint.Index, false)
		if node.batchCall(ctx, unspent) == nil && unspent.err == nil && !unspent.isNull() {
			return nil, nil // in a block
		}

		lookup, err := node.lookUp(ctx, id)

		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			continue
		case lookup.blockHash != "":
			return nil, nil
		case lookup.tx != nil:
			lost = lookup.tx
		}
	}

	if lost != nil {
		return lost, nil
	}

	for _, node := range p.nodes.Nodes {
		if lost, err = p.staleTx(ctx, node, id); err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}

		if lost != nil {
			return lost, nil
		}
	}

	return nil, nil
}

// staleTx returns a transaction from a block that a node has outside of its chain; nil if there is none.
func (d *driver) staleTx(ctx context.Context, node *endpoint, id string) (*wire.MsgTx, error) {
	var tips []struct {
		Height uint64 `json:"height"`
		Hash   string `json:"hash"`
		Length uint64 `json:"branchlen"`
	}

	err := node.call(ctx, &tips, "getchaintips")
	if failover.RefusedWith(err, codeNoMethod) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	read := 0

	for _, tip := range tips {
		hash := tip.Hash

		for i := uint64(0); i < min(tip.Length, tip.Height) && read < maxStaleBlocks; i++ {
			read++

			block, err := d.rawBlock(ctx, node, tip.Height-i, hash)
			if err != nil {
				break // it has only the header
			}

			for _, tx := range block.Transactions {
				if tx.TxHash().String() == id {
					return tx, nil
				}
			}

			hash = block.Header.PrevBlock.String()
		}
	}

	return nil, ctx.Err()
}

// rawBytes returns the bytes of a transaction.
func rawBytes(tx *wire.MsgTx) []byte {
	var raw bytes.Buffer

	_ = tx.Serialize(&raw) // writes to memory

	return raw.Bytes()
}
