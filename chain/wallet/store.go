package wallet

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// Reader reads transactions, wallets, balances and coins.
type Reader interface {
	TransactionReader
	WalletReader
	CoinReader
	OutgoingReader
	scan.CursorReader
}

// TransactionReader reads transactions of ours.
type TransactionReader interface {
	// Transaction returns a transaction, or fault.NotFound.
	Transaction(ctx context.Context, id string) (Transaction, error)
	// TransactionsByID returns the transactions with these ids that exist, each once, ordered by id.
	TransactionsByID(ctx context.Context, ids []string) ([]Transaction, error)
	// TransactionsOf returns the rows of one object, oldest first.
	TransactionsOf(ctx context.Context, objectID string) ([]Transaction, error)
	// Transactions returns a page of all rows of one network, newest first.
	Transactions(ctx context.Context, network, after string, limit int) ([]Transaction, error)
	// DueTransactions returns rows of one network whose DueAt is set and at or before now, oldest id first.
	// They are live, or were confirmed, reverted or displaced not long ago. Rows that failed otherwise have
	// no DueAt.
	DueTransactions(ctx context.Context, network string, now time.Time, limit int) ([]Transaction, error)
	// DueNetworks returns the networks that have rows with a DueAt, each once, in order.
	DueNetworks(ctx context.Context) ([]string, error)
	// LiveTransactions returns all live rows that one wallet pays, oldest first.
	LiveTransactions(ctx context.Context, network string, from chain.Address) ([]Transaction, error)
	// LiveTopUps returns all live rows of kind TopUp of a network, of all wallets, oldest first.
	LiveTopUps(ctx context.Context, network string) ([]Transaction, error)
	// OwnTransactions returns the transactions of ours that have an attempt with one of these hashes, by
	// hash.
	OwnTransactions(ctx context.Context, network string, hashes []string) (map[string]OwnTransaction, error)
}

// WalletReader reads wallets and their balances.
type WalletReader interface {
	// Wallet returns a wallet; ok is false, and w zero, before its first transaction.
	Wallet(ctx context.Context, network string, address chain.Address) (w Wallet, ok bool, err error)
	// FrozenWallets returns up to limit frozen wallets of a network, by address.
	FrozenWallets(ctx context.Context, network string, limit int) ([]Wallet, error)
	// Balance returns a wallet's balance row; ok is false, and b zero, when there is none yet.
	Balance(
		ctx context.Context,
		network string,
		address chain.Address,
		assetID string,
	) (b Balance, ok bool, err error)
	// Balances returns every balance row of an owner, by network and asset.
	Balances(ctx context.Context, owner event.Owner) ([]Balance, error)
	// BalancesOf returns every balance row of a network, of all owners, in any order.
	BalancesOf(ctx context.Context, network string) ([]Balance, error)
}

// CoinReader reads coins.
type CoinReader interface {
	// Coins returns the unspent coins of an address, in any order.
	Coins(ctx context.Context, network string, address chain.Address) ([]Coin, error)
	// CoinsOf returns the outputs of the transactions with these hashes, spent ones included, each once, in
	// any order.
	CoinsOf(ctx context.Context, network string, hashes []string) ([]Coin, error)
	// UnconfirmedCoins returns the coins that are in no block, in any order.
	UnconfirmedCoins(ctx context.Context, network string) ([]Coin, error)
	// CoinsAbove returns the coins that were made or spent in blocks above a height, in any order.
	CoinsAbove(ctx context.Context, network string, height uint64) ([]Coin, error)
}

// OutgoingReader reads the recorded spends of addresses of ours.
type OutgoingReader interface {
	// OutgoingByKey returns the rows of a network with these keys (the key of a chain.Spend), in any order.
	OutgoingByKey(ctx context.Context, network string, keys []string) ([]Outgoing, error)
	// OutgoingByHash returns the rows of a network of transactions with these hashes, in any order.
	OutgoingByHash(ctx context.Context, network string, hashes []string) ([]Outgoing, error)
	// OutgoingOf returns the rows of an address, lowest block and then key first: up to limit rows in
	// blocks at or above a height.
	OutgoingOf(
		ctx context.Context,
		network string,
		address chain.Address,
		from uint64,
		limit int,
	) ([]Outgoing, error)
	// OutgoingAbove returns the rows of a network in blocks above a height, in any order.
	OutgoingAbove(ctx context.Context, network string, height uint64) ([]Outgoing, error)
	// UnrecordedOutgoing returns Unrecorded rows of a network, lowest block and then key first: rows that
	// nobody has acknowledged, and rows in blocks made at or after a time. Unless address is empty, it
	// returns only the rows of that address.
	UnrecordedOutgoing(
		ctx context.Context,
		network string,
		address chain.Address,
		since time.Time,
	) ([]Outgoing, error)
}

// Tx reads and writes all that one operation on transactions may touch. The …ForUpdate reads lock the row.
type Tx interface {
	Reader
	lease.Tx
	event.Appender
	PutTransaction(ctx context.Context, t *Transaction) error
	// PutAttemptHash stores (network, hash) as ours, or returns fault.Duplicate when it is stored already:
	// two equal transactions never become one.
	PutAttemptHash(ctx context.Context, network, hash, transactionID string, kind Kind) error
	PutWallet(ctx context.Context, w *Wallet) error
	// BalanceForUpdate is Balance with the row locked until the transaction ends.
	BalanceForUpdate(
		ctx context.Context,
		network string,
		address chain.Address,
		assetID string,
	) (b Balance, ok bool, err error)
	PutBalance(ctx context.Context, b *Balance) error
	PutCoin(ctx context.Context, c *Coin) error
	// DeleteCoin deletes a coin; an absent one is no error.
	DeleteCoin(ctx context.Context, network string, outpoint chain.Outpoint) error
	PutOutgoing(ctx context.Context, o *Outgoing) error
	// DeleteOutgoing deletes a row; an absent one is no error.
	DeleteOutgoing(ctx context.Context, network, key string) error
}
