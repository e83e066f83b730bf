package bitcoin

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// headerJSON is an answer of getblockheader.
type headerJSON struct {
	Hash string `json:"hash"`
	// Confirmations is the number of blocks of the best chain at or above this one; -1 when it is not in
	// that chain.
	Confirmations int64 `json:"confirmations"`
	Height        int64 `json:"height"`
	Time          int64 `json:"time"`
	// Work is the total work of the chain up to the block, in hexadecimal, as the node claims it.
	Work string `json:"chainwork"`
}

// header returns the header with a hash, also of a block outside of the best chain.
func (e *endpoint) header(ctx context.Context, hash string) (headerJSON, error) {
	var header headerJSON

	err := e.call(ctx, &header, "getblockheader", hash, true)
	if failover.RefusedWith(err, codeInternal) {
		return headerJSON{Hash: hash, Confirmations: -1}, nil // btcd, of a block outside of the best chain
	}

	if err != nil {
		return headerJSON{}, err
	}

	if header.Hash != hash || header.Height < 0 || header.Time <= 0 {
		return headerJSON{}, e.Garbled(
			"asked for the header of block %s, it answered that of %s",
			hash, e.Clean(header.Hash),
		)
	}

	return header, nil
}

// rawHeader returns the header with a hash, verified against it.
func (e *endpoint) rawHeader(ctx context.Context, hash string) (*wire.BlockHeader, error) {
	var text string
	if err := e.call(ctx, &text, "getblockheader", hash, false); err != nil {
		return nil, err
	}

	return e.decodeHeader(hash, text)
}

// decodeHeader returns the header in an answer of getblockheader, verified against its hash. A header longer
// than Bitcoin's, as a hard fork may have, is a *failover.Mismatch.
func (e *endpoint) decodeHeader(hash, text string) (*wire.BlockHeader, error) {
	if len(text) > 2*wire.MaxBlockHeaderPayload {
		return nil, &failover.Mismatch{
			Host:  e.Host,
			Shows: "follows another chain: its block " + e.Clean(hash) + " has a header of another form",
			Want:  "Bitcoin's (run Bitcoin Core)",
		}
	}

	header := new(wire.BlockHeader)

	err := header.Deserialize(hex.NewDecoder(strings.NewReader(text)))
	if err != nil || header.BlockHash().String() != hash {
		return nil, e.Garbled("asked for the header of block %s, it answered another", e.Clean(hash))
	}

	return header, nil
}

// ref returns the reference to the block.
func (h headerJSON) ref() chain.Ref {
	return chain.Ref{Height: uint64(h.Height), Hash: h.Hash, Time: time.Unix(h.Time, 0).UTC()}
}

// Head returns the newest block of the best chain. Bitcoin has no safe or final blocks. It passes over a node
// that is syncing, or that another node proves to be behind or on a chain with less work; see checkChain.
func (d *driver) Head(ctx context.Context) (chain.Head, error) {
	var head chain.Head

	err := d.ask(ctx, func(ctx context.Context, node *endpoint) error {
		header, err := node.tip(ctx)
		if err != nil {
			return err
		}

		head.Tip = header.ref()

		if err = d.checkChain(ctx, node, header); err == nil {
			node.Note(chain.NodeForked, false, "")
		}

		return err
	})
	if err != nil {
		return chain.Head{}, err
	}

	return head, nil
}

// tip returns the header of the newest block of the best chain. It is an error at a node that is syncing,
// which may have been restored since it was verified, or that follows a hard fork.
func (e *endpoint) tip(ctx context.Context) (headerJSON, error) {
	best, info := newCall("getbestblockhash"), newCall("getblockchaininfo")
	if err := e.batchCall(ctx, best, info); err != nil {
		return headerJSON{}, err
	}

	if _, err := e.readState(info); err != nil {
		return headerJSON{}, err
	}

	var hash string
	if err := best.decode(e, &hash); err != nil {
		return headerJSON{}, err
	}

	header, err := e.header(ctx, hash)
	if err == nil && header.Confirmations < 1 {
		err = e.Garbled("its newest block left the chain while it was read")
	}

	if err == nil {
		_, err = e.rawHeader(ctx, hash)
	}

	return header, err
}

