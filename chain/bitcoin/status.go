package bitcoin

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Status returns the state of a transaction of ours, without an index of transactions. Fee is that of Build,
// in satoshi: the signatures commit to it.
//
// While one of its coins is unspent, a transaction is in no block. Once all are spent, the blocks since its
// lock time are searched for the transaction that spends them. If it is another one and final by the
// network's rule, the transaction is dead (conflict). The same holds for the coins of its unconfirmed
// parents.
//
// A call searches at most searchPerCall blocks and the next one continues. Until the search has an answer
// the transaction is unknown.
func (d *Driver) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	tx, err := signedTx(signed)
	if err != nil {
		return chain.TxStatus{}, err
	}

	var status chain.TxStatus

	err = d.ask(ctx, func(ctx context.Context, node *endpoint) (err error) {
		status, err = d.statusAt(ctx, node, signed, tx)
		return err
	})
	if err != nil {
		return chain.TxStatus{}, err
	}

	return status, nil
}

// statusAt returns the state of a transaction at one node.
func (d *Driver) statusAt(
	ctx context.Context,
	node *endpoint,
	signed chain.Signed,
	tx *wire.MsgTx,
) (chain.TxStatus, error) {
	lookup, err := node.lookUp(ctx, signed.TxHash)
	if err != nil {
		return chain.TxStatus{}, err
	}

	if lookup.tx != nil && lookup.block.IsZero() {
		return chain.TxStatus{State: chain.TxPooled}, nil
	}

	spender, block := signed.TxHash, lookup.block
	if lookup.tx == nil {
		if spender, block, err = d.findSpender(ctx, node, signed, tx); err != nil {
			return chain.TxStatus{}, err
		}
	}

	if block.IsZero() {
		return chain.TxStatus{State: chain.TxUnknown}, nil
	}

	final, err := d.isFinal(ctx, node, block)
	switch {
	case err != nil:
		return chain.TxStatus{}, err
	case spender == signed.TxHash:
		return chain.TxStatus{
			State:     chain.TxIncluded,
			Block:     block,
			Final:     final,
			Fee:       signed.MaxFee,
			Transfers: d.transfers(tx, spender, ""),
		}, nil
	case final:
		return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonConflict}, nil
	default:
		return chain.TxStatus{State: chain.TxUnknown}, nil
	}
}

// isFinal reports whether a block has the confirmations that the network's rule asks for.
func (d *Driver) isFinal(ctx context.Context, node *endpoint, block chain.Ref) (bool, error) {
	header, err := node.header(ctx, block.Hash)
	if err != nil {
		return false, err
	}

	if header.Confirmations < 1 {
		return false, node.Garbled("block %d left the chain while it was looked at", block.Height)
	}

	return uint64(header.Confirmations) >= d.network.Confirmations, nil
}

// spenderSearch is the progress of a search for the transaction that spends a transaction's coins.
type spenderSearch struct {
	// next is the height to search next.
	next uint64
	// spender is the hash of what spends one of the coins, "" until it is found; block includes it.
	spender string
	block   chain.Ref
}

const (
	// searchPerCall is the number of blocks that one call of Status searches: about a day.
	searchPerCall = 144
	// searchMargin is the number of blocks below the lock time where a search starts, for reorgs since.
	searchMargin = 12
	// maxSearches bounds the searches that are remembered; beyond it all start over.
	maxSearches = 10_000
)

// findSpender returns the canonical transaction that spends a coin of tx, with its block: tx itself, or one
// that conflicts with it or with its unconfirmed parents. The Ref is zero while no such transaction is known.
func (d *Driver) findSpender(
	ctx context.Context,
	node *endpoint,
	signed chain.Signed,
	tx *wire.MsgTx,
) (string, chain.Ref, error) {
	id := signed.TxHash

	spent, err := node.spentOutputs(ctx, signed, tx)
	if err != nil {
		return "", chain.Ref{}, err
	}

	if len(spent) == 0 {
		d.dropSearch(id)
		return "", chain.Ref{}, nil
	}

	search := d.searchOf(id, uint64(max(0, int64(tx.LockTime)-searchMargin)))
	if search.spender != "" {
		header, err := node.header(ctx, search.block.Hash)
		if err == nil && header.Confirmations > 0 {
			return search.spender, search.block, nil
		}

		if err != nil && !failover.RefusedWith(err, codeNotFound) {
			return "", chain.Ref{}, err
		}

		d.dropSearch(id) // its block left the chain

		return "", chain.Ref{}, nil
	}

	spender, block, next, err := node.searchBlocks(ctx, spent, search.next)
	if err != nil {
		return "", chain.Ref{}, err
	}

	d.saveSearch(id, spenderSearch{next: next, spender: spender, block: block})

	return spender, block, nil
}

