package solana

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Transaction returns a confirmed transaction by its hash, which is its first signature. Solana has no
// readable pool. An unknown transaction is fault.NotFound.
func (d *driver) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
	signature, err := solanago.SignatureFromBase58(hash)
	if err != nil || signature.String() != hash {
		if len(hash) > 100 {
			hash = hash[:100] + "…"
		}

		return chain.FoundTx{}, fault.New(
			fault.NotFound, "transaction_unknown",
			"%q is no Solana transaction: those are named by 64 bytes in base58",
			hash,
		)
	}

	var found chain.FoundTx

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		tx, err := d.fetchTransaction(ctx, e, hash)
		if err != nil {
			return err
		}

		found = chain.FoundTx{
			TxHash: hash,
			Block:  tx.block.ref(),
			Failed: tx.meta.failed(),
			Spent:  tx.spends(),
		}
		found.Transfers, err = d.transfers(tx.executedTx)

		return err
	})
	if err != nil {
		return chain.FoundTx{}, err
	}

	return found, nil
}

// confirmedTx is a transaction with the block that includes it.
type confirmedTx struct {
	executedTx
	block blockHeader
}

// fetchTransaction reads a transaction and its block. It returns failover.ErrMissing when the node does
// not know the transaction, and an *unreadable when the node cannot show what it did.
func (d *driver) fetchTransaction(ctx context.Context, e *endpoint, hash string) (confirmedTx, error) {
	tx, slot, err := d.fetchExecuted(ctx, e, hash)
	if err != nil {
		return confirmedTx{}, err
	}

	block, err := e.header(ctx, slot)
	if err != nil {
		return confirmedTx{}, e.blockError(ctx, 0, err)
	}

	return confirmedTx{tx, block}, nil
}

// fetchExecuted reads a transaction and its slot. Errors are those of fetchTransaction.
func (d *driver) fetchExecuted(
	ctx context.Context,
	e *endpoint,
	hash string,
) (tx executedTx, slot uint64, err error) {
	tx, slot, err = e.shownTransaction(ctx, hash)
	if err == nil {
		err = d.checkOpened(ctx, e, tx)
	}

	return tx, slot, err
}

// shownTransaction reads a transaction and its slot, without a check of what it opened. Errors are those of
// fetchTransaction.
func (e *endpoint) shownTransaction(
	ctx context.Context,
	hash string,
) (tx executedTx, slot uint64, err error) {
	var answer *struct {
		Slot        uint64 `json:"slot"`
		Transaction struct {
			Signatures []string `json:"signatures"`
			Message    struct {
				Keys []string `json:"accountKeys"`
			} `json:"message"`
		} `json:"transaction"`
		Meta *txMeta `json:"meta"`
	}

	options := map[string]any{"commitment": newest{e}, "encoding": "json"}
	if err := e.callVersioned(ctx, &answer, "getTransaction", hash, options); err != nil {
		return executedTx{}, 0, err
	}

	if answer == nil {
		return executedTx{}, 0, failover.ErrMissing
	}

	keys := answer.Transaction.Message.Keys
	if answer.Meta != nil {
		loaded := answer.Meta.LoadedAddresses
		keys = slices.Concat(keys, loaded.Writable, loaded.Readonly)
	}

	tx, err = e.executed(answer.Transaction.Signatures, keys, answer.Meta)
	if err == nil && tx.hash != hash {
		err = e.Garbled("asked for transaction %s, it answered %s", hash, tx.hash)
	}

	return tx, answer.Slot, err
}

// fetchListed reads a transaction that the node has listed. Behind one URL another backend may answer, which
// does not have it yet: where none has it, it is *unreadable, and never unknown.
func (d *driver) fetchListed(ctx context.Context, e *endpoint, hash string) (confirmedTx, error) {
	for range triesOfListed {
		tx, err := d.fetchTransaction(ctx, e, hash)
		if !errors.Is(err, failover.ErrMissing) {
			return tx, err
		}
	}

	return confirmedTx{}, &unreadable{hash, listedAndMissing}
}

// triesOfListed is how often a listed transaction is asked for: some backends may be behind the one that listed it.
const triesOfListed = 12

// listedAndMissing is why a transaction cannot be read that a node knows and does not show.
const listedAndMissing = "the node lists it and does not have it"

// executedTx is a transaction with the result of its execution.
type executedTx struct {
	hash string
	keys []solanago.PublicKey // of the message, then writable and read-only ones of lookup tables
	// signers is the number of keys that signed it; they come first. The first one paid the fee.
	signers int
	meta    *txMeta
}

// spends returns who signed the transaction.
func (tx executedTx) spends() []chain.Spend {
	out := make([]chain.Spend, tx.signers)
	for i, key := range tx.keys[:tx.signers] {
		out[i] = chain.Spend{
			Sender: chain.Address(key.String()),
			By:     tx.hash,
			Shared: true,
			Failed: tx.meta.failed(),
		}
	}

	return out
}

