package solana

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Broadcast sends a transaction to every node, which simulates it first. Errors, where every node refuses it so:
//   - fault.Invalid, code transaction_malformed: the bytes are not a transaction with valid signatures;
//   - fault.Invalid, code chain:insufficient_funds: an account lacks the funds.
//
// One that would fail for another reason is sent without simulation. Included, its failure is
// proven and costs the base fee; withheld, it could still succeed later. One of a token whose issuer made it unusable
// is withheld (fault.Stopped, token_unsafe).
func (d *driver) Broadcast(ctx context.Context, tx chain.Signed) error {
	if err := checkSigned(tx); err != nil {
		return err
	}

	return d.nodes.Send(ctx, d.config.Attempts, func(ctx context.Context, e *endpoint) error {
		err := e.send(ctx, tx.Raw, false)

		refusal, ok := errors.AsType[*failover.Refusal](err)
		if !ok {
			return err
		}

		switch {
		case refusal.Code == codeBadSignature || refusal.Code == codeInvalidParams:
			return fault.Wrap(
				refusal, fault.Invalid, "transaction_malformed",
				"the node takes transaction %s for malformed",
				tx.TxHash,
			)
		case refusal.Code != codePreflightFailed:
			return e.Garbled("%s", refusal)
		}

		switch simulated := parseTxError(refusal); {
		case simulated.name == "AlreadyProcessed":
			return nil
		case simulated.name == "BlockhashNotFound": // expired, or this node is behind
			if tx.DurableNonce != nil {
				d.doubted.Store(tx.TxHash, true)
			}

			return e.Garbled("%s", refusal)
		case simulated.insufficientFunds():
			return fault.Wrap(
				refusal, fault.Invalid, "chain:insufficient_funds",
				"the money for transaction %s from %s is not there",
				tx.TxHash, tx.From,
			)
		}

		if err := d.checkTokens(ctx, e, tx); err != nil {
			return err
		}

		return e.send(ctx, tx.Raw, true)
	})
}

// checkTokens returns fault.Stopped (token_unsafe) where the mint of a token that a transaction pays cannot be used any
// more, as its issuer changed it since.
func (d *driver) checkTokens(ctx context.Context, e *endpoint, tx chain.Signed) error {
	var keys []solanago.PublicKey

	for _, output := range tx.Outputs {
		if m, isToken := d.mintOf(output.AssetID); isToken && !slices.Contains(keys, m.key) {
			keys = append(keys, m.key)
		}
	}

	return d.checkMints(ctx, e, keys)
}

// checkSigned returns fault.Invalid when the bytes are not the transaction of the hash, in its only
// encoding and with valid signatures.
func checkSigned(tx chain.Signed) error {
	parsed, err := solanago.TransactionFromBytes(tx.Raw)
	if err == nil {
		var encoded []byte
		if encoded, err = parsed.MarshalBinary(); err == nil && string(encoded) != string(tx.Raw) {
			err = errMalformed
		}
	}

	if err == nil {
		err = parsed.VerifySignatures()
	}

	if err != nil || len(parsed.Signatures) == 0 || parsed.Signatures[0].String() != tx.TxHash {
		return fault.Wrap(
			err, fault.Invalid, "transaction_malformed",
			"the bytes of transaction %s are not that transaction",
			tx.TxHash,
		)
	}

	return nil
}

func (e *endpoint) send(ctx context.Context, raw []byte, skipPreflight bool) error {
	return e.call(ctx, nil, "sendTransaction", encodeBase64(raw), map[string]any{
		"encoding":            "base64",
		"skipPreflight":       skipPreflight,
		"preflightCommitment": newest{e},
	})
}

// txError is the error of a simulated transaction.
type txError struct {
	name   string // of the TransactionError or InstructionError
	custom int64  // the program's code; −1 for none
}

// parseTxError returns the error in the data of a refusal. Source: solana-sdk, the JSON of
// TransactionError and InstructionError.
func parseTxError(refusal *failover.Refusal) txError {
	parsed := txError{custom: -1}

	var data struct {
		Err json.RawMessage `json:"err"`
	}
	if json.Unmarshal(refusal.Data, &data) != nil {
		return parsed
	}

	if json.Unmarshal(data.Err, &parsed.name) == nil {
		return parsed
	}

	var named map[string]json.RawMessage
	if json.Unmarshal(data.Err, &named) != nil {
		return parsed
	}

	// An instruction's error is [index, error].
	var pair []json.RawMessage
	if json.Unmarshal(named["InstructionError"], &pair) != nil || len(pair) != 2 {
		for name := range named {
			parsed.name = name
		}

		return parsed
	}

	if json.Unmarshal(pair[1], &parsed.name) == nil {
		return parsed
	}

	var custom struct {
		Code *int64 `json:"Custom"`
	}
	if json.Unmarshal(pair[1], &custom) == nil && custom.Code != nil {
		parsed.custom = *custom.Code
	}

	return parsed
}

// insufficientFunds reports whether the error is a lack of funds for the payment, its fee or rent. Code 1
// means it in the System program and the token programs.
func (t txError) insufficientFunds() bool {
	switch t.name {
	case "AccountNotFound", "InsufficientFundsForFee", "InsufficientFundsForRent", "InsufficientFunds":
		return true
	}

	return t.custom == 1
}
