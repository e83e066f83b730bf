package solana

// Transactions of versions that the driver does not decode. Nodes name their accounts, signatures and balances
// in forms that do not depend on the version: transactionDetails "accounts" of a block, encoding "jsonParsed"
// of a transaction. Source: solana.com/docs/rpc/http/getblock and gettransaction.

import (
	"context"
	"encoding/json"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// accountJSON is an account that a transaction names.
type accountJSON struct {
	Key    string `json:"pubkey"`
	Signer bool   `json:"signer"`
}

// accountsOfBlock returns a block's transactions from their accounts.
func (e *endpoint) accountsOfBlock(ctx context.Context, h blockHeader) ([]executedTx, error) {
	var answer *struct {
		Hash         string `json:"blockhash"`
		Transactions []struct {
			Transaction struct {
				Accounts   []accountJSON `json:"accountKeys"`
				Signatures []string      `json:"signatures"`
			} `json:"transaction"`
			Meta *txMeta `json:"meta"`
		} `json:"transactions"`
	}

	err := e.call(ctx, &answer, "getBlock", h.slot, map[string]any{
		"commitment":                     "confirmed",
		"encoding":                       "json",
		"transactionDetails":             "accounts",
		"rewards":                        false,
		"maxSupportedTransactionVersion": anyVersion,
	})
	if err != nil {
		return nil, e.blockError(ctx, h.Height, err)
	}

	if answer == nil || answer.Hash != h.Hash || len(answer.Transactions) != len(h.Transactions) {
		return nil, e.Garbled(
			"its block %d has other transactions with their accounts than without",
			h.Height,
		)
	}

	txs := make([]executedTx, len(answer.Transactions))

	for i, tx := range answer.Transactions {
		txs[i], err = e.txOfAccounts(tx.Transaction.Signatures, tx.Transaction.Accounts, tx.Meta)
		if err != nil {
			return nil, err
		}
	}

	return txs, nil
}

// accountsOfTransaction returns a transaction from its accounts.
func (e *endpoint) accountsOfTransaction(ctx context.Context, hash string) (executedTx, error) {
	var answer *struct {
		Transaction struct {
			Message struct {
				Accounts []accountJSON `json:"accountKeys"`
			} `json:"message"`
			Signatures []string `json:"signatures"`
		} `json:"transaction"`
		Meta *struct {
			txMeta
			// Inner hides that of txMeta: instructions have another form here, and are read only to find who
			// paid rent.
			Inner json.RawMessage `json:"innerInstructions"`
		} `json:"meta"`
	}

	err := e.call(ctx, &answer, "getTransaction", hash, map[string]any{
		"commitment":                     "confirmed",
		"encoding":                       "jsonParsed",
		"maxSupportedTransactionVersion": anyVersion,
	})
	if err != nil {
		return executedTx{}, err
	}

	if answer == nil {
		return executedTx{}, failover.ErrMissing
	}

	var meta *txMeta
	if answer.Meta != nil {
		meta = &answer.Meta.txMeta
	}

	return e.txOfAccounts(answer.Transaction.Signatures, answer.Transaction.Message.Accounts, meta)
}

// txOfAccounts returns the transaction of the accounts that it names, signers first.
func (e *endpoint) txOfAccounts(
	signatures []string,
	accounts []accountJSON,
	meta *txMeta,
) (executedTx, error) {
	if len(signatures) == 0 || meta == nil {
		return executedTx{}, e.Garbled("it sent a transaction without signatures or result")
	}

	signature, err := solanago.SignatureFromBase58(signatures[0])
	if err != nil {
		return executedTx{}, e.Garbled("it sent a transaction whose signature is none")
	}

	tx := executedTx{hash: signature.String(), keys: make([]solanago.PublicKey, len(accounts)), meta: meta}

	for i, account := range accounts {
		if tx.keys[i], err = solanago.PublicKeyFromBase58(account.Key); err != nil {
			return executedTx{}, e.Garbled("an account of transaction %s is none", tx.hash)
		}

		if account.Signer {
			tx.signers++
		}

		if account.Signer != (i < len(signatures)) {
			return executedTx{}, e.Garbled(
				"transaction %s has %d signatures, and account %d fits none", tx.hash, len(signatures), i,
			)
		}
	}

	return tx, e.checkMeta(tx)
}
