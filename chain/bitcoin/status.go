package bitcoin

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Status returns the state of a transaction of ours, without an index of transactions. Fee is that of Build,
// in satoshi: the signatures commit to it.
//
// A transaction is included when a verified block of the best chain holds it. A node with an index reports
// that block. Otherwise, once a coin of the transaction is spent, the blocks since its lock time are
// searched. A call searches at most searchPerCall blocks and the next one continues.
//
// A transaction that a person acknowledges has no bytes here. Its outputs are then those in its block, and
// its fee is the sum of its inputs less these. It is found by a node with an index, or by the coins that are
// known to be its inputs.
//
// Any other transaction is pooled or unknown. Status never answers TxDead, because a node's answer about a
// hash or a coin proves nothing.
func (d *driver) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	tx, err := expectedTx(signed)
	if err != nil {
		return chain.TxStatus{}, err
	}

	return agree.VerifiedStatus(
		ctx, d.nodes, d.config.Attempts,
		func(ctx context.Context, node *endpoint) (status chain.TxStatus, err error) {
			err = d.verified(func(ctx context.Context, node *endpoint) (err error) {
				status, err = d.statusAt(ctx, node, signed, tx)
				return err
			})(ctx, node)

			return status, err
		},
	)
}

// expectedTx returns our transaction. Without its bytes, it returns the parts that are known.
func expectedTx(signed chain.Signed) (*wire.MsgTx, error) {
	if len(signed.Raw) > 0 {
		return signedTx(signed)
	}

	tx := wire.NewMsgTx(wire.TxVersion)

	for _, in := range signed.Inputs {
		hash, err := chainhash.NewHashFromStr(in.TxHash)
		if err != nil {
			return nil, fault.Wrap(
				err, fault.Invalid, "transaction_malformed", "an input of transaction %q has no hash",
				truncate(signed.TxHash),
			)
		}

		tx.AddTxIn(wire.NewTxIn(wire.NewOutPoint(hash, in.Vout), nil, nil))
	}

	return tx, nil
}

// statusAt returns the state of a transaction at one node.
func (d *driver) statusAt(
	ctx context.Context,
	node *endpoint,
	signed chain.Signed,
	tx *wire.MsgTx,
) (chain.TxStatus, error) {
	unknown := chain.TxStatus{State: chain.TxUnknown}

	search, confirmations, err := d.findIncluded(ctx, node, signed.TxHash)
	if err != nil {
		return chain.TxStatus{}, err
	}

	if search.spender == "" {
		lookup, err := node.lookUp(ctx, signed.TxHash)

		switch {
		case err != nil:
			return chain.TxStatus{}, err
		case lookup.tx != nil && lookup.blockHash == "":
			return chain.TxStatus{State: chain.TxPooled}, nil
		case lookup.tx != nil:
			search.spender = signed.TxHash
			search.block, err = d.includingBlock(ctx, node, signed.TxHash, lookup.blockHash)
		default:
			search, err = d.searchSpender(ctx, node, signed.TxHash, tx)
		}

		if err != nil || search.spender == "" {
			return unknown, err
		}

		d.saveSearch(signed.TxHash, search)

		if confirmations, err = node.confirmations(ctx, search.block); err != nil {
			return chain.TxStatus{}, err
		}
	}

	if search.spender != signed.TxHash || confirmations == 0 {
		return unknown, nil
	}

	fee := signed.MaxFee

	if len(signed.Raw) == 0 {
		if tx, fee, err = d.includedTx(ctx, node, signed.TxHash, search.block); err != nil {
			return chain.TxStatus{}, err
		}
	}

	return chain.TxStatus{
		State:     chain.TxIncluded,
		Block:     search.block,
		Final:     confirmations >= d.network.Confirmations,
		Fee:       fee,
		Transfers: d.transfers(tx, signed.TxHash, ""),
	}, nil
}

// includedTx returns a transaction of a block whose bytes are not known here, and the fee that it paid, in
// satoshi.
func (d *driver) includedTx(
	ctx context.Context,
	node *endpoint,
	id string,
	block chain.Ref,
) (*wire.MsgTx, chain.Amount, error) {
	tx, err := d.txInBlock(ctx, node, id, block)
	if err != nil {
		return nil, chain.Amount{}, err
	}

	fee, err := d.feePaid(ctx, node, tx, block)

	return tx, fee, err
}

// txInBlock reads and verifies a block again and returns a transaction in it.
func (d *driver) txInBlock(
	ctx context.Context,
	node *endpoint,
	id string,
	at chain.Ref,
) (*wire.MsgTx, error) {
	block, err := d.rawBlock(ctx, node, at.Height, at.Hash)
	if err != nil {
		return nil, err
	}

	for _, tx := range block.Transactions {
		if tx.TxHash().String() == id {
			return tx, nil
		}
	}

	return nil, node.Garbled("block %d does not hold transaction %s", at.Height, id)
}

// inclusionSearch is the progress of a search for the block that includes a transaction.
type inclusionSearch struct {
	// next is the height to search next.
	next uint64
	// spender is the hash of the transaction that spends a coin of the searched one, "" until it is found:
	// the searched transaction itself, or another one. block is the verified block that includes it.
	spender string
	block   chain.Ref
}

const (
	// searchPerCall is the number of blocks that one call of Status searches: about a day.
	searchPerCall = 144
	// searchMargin is the number of blocks below the lock time at which a search starts, for reorgs since
	// then.
	searchMargin = 12
	// maxSearches bounds the searches that are remembered; beyond it all searches start over.
	maxSearches = 10_000
)

