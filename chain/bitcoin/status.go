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
func (d *Driver) Status(ctx context.Context, t chain.Signed) (chain.TxStatus, error) {
	tx, err := signedTx(t)
	if err != nil {
		return chain.TxStatus{}, err
	}

	var status chain.TxStatus

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		s, err := e.sight(ctx, t.TxHash)
		if err != nil {
			return err
		}

		if s.tx != nil && s.block.IsZero() {
			status = chain.TxStatus{State: chain.TxPooled}
			return nil
		}

		by, block := t.TxHash, s.block
		if s.tx == nil {
			if by, block, err = d.spender(ctx, e, t, tx); err != nil {
				return err
			}
		}

		if block.IsZero() {
			status = chain.TxStatus{State: chain.TxUnknown}
			return nil
		}

		final, err := d.final(ctx, e, block)
		switch {
		case err != nil:
			return err
		case by == t.TxHash:
			status = chain.TxStatus{
				State:     chain.TxIncluded,
				Block:     block,
				Final:     final,
				Fee:       t.MaxFee,
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

// final says that a block is as deep in the best chain as the network's rule asks.
func (d *Driver) final(ctx context.Context, e *endpoint, block chain.Ref) (bool, error) {
	h, err := e.header(ctx, block.Hash)
	if err != nil {
		return false, err
	}

	if h.Confirmations < 1 {
		return false, e.Garbled("block %d left the chain while it was looked at", block.Height)
	}

	return uint64(h.Confirmations) >= d.network.Confirmations, nil
}

// place is how far the search for what spent a transaction's coins got.
type place struct {
	next  uint64    // height that is searched next
	by    string    // what spent one of the coins; "" while it is not found
	block chain.Ref // where that is
}

const (
	// searchPerCall bounds the blocks that one call of Status reads: about a day.
	searchPerCall = 144
	// searchMargin is how far below the lock time the search begins: the chain may have forked since.
	searchMargin = 12
	// maxPlaces bounds what is remembered; beyond it searches begin anew.
	maxPlaces = 10_000
)

// spender finds the canonical transaction that spends a coin of tx: tx itself, or a rival, of it or
// of what it rests on. A zero Ref: a coin is unspent and none of the others is known to be taken,
// or the search goes on.
func (d *Driver) spender(
	ctx context.Context,
	e *endpoint,
	t chain.Signed,
	tx *wire.MsgTx,
) (string, chain.Ref, error) {
	id := t.TxHash

	var uses []wire.OutPoint
	for _, in := range tx.TxIn {
		uses = append(uses, in.PreviousOutPoint)
	}

	for _, s := range t.RestsOn {
		hash, err := chainhash.NewHashFromStr(s.Outpoint.TxHash)
		if err != nil {
			return "", chain.Ref{}, malformed(err)
		}

		uses = append(uses, wire.OutPoint{Hash: *hash, Index: s.Outpoint.Vout})
	}

	calls := make([]*call, len(uses))
	for i, u := range uses {
		calls[i] = newCall("gettxout", u.Hash.String(), u.Index, false)
	}

	if err := e.do(ctx, calls...); err != nil {
		return "", chain.Ref{}, err
	}

	coins := map[wire.OutPoint]string{} // that are spent, or never were, with who may

	for i, c := range calls {
		if c.err != nil {
			return "", chain.Ref{}, c.err
		}

		if c.null() {
			may := ""
			if i >= len(tx.TxIn) {
				may = t.RestsOn[i-len(tx.TxIn)].By
			}

			coins[uses[i]] = may
		}
	}

	if len(coins) == 0 {
		d.forget(id)
		return "", chain.Ref{}, nil
	}

	p := d.placeOf(id, uint64(max(0, int64(tx.LockTime)-searchMargin)))
	if p.by != "" {
		h, err := e.header(ctx, p.block.Hash)
		if err == nil && h.Confirmations > 0 {
			return p.by, p.block, nil
		}

		if err != nil && !failover.RefusedWith(err, codeNotFound) {
			return "", chain.Ref{}, err
		}

		d.forget(id) // its block left the chain

		return "", chain.Ref{}, nil
	}

	by, block, next, err := e.search(ctx, coins, p.next)
	if err != nil {
		return "", chain.Ref{}, err
	}

	d.keep(id, place{next: next, by: by, block: block})

	return by, block, nil
}

// search reads canonical blocks from a height on until one spends one of the coins, other than by
// the transaction that may. next is where to go on; at the tip that is 0, for a search from the
// start, as the chain may fork.
func (e *endpoint) search(
	ctx context.Context,
	coins map[wire.OutPoint]string,
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

		b, err := e.rawBlock(ctx, height, hash)
		if err != nil {
			return "", chain.Ref{}, 0, err
		}

		for _, tx := range b.Transactions {
			for _, in := range tx.TxIn {
				may, searched := coins[in.PreviousOutPoint]
				if !searched {
					continue
				}

				if by := tx.TxHash().String(); by != may {
					return by, chain.Ref{Height: height, Hash: hash, Time: b.Header.Timestamp.UTC()}, 0, nil
				}
			}
		}
	}

	return "", chain.Ref{}, from + searchPerCall, nil
}

// rawBlock reads a block's bytes. The hash covers what they spend: a proof of death rests on it.
func (e *endpoint) rawBlock(ctx context.Context, height uint64, hash string) (*wire.MsgBlock, error) {
	if err := e.unpruned(ctx, height); err != nil {
		return nil, err
	}

	var text string
	if err := e.one(ctx, &text, "getblock", hash, 0); err != nil {
		return nil, err
	}

	b := new(wire.MsgBlock)
	if err := b.Deserialize(
		hex.NewDecoder(strings.NewReader(text)),
	); err != nil || b.BlockHash().String() != hash ||
		len(b.Transactions) == 0 {
		return nil, e.Garbled("its block %s has another hash", e.Clean(hash))
	}

	ids, err := b.TxHashes()
	if err != nil || merkleRoot(ids) != b.Header.MerkleRoot {
		return nil, e.Garbled("its block %s has transactions that are not those of its header", e.Clean(hash))
	}

	return b, nil
}

func (d *Driver) placeOf(id string, from uint64) place {
	d.mu.Lock()
	defer d.mu.Unlock()

	if p := d.places[id]; p != nil {
		p := *p
		p.next = max(p.next, from)

		return p
	}

	return place{next: from}
}

func (d *Driver) keep(id string, p place) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if len(d.places) >= maxPlaces {
		clear(d.places)
	}

	d.places[id] = &p
}

func (d *Driver) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()

	delete(d.places, id)
}