// spentOutputs returns the outputs that tx and its unconfirmed parents spend and that are not unspent in a
// block, each with the hash of the parent that may spend it ("" for the inputs of tx).
func (e *endpoint) spentOutputs(
	ctx context.Context,
	signed chain.Signed,
	tx *wire.MsgTx,
) (map[wire.OutPoint]string, error) {
	var outpoints []wire.OutPoint
	for _, in := range tx.TxIn {
		outpoints = append(outpoints, in.PreviousOutPoint)
	}

	for _, spend := range signed.UnconfirmedParents {
		hash, err := chainhash.NewHashFromStr(spend.Outpoint.TxHash)
		if err != nil {
			return nil, malformed(err)
		}

		outpoints = append(outpoints, wire.OutPoint{Hash: *hash, Index: spend.Outpoint.Vout})
	}

	calls := make([]*rpcCall, len(outpoints))
	for i, outpoint := range outpoints {
		calls[i] = newCall("gettxout", outpoint.Hash.String(), outpoint.Index, false)
	}

	if err := e.batchCall(ctx, calls...); err != nil {
		return nil, err
	}

	spent := map[wire.OutPoint]string{}

	for i, call := range calls {
		if call.err != nil {
			return nil, call.err
		}

		if call.isNull() {
			allowed := ""
			if i >= len(tx.TxIn) {
				allowed = signed.UnconfirmedParents[i-len(tx.TxIn)].By
			}

			spent[outpoints[i]] = allowed
		}
	}

	return spent, nil
}

// searchBlocks searches canonical blocks, from a height on, for a transaction that spends one of the outputs
// and is not the one allowed to. next is the height to continue from. At the tip it is 0, for a search from
// the start, since the chain may reorganize.
func (e *endpoint) searchBlocks(
	ctx context.Context,
	spent map[wire.OutPoint]string,
	from uint64,
) (spender string, block chain.Ref, next uint64, err error) {
	for height := from; height < from+searchPerCall; height++ {
		hash, err := e.hashAt(ctx, height)
		if errors.Is(err, fault.NotFound) {
			return "", chain.Ref{}, 0, nil
		}

		if err != nil {
			return "", chain.Ref{}, 0, err
		}

		block, err := e.rawBlock(ctx, height, hash)
		if err != nil {
			return "", chain.Ref{}, 0, err
		}

		for _, tx := range block.Transactions {
			for _, in := range tx.TxIn {
				allowed, searched := spent[in.PreviousOutPoint]
				if !searched {
					continue
				}

				if by := tx.TxHash().String(); by != allowed {
					return by, chain.Ref{
						Height: height,
						Hash:   hash,
						Time:   block.Header.Timestamp.UTC(),
					}, 0, nil
				}
			}
		}
	}

	return "", chain.Ref{}, from + searchPerCall, nil
}

// rawBlock returns the block of a hash, verified by header hash and Merkle root: it proves conflicts.
func (e *endpoint) rawBlock(ctx context.Context, height uint64, hash string) (*wire.MsgBlock, error) {
	if err := e.checkPruned(ctx, height); err != nil {
		return nil, err
	}

	var text string
	if err := e.call(ctx, &text, "getblock", hash, 0); err != nil {
		return nil, err
	}

	block := new(wire.MsgBlock)

	err := block.Deserialize(hex.NewDecoder(strings.NewReader(text)))
	if err != nil || block.BlockHash().String() != hash || len(block.Transactions) == 0 {
		return nil, e.Garbled("its block %s has another hash", e.Clean(hash))
	}

	ids, err := block.TxHashes()
	if err != nil || merkleRoot(ids) != block.Header.MerkleRoot {
		return nil, e.Garbled("its block %s has transactions that are not those of its header", e.Clean(hash))
	}

	return block, nil
}

// searchOf returns the search for a transaction, or a new one from a height.
func (d *Driver) searchOf(id string, from uint64) spenderSearch {
	d.mu.Lock()
	defer d.mu.Unlock()

	if p := d.searches[id]; p != nil {
		search := *p
		search.next = max(search.next, from)

		return search
	}

	return spenderSearch{next: from}
}

func (d *Driver) saveSearch(id string, search spenderSearch) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if len(d.searches) >= maxSearches {
		clear(d.searches)
	}

	d.searches[id] = &search
}

func (d *Driver) dropSearch(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()

	delete(d.searches, id)
}
