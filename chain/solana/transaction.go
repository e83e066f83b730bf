package solana

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Transaction returns a confirmed transaction by its hash, which is its first signature. Solana has no
// readable pool. An unknown transaction is fault.NotFound.
func (d *Driver) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
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
// not know the transaction.
func (d *Driver) fetchTransaction(ctx context.Context, e *endpoint, hash string) (confirmedTx, error) {
	var answer *struct {
		Slot        uint64      `json:"slot"`
		Transaction base64Bytes `json:"transaction"`
		Meta        *txMeta     `json:"meta"`
	}

	err := e.call(ctx, &answer, "getTransaction", hash, map[string]any{
		"commitment":                     "confirmed",
		"encoding":                       "base64",
		"maxSupportedTransactionVersion": anyVersion,
	})
	if err != nil {
		return confirmedTx{}, err
	}

	if answer == nil {
		return confirmedTx{}, failover.ErrMissing
	}

	tx, err := e.decodeTransaction(answer.Transaction, answer.Meta)
	if errors.Is(err, errUnknownVersion) {
		tx, err = e.accountsOfTransaction(ctx, hash)
	}

	if err != nil {
		return confirmedTx{}, err
	}

	if tx.hash != hash {
		return confirmedTx{}, e.Garbled("asked for transaction %s, it answered %s", hash, tx.hash)
	}

	block, err := e.header(ctx, answer.Slot)
	if err != nil {
		return confirmedTx{}, e.blockError(ctx, 0, err)
	}

	return confirmedTx{tx, block}, nil
}

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
		BaseUnits decimalUint64 `json:"amount"`
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

// decodeTransaction parses a transaction, resolves its keys and checks its meta against them. One of a later
// version is errUnknownVersion.
func (e *endpoint) decodeTransaction(raw []byte, meta *txMeta) (executedTx, error) {
	signature, keys, signers, err := staticKeys(raw)
	if errors.Is(err, errUnknownVersion) {
		return executedTx{}, err
	}

	if err != nil || meta == nil {
		return executedTx{}, e.Garbled(
			"it sent a transaction that cannot be read, or nothing of its execution",
		)
	}

	for _, loaded := range [][]string{meta.LoadedAddresses.Writable, meta.LoadedAddresses.Readonly} {
		for _, address := range loaded {
			key, err := solanago.PublicKeyFromBase58(address)
			if err != nil {
				return executedTx{}, e.Garbled("a loaded address of transaction %s is none", signature)
			}

			keys = append(keys, key)
		}
	}

	tx := executedTx{hash: signature.String(), keys: keys, signers: signers, meta: meta}

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

var (
	errMalformed      = errors.New("malformed transaction")
	errUnknownVersion = errors.New("transaction of an unknown version")
)

// anyVersion asks nodes for transactions of every version.
const anyVersion = 255

// staticKeys parses the first signature and the account keys of a legacy or version 0 transaction, of which
// the first signers signed it. The rest of the message is not needed. Source:
// solana.com/docs/core/transactions, "transaction format". From version 1 on the message comes first, whose
// first byte is 0x80 plus the version (SIMD-0385); as a number of signatures that would be above 127.
func staticKeys(
	raw []byte,
) (signature solanago.Signature, keys []solanago.PublicKey, signers int, err error) {
	if len(raw) > 0 && raw[0]&0x80 != 0 {
		return signature, nil, 0, errUnknownVersion
	}

	signatures, raw, ok := compactU16(raw)
	if !ok || signatures == 0 || len(raw) < 64*signatures {
		return signature, nil, 0, errMalformed
	}

	copy(signature[:], raw)

	raw = raw[64*signatures:]
	if len(raw) > 0 && raw[0]&0x80 != 0 {
		if raw[0] != 0x80 {
			return signature, nil, 0, errUnknownVersion
		}

		raw = raw[1:]
	}

	if len(raw) < 3 || int(raw[0]) != signatures {
		return signature, nil, 0, errMalformed
	}

	count, raw, ok := compactU16(raw[3:])
	if !ok || count < signatures || len(raw) < 32*count {
		return signature, nil, 0, errMalformed
	}

	keys = make([]solanago.PublicKey, count)
	for i := range keys {
		copy(keys[i][:], raw[32*i:])
	}

	return signature, keys, signatures, nil
}

// compactU16 parses a compact-u16: one to three bytes of seven bits each, the lowest first.
func compactU16(raw []byte) (n int, remaining []byte, ok bool) {
	for i := range min(3, len(raw)) {
		n |= int(raw[i]&0x7f) << (7 * i)
		if raw[i]&0x80 == 0 {
			return n, raw[i+1:], n <= 0xffff
		}
	}

	return 0, nil, false
}

// base64Bytes are bytes as nodes send them: of a transaction, or the data of an account.
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

// decimalUint64 is a 64-bit integer as a string of decimal digits.
type decimalUint64 uint64

// UnmarshalJSON parses "123". More than 64 bits are an error.
func (u *decimalUint64) UnmarshalJSON(text []byte) error {
	var digits string
	if err := json.Unmarshal(text, &digits); err != nil {
		return err
	}

	n, err := strconv.ParseUint(digits, 10, 64)
	*u = decimalUint64(n)

	return err
}
