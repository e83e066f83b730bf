package evm

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Shortcuts save calls: what they answer is verified, or compared, as is what takes their place. A node that refuses
// one, with whatever code or with null, is asked the longer way.

// shortcut is a call that nodes may refuse.
type shortcut string

const (
	blockReceipts  shortcut = "eth_getBlockReceipts"
	receiptsBeside shortcut = "eth_getBlockReceipts by height, beside blocks"
	stateByHash    shortcut = "state by block hash (EIP-1898)"
)

// refusedFor is for how long a shortcut is not tried again that a node refused with a code that may mean anything.
const refusedFor = time.Minute

// refuses reports whether a node refused a shortcut lately, or said that it never has it.
func (e *endpoint) refuses(s shortcut) bool {
	e.mu.Lock()
	defer e.mu.Unlock()

	until, refused := e.refused[s]

	return refused && (until.IsZero() || time.Now().Before(until))
}

// noteRefusal stores that a node refused a shortcut: for good where the code says that it does not have the method.
func (e *endpoint) noteRefusal(s shortcut, refusal error) {
	e.mu.Lock()
	defer e.mu.Unlock()

	if e.refused == nil {
		e.refused = map[shortcut]time.Time{}
	}

	e.refused[s] = time.Now().Add(refusedFor)
	if isNoMethod(refusal) {
		e.refused[s] = time.Time{}
	}
}

// errNull is the refusal of a shortcut by null: the node showed the block that it was asked about.
var errNull = errors.New("the node answered null")

// refusal returns how a node refused a call that another one can take the place of: with an error, or with null.
func (c *call) refusal() error {
	if c.isNull() {
		return errNull
	}

	return c.err
}

// stateAt makes calls at the state after a block. calls returns them for a block parameter: the block's hash
// (EIP-1898), or its height where the node refuses that; then its block is compared before and after.
func (e *endpoint) stateAt(
	ctx context.Context,
	at chain.Ref,
	calls func(block any) ([]*call, error),
) ([]*call, error) {
	if !e.refuses(stateByHash) {
		made, err := calls(map[string]any{"blockHash": at.Hash, "requireCanonical": true})
		if err != nil {
			return nil, err
		}

		if err := e.do(ctx, made...); err != nil {
			return nil, err
		}

		refusal := firstRefusal(made)
		if refusal == nil {
			return made, nil
		}

		byHeight, err := e.stateAtHeight(ctx, at, calls)
		if err != nil || firstRefusal(byHeight) != nil {
			return made, err // it refuses more than the shortcut
		}

		e.noteRefusal(stateByHash, refusal)

		return byHeight, nil
	}

	return e.stateAtHeight(ctx, at, calls)
}

// stateAtHeight makes calls at the state after the node's block at a height, which has to be the given one.
func (e *endpoint) stateAtHeight(
	ctx context.Context,
	at chain.Ref,
	calls func(block any) ([]*call, error),
) ([]*call, error) {
	made, err := calls(hexutil.EncodeUint64(at.Height))
	if err != nil {
		return nil, err
	}

	if err := e.hasBlock(ctx, at); err != nil {
		return nil, err
	}

	if err := e.do(ctx, made...); err != nil {
		return nil, err
	}

	return made, e.hasBlock(ctx, at)
}

// hasBlock returns an error unless the node's block at a height is the given one.
func (e *endpoint) hasBlock(ctx context.Context, at chain.Ref) error {
	ref, err := e.refAt(ctx, at.Height)
	if err == nil && ref.Hash != at.Hash {
		err = e.Fail(failover.Garbled, "it has block %s at height %d, not %s", ref.Hash, at.Height, at.Hash)
	}

	return err
}

// firstRefusal returns the first refusal among calls; nil where there is none. A contract that fails is an answer:
// every node says the same of it.
func firstRefusal(calls []*call) error {
	for _, made := range calls {
		if refusal := made.refusal(); refusal != nil && !made.failedInContract() {
			return refusal
		}
	}

	return nil
}
