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

// Status looks one attempt up.
//
// No index of transactions is needed: while one of its coins is unspent a transaction is in no
// block, and once all are spent, the blocks since it was built (its lock time) are searched for
// what spent them. That is the transaction itself, or another one; once the other one's block is as
// deep as the network's rule asks, the attempt is dead (conflict). So it is when another
// transaction did so to one that it rests on. The search reads a day of blocks per call and goes on
// from there at the next; until it has an answer the transaction is unknown.
//
// Fee is the difference of inputs and outputs, which the signatures commit to: what Build computed.
func (d *Driver) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	tx, err := signedTx(signed)
	if err != nil {
		return chain.TxStatus{}, err
	}

	var status chain.TxStatus

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		lookup, err := e.lookUp(ctx, signed.TxHash)
		if err != nil {
			return err
		}

		if lookup.tx != nil && lookup.block.IsZero() {
			status = chain.TxStatus{State: chain.TxPooled}
			return nil
		}

		by, block := signed.TxHash, lookup.block
		if lookup.tx == nil {
			if by, block, err = d.findSpender(ctx, e, signed, tx); err != nil {
				return err
			}
		}

		if block.IsZero() {
			status = chain.TxStatus{State: chain.TxUnknown}
			return nil
		}

		final, err := d.isFinal(ctx, e, block)
		switch {
		case err != nil:
			return err
		case by == signed.TxHash:
			status = chain.TxStatus{
				State:     chain.TxIncluded,
				Block:     block,
				Final:     final,
				Fee:       signed.MaxFee,
				Transfers: d.transfers(tx, by, ""),
			}
		case final:
			status = chain.TxStatus{State: chain.TxDead, Death: chain.DeathConflict}
		default:
			status = chain.TxStatus{State: chain.TxUnknown}
		}

		return nil
	})
	if err != nil {
		return chain.TxStatus{}, err
	}

	return status, nil
}

// isFinal says that a block is as deep in the best chain as the network's rule asks.
func (d *Driver) isFinal(ctx context.Context, e *endpoint, block chain.Ref) (bool, error) {
	header, err := e.header(ctx, block.Hash)
	if err != nil {
		return false, err
	}

	if header.Confirmations < 1 {
		return false, e.Garbled("block %d left the chain while it was looked at", block.Height)
	}

	return uint64(header.Confirmations) >= d.network.Confirmations, nil
}

// spenderSearch is how far the search for what spent a transaction's coins got.
type spenderSearch struct {
	next  uint64    // height that is searched next
	by    string    // what spent one of the coins; "" while it is not found
	block chain.Ref // where that is
}

const (
	// searchPerCall bounds the blocks that one call of Status reads: about a day.
	searchPerCall = 144
	// searchMargin is how far below the lock time the search begins: the chain may have forked since.
	searchMargin = 12
	// maxSearches bounds what is remembered; beyond it searches begin anew.
	maxSearches = 10_000
)

// findSpender finds the canonical transaction that spends a coin of tx: tx itself, or a rival, of it or
// of what it rests on. A zero Ref: a coin is unspent and none of the others is known to be taken,
// or the search goes on.
func (d *Driver) findSpender(
	ctx context.Context,
	e *endpoint,
	signed chain.Signed,
	tx *wire.MsgTx,
) (string, chain.Ref, error) {
	id := signed.TxHash

	var outpoints []wire.OutPoint
	for _, in := range tx.TxIn {
		outpoints = append(outpoints, in.PreviousOutPoint)
	}

	for _, s := range signed.RestsOn {
		hash, err := chainhash.NewHashFromStr(s.Outpoint.TxHash)
		if err != nil {
			return "", chain.Ref{}, malformed(err)
		}

		outpoints = append(outpoints, wire.OutPoint{Hash: *hash, Index: s.Outpoint.Vout})
	}

	calls := make([]*rpcCall, len(outpoints))
	for i, u := range outpoints {
		calls[i] = newCall("gettxout", u.Hash.String(), u.Index, false)
	}

	if err := e.batchCall(ctx, calls...); err != nil {
		return "", chain.Ref{}, err
	}

	spent := map[wire.OutPoint]string{} // that are spent, or never were, with who may

	for i, call := range calls {
		if call.err != nil {
			return "", chain.Ref{}, call.err
		}

		if call.isNull() {
			allowed := ""
			if i >= len(tx.TxIn) {
				allowed = signed.RestsOn[i-len(tx.TxIn)].By
			}

			spent[outpoints[i]] = allowed
		}
	}

	if len(spent) == 0 {
		d.dropSearch(id)
		return "", chain.Ref{}, nil
	}

	search := d.searchOf(id, uint64(max(0, int64(tx.LockTime)-searchMargin)))
	if search.by != "" {
		header, err := e.header(ctx, search.block.Hash)
		if err == nil && header.Confirmations > 0 {
			return search.by, search.block, nil
		}

		if err != nil && !failover.RefusedWith(err, codeNotFound) {
			return "", chain.Ref{}, err
		}

		d.dropSearch(id) // its block left the chain

		return "", chain.Ref{}, nil
	}

	by, block, next, err := e.searchBlocks(ctx, spent, search.next)
	if err != nil {
		return "", chain.Ref{}, err
	}

	d.saveSearch(id, spenderSearch{next: next, by: by, block: block})

	return by, block, nil
}

// searchBlocks reads canonical blocks from a height on until one spends one of the coins, other than by
// the transaction that may. next is where to go on; at the tip that is 0, for a search from the
// start, as the chain may fork.
func (e *endpoint) searchBlocks(
	ctx context.Context,
	spent map[wire.OutPoint]string,
	from uint64,
) (by string, block chain.Ref, next uint64, err error) {
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
					return by, chain.Ref{Height: height, Hash: hash, Time: block.Header.Timestamp.UTC()}, 0, nil
				}
			}
		}
	}

	return "", chain.Ref{}, from + searchPerCall, nil
}

// rawBlock reads a block's bytes. The hash covers what they spend: a proof of death rests on it.
func (e *endpoint) rawBlock(ctx context.Context, height uint64, hash string) (*wire.MsgBlock, error) {
	if err := e.checkPruned(ctx, height); err != nil {
		return nil, err
	}

	var text string
	if err := e.call(ctx, &text, "getblock", hash, 0); err != nil {
		return nil, err
	}

	block := new(wire.MsgBlock)
	if err := block.Deserialize(
		hex.NewDecoder(strings.NewReader(text)),
	); err != nil || block.BlockHash().String() != hash ||
		len(block.Transactions) == 0 {
		return nil, e.Garbled("its block %s has another hash", e.Clean(hash))
	}

	ids, err := block.TxHashes()
	if err != nil || merkleRoot(ids) != block.Header.MerkleRoot {
		return nil, e.Garbled("its block %s has transactions that are not those of its header", e.Clean(hash))
	}

	return block, nil
}

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
