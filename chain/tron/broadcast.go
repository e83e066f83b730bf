package tron

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Broadcast hands the bytes to the first node that takes them, asking each one once. Bytes that no
// node could ever take, and a refusal as malformed or unfunded by every node that answers, are
// fault.Invalid; the latter with code chain:insufficient_funds. Everything else is
// fault.Unavailable: it proves nothing, Status decides.
func (d *Driver) Broadcast(ctx context.Context, signed chain.Signed) error {
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

	var refusal *fault.Error // the first verdict, while no node gave an unclear answer

	unclear := false

	err = d.nodes.Ask(ctx, 1, 0, func(ctx context.Context, e *endpoint) error {
		err := e.broadcast(ctx, id, signed)

		verdict, ok := errors.AsType[*fault.Error](err)
		if !ok {
			unclear = unclear || err != nil
			return err
		}

		if refusal == nil {
			refusal = verdict
		}

		return errRefused
	})
	if err != nil && refusal != nil && !unclear && ctx.Err() == nil {
		return refusal
	}

	return err
}

// errRefused makes ask try the next node: another may know of money that this one has not seen.
var errRefused = errors.New("a node refused the transaction")

type sendRequest struct {
	Transaction string `json:"transaction"`
}

// broadcast broadcasts to one node. A *fault.Error is its verdict, another error an unclear answer.
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
	// Nodes refuse bytes that they have already, or had, with words about the balance that is left;
	// and they call a duplicate what they once refused. So what they know is looked up.
	if lookup, err := e.lookUp(ctx, id); err == nil && lookup.tx != nil {
		return nil
	}

	said := e.Fail(refused, "%s: %s: %s", method, e.Clean(answer.Code), e.Clean(decodeMessage(answer.Message)))
	switch answer.Code {
	case "CONTRACT_VALIDATE_ERROR", "BANDWITH_ERROR":
		return fault.Wrap(
			said, fault.Invalid, "chain:insufficient_funds",
			"the sender of transaction %s cannot pay for it, or its destination takes nothing",
			signed.TxHash,
		)
	case "SIGERROR", "TOO_BIG_TRANSACTION_ERROR":
		return fault.Wrap(
			said, fault.Invalid, "transaction_malformed",
			"the network does not take transaction %s as it is",
			signed.TxHash,
		)
	}
	// Among them a reference block or an expiration that this node finds wrong: it may be behind,
	// or ahead of others.
	return said
}
