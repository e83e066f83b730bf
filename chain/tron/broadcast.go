package tron

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Broadcast sends a transaction to the first node that accepts it, and to another one where several are configured: a
// node that drops what it takes would hold it up. Each is asked once. It errors:
//   - fault.Invalid (transaction_malformed): the bytes have another hash, or every node refuses them for good
//   - fault.Invalid (chain:insufficient_funds): every node refuses it as unfunded
//   - fault.Unavailable: any other refusal, also one that not all nodes share, which proves nothing: Status
//     finds out
func (d *driver) Broadcast(ctx context.Context, signed chain.Signed) error {
	tx, raw, signer, err := decodeSigned(signed.Raw)
	if err != nil {
		return err
	}

	id := txID(raw)
	if hex.EncodeToString(id[:]) != signed.TxHash {
		return malformed("their id is not " + signed.TxHash)
	}

	if signer != tx.owner {
		return malformed("they are not signed by " + string(canonical(tx.owner)))
	}

	var (
		refusals []*fault.Error // one by each node that refuses it for good
		first    *endpoint
	)

	err = d.nodes.Ask(ctx, 1, 0, func(ctx context.Context, node *endpoint) error {
		first = node
		err := node.broadcast(ctx, id, signed)

		verdict, ok := errors.AsType[*fault.Error](err)
		if !ok {
			return err
		}

		refusals = append(refusals, verdict)

		return errRefused
	})

	if err != nil && ctx.Err() == nil && len(refusals) == len(d.nodes.Nodes) && haveSameCode(refusals) {
		return refusals[0]
	}

	if err != nil {
		return err
	}

	// One node has it, whatever comes of this.
	_ = d.nodes.AskBeside(ctx, first, 0, func(ctx context.Context, node *endpoint) (bool, error) {
		err := node.broadcast(ctx, id, signed)
		if _, refused := errors.AsType[*fault.Error](err); refused {
			return false, nil
		}

		return err == nil, err
	})

	return nil
}

// haveSameCode reports whether all refusals, at least one, are for the same reason.
func haveSameCode(refusals []*fault.Error) bool {
	for _, other := range refusals[1:] {
		if other.Code != refusals[0].Code {
			return false
		}
	}

	return true
}

// errRefused makes ask try the next node, which may have newer balances.
var errRefused = errors.New("a node refused the transaction")

// sendRequest is a request of broadcasthex.
type sendRequest struct {
	Transaction string `json:"transaction"`
}

// broadcast sends a transaction to one node. A *fault.Error is a refusal for good; any other error proves
// nothing.
func (e *endpoint) broadcast(ctx context.Context, id [32]byte, signed chain.Signed) error {
	const method = "broadcasthex"

	var answer struct {
		Result  bool   `json:"result"`
		Code    string `json:"code"`
		Message string `json:"message"`
		TxID    string `json:"txid"`
	}

	found, err := e.post(ctx, full, method, sendRequest{hex.EncodeToString(signed.Raw)}, &answer)
	if err != nil {
		return err
	}

	if !found || (answer.TxID != "" && answer.TxID != signed.TxHash) {
		return e.Garbled("%s: it took transaction %s as %q", method, signed.TxHash, e.Clean(answer.TxID))
	}

	if answer.Result {
		return nil
	}

	// Nodes refuse a transaction that they have for its balance, and call one a duplicate that they refused
	// before. So it is looked up.
	if lookup, err := e.lookUp(ctx, id); err == nil && lookup.tx != nil {
		return nil
	}

	failure := e.Fail(
		refused, "%s: %s: %s", method, e.Clean(answer.Code), e.Clean(decodeMessage(answer.Message)),
	)
	switch answer.Code {
	case "CONTRACT_VALIDATE_ERROR", "BANDWITH_ERROR":
		return fault.Wrap(
			failure, fault.Invalid, "chain:insufficient_funds",
			"the sender of transaction %s cannot pay for it, or its destination takes nothing",
			signed.TxHash,
		)
	case "SIGERROR", "TOO_BIG_TRANSACTION_ERROR":
		return fault.Wrap(
			failure, fault.Invalid, "transaction_malformed",
			"the network does not take transaction %s as it is",
			signed.TxHash,
		)
	}

	// Such as a wrong reference block or expiration: the node may be behind, or ahead of others.
	return failure
}
