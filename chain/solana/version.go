package solana

// Transactions are read in forms that do not depend on their version: accounts, signatures and balances. Source:
// solana.com/docs/rpc/http/getblock and gettransaction.

import (
	"context"
	"errors"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// highestVersion is the highest version that a transaction can have: it is seven bits.
const highestVersion = 127

// callVersioned calls a method that shows transactions. Nodes want to know the highest version that the caller
// can read, and some refuse a higher one than they know. So each is asked with the lowest that it did not
// refuse, and with a lower one where an older node answers in its place.
//
// No answer is read otherwise for it: a node that knows a lower version than a transaction has does not show it.
func (e *endpoint) callVersioned(
	ctx context.Context,
	result any,
	method string,
	subject any,
	options map[string]any,
) error {
	known := e.version.Load()
	highest, refused := known, uint32(highestVersion+1)

	for {
		options["maxSupportedTransactionVersion"] = highest

		err := e.call(ctx, result, method, subject, options)

		switch {
		case failover.RefusedWith(err, codeUnsupportedVersion) && highest+1 < refused:
			highest++
		case failover.RefusedWith(err, codeInvalidParams) && highest > 0:
			refused = highest
			highest--
		default:
			e.version.CompareAndSwap(known, highest)
			return err
		}
	}
}

// accountJSON is an account that a transaction names.
type accountJSON struct {
	Key    string `json:"pubkey"`
	Signer bool   `json:"signer"`
}

// blockTx is a transaction in a block with transactionDetails "accounts".
type blockTx struct {
	Transaction struct {
		Accounts   []accountJSON `json:"accountKeys"`
		Signatures []string      `json:"signatures"`
	} `json:"transaction"`
	Meta *txMeta `json:"meta"`
}

// executedOf returns a transaction of a block. One of which the node does not show what it did is returned with
// an *unreadable.
func (e *endpoint) executedOf(tx blockTx) (executedTx, error) {
	keys := make([]string, len(tx.Transaction.Accounts))
	for i, account := range tx.Transaction.Accounts {
		keys[i] = account.Key

		if account.Signer != (i < len(tx.Transaction.Signatures)) {
			return executedTx{}, e.Garbled(
				"a transaction has %d signatures, and account %d fits none",
				len(tx.Transaction.Signatures),
				i,
			)
		}
	}

	return e.executed(tx.Transaction.Signatures, keys, tx.Meta)
}

// checkOpened checks the token accounts that were opened at an address with coin: the node shows no token
// balance before, although there was an account. The transaction before it must show none either, else the node
// left out a balance and what arrived is unknown. That is an *unreadable.
func (d *driver) checkOpened(ctx context.Context, e *endpoint, tx executedTx) error {
	if tx.meta.failed() {
		return nil
	}

	before := map[int]bool{}
	for _, balance := range tx.meta.PreTokenBalances {
		before[balance.AccountIndex] = true
	}

	for _, after := range tx.meta.PostTokenBalances {
		index := after.AccountIndex
		if before[index] || tx.meta.PreBalances[index] == 0 || after.Amount.BaseUnits == 0 ||
			!d.enabled(after) {
			continue
		}

		opened, err := e.openedBy(ctx, tx.keys[index], tx.hash)
		if err != nil {
			return err
		}

		if !opened {
			return &unreadable{tx.hash, "the node left out what " + tx.keys[index].String() + " held before"}
		}
	}

	return nil
}

func (d *driver) enabled(balance tokenBalance) bool {
	key, err := solanago.PublicKeyFromBase58(balance.Mint)
	_, enabled := d.mints[key]

	return err == nil && enabled
}

// openedBy reports whether an account held no tokens before a transaction, by the transaction before it.
func (e *endpoint) openedBy(ctx context.Context, account solanago.PublicKey, hash string) (bool, error) {
	var earlier []signatureInfo

	options := map[string]any{"commitment": newest{e}, "limit": 1, "before": hash}

	err := e.call(ctx, &earlier, "getSignaturesForAddress", account, options)
	if failover.RefusedWith(err, codeUnknownBound) {
		return false, nil // the node has the transaction in its block alone
	}

	if err != nil {
		return false, err
	}

	if len(earlier) == 0 {
		return false, nil
	}

	tx, _, err := e.shownTransaction(ctx, earlier[0].Signature)
	_, isUnread := unreadTx(err)

	switch {
	case isUnread || errors.Is(err, failover.ErrMissing):
		return false, nil // the node does not show what the account held
	case err != nil || tx.meta.PostTokenBalances == nil:
		return false, err
	}

	for _, balance := range tx.meta.PostTokenBalances {
		if tx.keys[balance.AccountIndex] == account {
			return balance.Amount.BaseUnits == 0, nil
		}
	}

	return true, nil
}

// unreadTx returns the entry of chain.Block.Unread for an *unreadable.
func unreadTx(err error) (chain.Unread, bool) {
	u, ok := errors.AsType[*unreadable](err)
	if !ok {
		return chain.Unread{}, false
	}

	return chain.Unread{TxHash: u.hash, Why: u.why}, true
}