// RefAt returns the canonical block at a height. It errors:
//   - fault.NotFound (block_unknown): the height is above the tip
//   - fault.Stopped (node_pruned): every node has pruned it
func (d *driver) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	var ref chain.Ref

	err := d.ask(ctx, func(ctx context.Context, node *endpoint) error {
		if err := node.checkPruned(ctx, height); err != nil {
			return err
		}

		hash, err := node.hashAt(ctx, height)
		if err != nil {
			return err
		}

		header, err := node.header(ctx, hash)
		if err == nil && (uint64(header.Height) != height || header.Confirmations < 1) {
			err = node.Garbled("the chain moved while block %d was read", height)
		}

		ref = header.ref()

		return err
	})
	if err != nil {
		return chain.Ref{}, err
	}

	return ref, nil
}

// AgreedHead returns the newest block that two nodes have.
func (d *driver) AgreedHead(ctx context.Context) (chain.Head, error) {
	return agree.Head(ctx, d.nodes, agree.HeadReader[*endpoint]{
		Head: func(ctx context.Context, node *endpoint) (head chain.Head, err error) {
			err = d.verified(func(ctx context.Context, node *endpoint) error {
				header, err := node.tip(ctx)
				head.Tip = header.ref()

				return err
			})(ctx, node)

			return head, err
		},
		At: refAt,
	})
}

// AgreedBlock returns a block that two nodes have, verified as by Blocks. See chain.Agreed.
func (d *driver) AgreedBlock(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	return agree.VerifiedBlock(
		ctx, d.nodes, d.config.Attempts, at, hashes,
		func(ctx context.Context, node *endpoint, height uint64) (ref chain.Ref, err error) {
			err = d.verified(func(ctx context.Context, node *endpoint) (err error) {
				ref.Hash, err = node.hashAt(ctx, height)
				return err
			})(ctx, node)

			return ref, err
		},
		func(ctx context.Context, node *endpoint) (chain.Block, error) {
			block, _, err := d.readBlock(ctx, node, at.Height, at.Hash)
			return block, err
		},
	)
}

// Nodes returns the state of each configured node.
func (d *driver) Nodes() []chain.NodeState { return d.nodes.States() }

// refAt returns one node's block at a height.
func refAt(ctx context.Context, node *endpoint, height uint64) (chain.Ref, error) {
	hash, err := node.hashAt(ctx, height)
	if err != nil {
		return chain.Ref{}, err
	}

	header, err := node.header(ctx, hash)

	return header.ref(), err
}

// hashAt returns the hash of the canonical block at a height. A height above the tip is fault.NotFound.
func (e *endpoint) hashAt(ctx context.Context, height uint64) (string, error) {
	if height > math.MaxInt32 {
		return "", aboveTip(height)
	}

	var hash string

	err := e.call(ctx, &hash, "getblockhash", height)
	if failover.RefusedWith(err, codeOutOfRange) {
		return "", aboveTip(height)
	}

	if failover.RefusedWith(err, codeMisc) { // btcd uses this code for every refusal
		var tip uint64
		if e.call(ctx, &tip, "getblockcount") == nil && height > tip {
			return "", aboveTip(height)
		}
	}

	return hash, err
}

func aboveTip(height uint64) error {
	return fault.New(fault.NotFound, "block_unknown", "block %d is above the tip", height)
}

// checkPruned returns failover.ErrPruned for a height that the node has pruned.
func (e *endpoint) checkPruned(ctx context.Context, height uint64) error {
	if !e.pruned.Load() {
		return nil
	}

	var info struct {
		Lowest uint64 `json:"pruneheight"`
	}
	if err := e.call(ctx, &info, "getblockchaininfo"); err != nil {
		return err
	}

	if height < info.Lowest {
		return fmt.Errorf(
			"node %s, block %d, its oldest is %d: %w",
			e.Host, height, info.Lowest, failover.ErrPruned,
		)
	}

	return nil
}
