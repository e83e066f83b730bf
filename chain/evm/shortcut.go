package evm

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Shortcuts save calls. Their answers are verified or compared just like those of the calls that they
// replace. If a node refuses a shortcut, with whatever code or with null, the driver makes the longer calls.

// shortcut is a call that nodes may refuse.
type shortcut string

const (
	blockReceipts  shortcut = "eth_getBlockReceipts"
	receiptsBeside shortcut = "eth_getBlockReceipts by height, beside blocks"
	stateByHash    shortcut = "state by block hash (EIP-1898)"
)

// refusedFor is the time for which a shortcut is not tried again after a refusal with an ambiguous code.
const refusedFor = time.Minute

// refuses reports whether a node refused a shortcut recently, or declared that it never has it.
func (e *endpoint) refuses(s shortcut) bool {
	e.mu.Lock()
	defer e.mu.Unlock()

	until, refused := e.refused[s]

	return refused && (until.IsZero() || time.Now().Before(until))
}

// noteRefusal stores that a node refused a shortcut. If the code means that the node lacks the method, the
// refusal is permanent.
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

// errNull is the refusal of a shortcut by null, from a node that has the block in question.
var errNull = errors.New("the node answered null")

// refusal returns the node's refusal of a call, an error or null; nil if there is none.
func (c *call) refusal() error {
	if c.isNull() {
		return errNull
	}

	return c.err
}

// stateAt makes calls at the state after a block. calls returns them for a block parameter: the block's hash
// (EIP-1898), or its height where the node refuses the hash. With the height, the node's block there is
// compared before and after.
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
			return made, err // the node refuses the calls themselves, not only the shortcut
		}

		e.noteRefusal(stateByHash, refusal)

		return byHeight, nil
	}

	return e.stateAtHeight(ctx, at, calls)
}

// stateAtHeight makes calls at the state after the node's block at a height; it must be the given block.
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

// firstRefusal returns the first refusal among calls; nil if there is none. A failure in the contract is an
// answer, not a refusal: every node would give the same.
func firstRefusal(calls []*call) error {
	for _, made := range calls {
		if refusal := made.refusal(); refusal != nil && !made.failedInContract() {
			return refusal
		}
	}

	return nil
}
