package solana

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

func encode(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

// Broadcast hands a transaction to a node, which runs it first. Bytes that are no transaction with
// good signatures, and those whose money is not there, are fault.Invalid. One that would fail for
// another reason is sent all the same: in a block the failure is a fact and costs a signature,
// while bytes that are held back could still succeed later.
func (d *Driver) Broadcast(ctx context.Context, tx chain.Signed) error {
	parsed, err := solanago.TransactionFromBytes(tx.Raw)
	if err == nil {
		var again []byte
		if again, err = parsed.MarshalBinary(); err == nil && string(again) != string(tx.Raw) {
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

	return d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		err := e.send(ctx, tx.Raw, false)

		r, ok := errors.AsType[*failover.Refusal](err)
		if !ok {
			return err
		}

		switch {
		case r.Code == codeBadSignature || r.Code == codeInvalidParams:
			return fault.Wrap(
				r, fault.Invalid, "transaction_malformed",
				"the node takes transaction %s for malformed",
				tx.TxHash,
			)
		case r.Code != codePreflightFailed:
			return e.Garbled("%s", r)
		}

		switch why := preflight(r); {
		case why.name == "AlreadyProcessed":
			return nil
		case why.name == "BlockhashNotFound": // it ran out, or this node is behind
			return e.Garbled("%s", r)
		case why.unfunded():
			return fault.Wrap(
				r, fault.Invalid, "transaction_unfunded",
				"the money for transaction %s from %s is not there",
				tx.TxHash, tx.From,
			)
		}

		return e.send(ctx, tx.Raw, true)
	})
}

func (e *endpoint) send(ctx context.Context, raw []byte, skipPreflight bool) error {
	return e.call(ctx, nil, "sendTransaction", encode(raw), map[string]any{
		"encoding":            "base64",
		"skipPreflight":       skipPreflight,
		"preflightCommitment": "confirmed",
	})
}

// reason is why a transaction would fail: a named error, or the error of an instruction.
type reason struct {
	name   string // of the transaction's or the instruction's error
	custom int64  // the program's own code; −1 for none
}

// preflight reads the reason from the data of a refusal.
// Source: solana-sdk, TransactionError and InstructionError as they are written in JSON.
func preflight(r *failover.Refusal) reason {
	none := reason{custom: -1}

	var data struct {
		Err json.RawMessage `json:"err"`
	}
	if json.Unmarshal(r.Data, &data) != nil {
		return none
	}

	if json.Unmarshal(data.Err, &none.name) == nil {
		return none
	}

	var named map[string]json.RawMessage
	if json.Unmarshal(data.Err, &named) != nil {
		return none
	}

	var pair []json.RawMessage
	if json.Unmarshal(named["InstructionError"], &pair) != nil || len(pair) != 2 {
		for name := range named {
			none.name = name
		}

		return none
	}

	if json.Unmarshal(pair[1], &none.name) == nil {
		return none
	}

	var custom struct {
		Code *int64 `json:"Custom"`
	}
	if json.Unmarshal(pair[1], &custom) == nil && custom.Code != nil {
		none.custom = *custom.Code
	}

	return none
}

// unfunded recognises missing money: the fee's, the rent's, and code 1 of both the System program
// and the token programs.
func (r reason) unfunded() bool {
	switch r.name {
	case "AccountNotFound", "InsufficientFundsForFee", "InsufficientFundsForRent", "InsufficientFunds":
		return true
	}

	return r.custom == 1
}
