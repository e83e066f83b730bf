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

// Broadcast hands the bytes to the network. Bytes that are not those of the hash, or that the node calls
// invalid whatever else happens, are fault.Invalid. A coin that is spent, a fee that is too low and a clash
// with another transaction are fault.Unavailable (broadcast_refused): Status finds out what they mean.
func (d *Driver) Broadcast(ctx context.Context, signed chain.Signed) error {
	if _, err := signedTx(signed); err != nil {
		return err
	}

	return d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		// 0: no other maximum than the one that Build kept to.
		var hash string

		err := e.call(ctx, &hash, "sendrawtransaction", hex.EncodeToString(signed.Raw), 0)

		refusal, refused := errors.AsType[*failover.Refusal](err)
		switch {
		case err == nil && hash != signed.TxHash:
			return e.Garbled("it took transaction %s as %s", signed.TxHash, e.Clean(hash))
		case refused && (refusal.Code == codeAlreadyInUTXO ||
			refusal.Code == codeRejected && strings.Contains(refusal.Message, "txn-already")):
			return nil
		case refused && isPermanent(refusal):
			return fault.Wrap(
				refusal, fault.Invalid, "transaction_malformed",
				"the network does not take transaction %s as it is",
				signed.TxHash,
			)
		case refused:
			// btcd has one code for this, too: what it has already it does not take again.
			if lookup, err := e.lookUp(ctx, signed.TxHash); err == nil && lookup.tx != nil {
				return nil
			}

			return &failover.Failure{
				Host:  e.Host,
				Code:  "broadcast_refused",
				What:  "it does not take transaction " + signed.TxHash,
				Cause: refusal,
			}
		}

		return err
	})
}

// isPermanent says that a transaction was refused for what it is, not for when and where it came. The node has
// one code for all of that, and names of reasons that are part of its interface. Source: Bitcoin Core,
// src/validation.cpp and src/consensus/tx_check.cpp.
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