// txMeta is the result of an execution. Balances are indexed like the transaction's keys.
type txMeta struct {
	Err               json.RawMessage     `json:"err"`
	Fee               uint64              `json:"fee"`          // lamports
	PreBalances       []uint64            `json:"preBalances"`  // lamports
	PostBalances      []uint64            `json:"postBalances"` // lamports
	PreTokenBalances  []tokenBalance      `json:"preTokenBalances"`
	PostTokenBalances []tokenBalance      `json:"postTokenBalances"`
	Inner             []innerInstructions `json:"innerInstructions"`
	LoadedAddresses   struct {
		Writable []string `json:"writable"`
		Readonly []string `json:"readonly"`
	} `json:"loadedAddresses"`
}

func (m *txMeta) failed() bool { return len(m.Err) > 0 && string(m.Err) != "null" }

// tokenBalance is the balance of a token account before or after a transaction.
type tokenBalance struct {
	AccountIndex int    `json:"accountIndex"`
	Mint         string `json:"mint"`
	Owner        string `json:"owner"`
	Amount       struct {
		// uiAmount beside it is a float64 and not read.
		BaseUnits uint64 `json:"amount,string"`
	} `json:"uiTokenAmount"`
}

// innerInstructions are the instructions that one instruction called.
type innerInstructions struct {
	Instructions []struct {
		Program  int    `json:"programIdIndex"`
		Accounts []int  `json:"accounts"`
		Data     string `json:"data"` // base58
	} `json:"instructions"`
}

// unreadable is the error of a transaction of which a node does not show what it did.
type unreadable struct {
	hash, why string
}

// Error returns the hash and what is missing.
func (u *unreadable) Error() string { return "transaction " + u.hash + " cannot be read: " + u.why }

// executed returns a transaction from its signatures, its keys and its meta, which nodes show in the same form
// for every version. The keys that signed come first, one per signature. A transaction without what decides
// about money is returned with an *unreadable.
func (e *endpoint) executed(signatures, keys []string, meta *txMeta) (executedTx, error) {
	if len(signatures) == 0 || len(signatures) > len(keys) {
		return executedTx{}, e.Garbled(
			"it sent a transaction of %d signatures and %d accounts", len(signatures), len(keys),
		)
	}

	signature, err := solanago.SignatureFromBase58(signatures[0])
	if err != nil {
		return executedTx{}, e.Garbled("it sent a transaction whose signature is none")
	}

	tx := executedTx{
		hash:    signature.String(),
		keys:    make([]solanago.PublicKey, len(keys)),
		signers: len(signatures),
		meta:    meta,
	}

	for i, key := range keys {
		if tx.keys[i], err = solanago.PublicKeyFromBase58(key); err != nil {
			return executedTx{}, e.Garbled("account %d of transaction %s is none", i, tx.hash)
		}
	}

	switch {
	case meta == nil:
		tx.meta = &txMeta{}
		return tx, &unreadable{tx.hash, "the node has no record of its execution"}
	case meta.failed():
		// Nothing arrived.
	case meta.PreTokenBalances == nil || meta.PostTokenBalances == nil:
		return tx, &unreadable{tx.hash, "the node has no record of its token balances"}
	}

	return tx, e.checkMeta(tx)
}

// checkMeta checks that a transaction's balances are those of its keys, and that no lamports came from
// nowhere: a transaction can only change accounts that it names.
func (e *endpoint) checkMeta(tx executedTx) error {
	keys, meta := tx.keys, tx.meta
	if len(meta.PreBalances) != len(keys) || len(meta.PostBalances) != len(keys) {
		return e.Garbled(
			"transaction %s has %d accounts and %d balances",
			tx.hash, len(keys), len(meta.PostBalances),
		)
	}

	for _, balances := range [][]tokenBalance{meta.PreTokenBalances, meta.PostTokenBalances} {
		for _, balance := range balances {
			if balance.AccountIndex < 0 || balance.AccountIndex >= len(keys) {
				return e.Garbled(
					"transaction %s has a token balance of account %d of %d",
					tx.hash, balance.AccountIndex, len(keys),
				)
			}
		}
	}

	before, after := chain.Amount{}, chain.Units(meta.Fee)
	for i := range keys {
		before, after = before.Add(
			chain.Units(meta.PreBalances[i]),
		), after.Add(
			chain.Units(meta.PostBalances[i]),
		)
	}

	if before.Less(after) {
		return e.Garbled(
			"transaction %s finds %s lamports and leaves %s with its fee", tx.hash, before, after,
		)
	}

	return nil
}

var errMalformed = errors.New("malformed transaction")

// base64Bytes are bytes as nodes send them: the data of an account.
type base64Bytes []byte

// UnmarshalJSON parses ["<base64>", "base64"].
func (b *base64Bytes) UnmarshalJSON(text []byte) error {
	var pair [2]string
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}

	raw, err := base64.StdEncoding.DecodeString(pair[0])
	*b = raw

	return err
}