// findIncluded returns the finished search of a transaction if the block that it found is in the node's best
// chain. Otherwise the returned search has no spender.
func (d *driver) findIncluded(
	ctx context.Context,
	node *endpoint,
	id string,
) (search inclusionSearch, confirmations uint64, err error) {
	search = d.searchOf(id, 0)
	if search.spender == "" {
		return search, 0, nil
	}

	confirmations, err = node.confirmations(ctx, search.block)
	if err != nil {
		return inclusionSearch{}, 0, err
	}

	if confirmations == 0 { // its block left the chain
		d.dropSearch(id)
		return inclusionSearch{}, 0, nil
	}

	return search, confirmations, nil
}

// confirmations returns the number of blocks of the best chain at or above a block; 0 if the block is not in
// that chain.
func (e *endpoint) confirmations(ctx context.Context, block chain.Ref) (uint64, error) {
	hash, err := e.hashAt(ctx, block.Height)
	if errors.Is(err, fault.NotFound) || err == nil && hash != block.Hash {
		return 0, nil
	}

	if err != nil {
		return 0, err
	}

	header, err := e.header(ctx, block.Hash)
	if err != nil {
		return 0, err
	}

	return uint64(max(0, header.Confirmations)), nil
}

// searchSpender searches blocks for the transaction that spends a coin of a transaction, once the node
// reports one as spent. The returned search has no spender until it is found.
func (d *driver) searchSpender(
	ctx context.Context,
	node *endpoint,
	id string,
	tx *wire.MsgTx,
) (inclusionSearch, error) {
	spent, err := node.spentInputs(ctx, tx)
	if err != nil {
		return inclusionSearch{}, err
	}

	if len(spent) == 0 {
		d.dropSearch(id)
		return inclusionSearch{}, nil
	}

	search := d.searchOf(id, uint64(max(0, int64(tx.LockTime)-searchMargin)))

	search, err = d.searchBlocks(ctx, node, spent, search.next)
	if err != nil {
		return inclusionSearch{}, err
	}

	d.saveSearch(id, search)

	return search, nil
}

// spentInputs returns the outputs that a transaction spends, except those that are unspent in a block.
func (e *endpoint) spentInputs(ctx context.Context, tx *wire.MsgTx) (map[wire.OutPoint]bool, error) {
	calls := make([]*rpcCall, len(tx.TxIn))
	for i, in := range tx.TxIn {
		outpoint := in.PreviousOutPoint
		calls[i] = newCall("gettxout", outpoint.Hash.String(), outpoint.Index, false)
	}

	if err := e.batchCall(ctx, calls...); err != nil {
		return nil, err
	}

	spent := map[wire.OutPoint]bool{}

	for i, call := range calls {
		if call.err != nil {
			return nil, call.err
		}

		if call.isNull() {
			spent[tx.TxIn[i].PreviousOutPoint] = true
		}
	}

	return spent, nil
}

// searchBlocks searches canonical blocks, from a height on, for a transaction that spends one of the outputs.
// At the tip the search starts over, since the chain may reorganize.
func (d *driver) searchBlocks(
	ctx context.Context,
	node *endpoint,
	spent map[wire.OutPoint]bool,
	from uint64,
) (inclusionSearch, error) {
	for height := from; height < from+searchPerCall; height++ {
		hash, err := node.hashAt(ctx, height)
		if errors.Is(err, fault.NotFound) {
			return inclusionSearch{}, nil
		}

		if err != nil {
			return inclusionSearch{}, err
		}

		block, err := d.rawBlock(ctx, node, height, hash)
		if err != nil {
			return inclusionSearch{}, err
		}

		for _, tx := range block.Transactions {
			for _, in := range tx.TxIn {
				if spent[in.PreviousOutPoint] {
					found := inclusionSearch{spender: tx.TxHash().String(), block: blockRef(height, block)}
					return found, nil
				}
			}
		}
	}

	return inclusionSearch{next: from + searchPerCall}, nil
}

// rawBlock returns the block with a hash, verified against it; see blockProblem.
func (d *driver) rawBlock(
	ctx context.Context,
	node *endpoint,
	height uint64,
	hash string,
) (*wire.MsgBlock, error) {
	if err := node.checkPruned(ctx, height); err != nil {
		return nil, err
	}

	var text string

	err := node.call(ctx, &text, "getblock", hash, 0)
	if failover.RefusedWith(err, codeMisc) {
		if pruned := node.checkPruned(ctx, height); pruned != nil { // meanwhile
			return nil, pruned
		}
	}

	if err != nil {
		return nil, err
	}

	block := new(wire.MsgBlock)
	if err := block.Deserialize(hex.NewDecoder(strings.NewReader(text))); err != nil {
		return nil, node.Garbled("its block %s is none", node.Clean(hash))
	}

	problem := blockProblem(d.params, height, hash, &block.Header, block.Transactions)
	if problem != "" {
		return nil, node.Garbled("its block %s %s", node.Clean(hash), problem)
	}

	return block, nil
}

// searchOf returns the search for a transaction, or a new one from a height.
func (d *driver) searchOf(id string, from uint64) inclusionSearch {
	d.mu.Lock()
	defer d.mu.Unlock()

	if p := d.searches[id]; p != nil {
		search := *p
		search.next = max(search.next, from)

		return search
	}

	return inclusionSearch{next: from}
}

func (d *driver) saveSearch(id string, search inclusionSearch) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if len(d.searches) >= maxSearches {
		clear(d.searches)
	}

	d.searches[id] = &search
}

func (d *driver) dropSearch(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()

	delete(d.searches, id)
}
