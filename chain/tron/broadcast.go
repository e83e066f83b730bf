package tron

import (
	"context"
	"encoding/hex"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Broadcast sends a transaction to every node, once. It errors:
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

	return d.nodes.Send(ctx, 1, func(ctx context.Context, node *endpoint) error {
		return node.broadcast(ctx, id, signed)
	})
}

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
