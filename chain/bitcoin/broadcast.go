package bitcoin

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Broadcast sends a transaction to every node. If all refuse it, it sends the lost unconfirmed parents again
// and then the transaction; see resendParents. A refusal by itself proves nothing: Status finds the
// transaction's state. It errors:
//   - fault.Invalid (transaction_malformed): the bytes have another hash, or every node says that they are
//     never valid
//   - fault.Unavailable (broadcast_refused): such as a spent coin, a low fee or a conflicting transaction
func (d *driver) Broadcast(ctx context.Context, signed chain.Signed) error {
	tx, err := signedTx(signed)
	if err != nil {
		return err
	}

	err = d.send(ctx, signed)
	if fault.Code(err) != refused {
		return err
	}

	if sent, searchErr := d.resendParents(ctx, tx); !sent || searchErr != nil {
		return err
	}

	return d.send(ctx, signed)
}

// send sends a transaction to every node.
func (d *driver) send(ctx context.Context, signed chain.Signed) error {
	return d.nodes.Send(ctx, d.config.Attempts, d.verified(func(ctx context.Context, node *endpoint) error {
		const maxFeeRate = 0 // no limit of the node's: Build kept to Order.MaxFee

		var hash string

		err := node.call(ctx, &hash, "sendrawtransaction", hex.EncodeToString(signed.Raw), maxFeeRate)
		if err == nil && hash != signed.TxHash {
			return node.Garbled("it took transaction %s as %s", signed.TxHash, node.Clean(hash))
		}

		if refusal, isRefusal := errors.AsType[*failover.Refusal](err); isRefusal {
			return node.refusedTx(ctx, signed, refusal)
		}

		return err
	}))
}

// refused is the code of a transaction that nodes do not accept now.
const refused = "broadcast_refused"

// refusedTx returns the error of a refused transaction; nil if the node has it already.
func (e *endpoint) refusedTx(ctx context.Context, signed chain.Signed, refusal *failover.Refusal) error {
	known := refusal.Code == codeRejected && strings.Contains(refusal.Message, "txn-already")
	if known || refusal.Code == codeAlreadyInUTXO {
		return nil
	}

	if isPermanent(refusal) {
		return fault.Wrap(
			refusal, fault.Invalid, "transaction_malformed",
			"the network does not take transaction %s as it is",
			signed.TxHash,
		)
	}

	// btcd refuses a transaction that it already has with the same code as any other refusal.
	if lookup, err := e.lookUp(ctx, signed.TxHash); err == nil && lookup.tx != nil {
		return nil
	}

	return &failover.Failure{
		Host:  e.Host,
		Code:  refused,
		What:  "it does not take transaction " + signed.TxHash,
		Cause: refusal,
	}
}

// isPermanent reports whether the transaction's contents are the reason of a refusal, so that it is never
// valid. Nodes use one code for permanent and temporary refusals; their reason texts are part of their
// interface. Source: Bitcoin Core, src/validation.cpp and src/consensus/tx_check.cpp.
func isPermanent(refusal *failover.Refusal) bool {
	if refusal.Code == codeUndecodable {
		return true
	}

	if refusal.Code != codeRejected {
		return false
	}

	for _, passing := range []string{"inputs-missingorspent", "premature-spend", "nonfinal", "non-final"} {
		if strings.Contains(refusal.Message, passing) {
			return false
		}
	}

	for _, reason := range []string{"mandatory-script-verify-flag-failed", "bad-txns-", "bad-witness-", "tx-size"} {
		if strings.Contains(refusal.Message, reason) {
			return true
		}
	}

	return false
}
