package payout

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

// sender makes the transactions that pay payouts and refunds, and keeps the balances of the wallets that
// they are paid from. The engine injects it.
type sender interface {
	// MasterWallet returns the master wallet of an account, named by its index, on a network. A signer without
	// such a key is fault.Forbidden.
	MasterWallet(ctx context.Context, network string, accountIndex uint32) (chain.Party, error)

	// EnqueueTx stores a transaction to be signed and sent.
	EnqueueTx(ctx context.Context, tx wallet.Tx, t wallet.Transaction) (wallet.Transaction, error)

	// CompareWallet returns fault.State until this process has read a network up to where it was, and its
	// pool holds nothing of the wallet that is not on record. It asks the node until that is so.
	CompareWallet(ctx context.Context, network string, address chain.Address) error

	// CancelTx fails a transaction that is not signed; a signed one is fault.State with code
	// transaction_signed, one that lost records may have sent with code transaction_awaiting_review.
	CancelTx(ctx context.Context, tx wallet.Tx, transactionID string) (wallet.Transaction, error)

	// ReserveTx promises an amount (base units) of a wallet's balance to an object, or sets what was
	// promised anew. What is missing is fault.State with code insufficient_balance.
	ReserveTx(
		ctx context.Context,
		tx wallet.Tx,
		owner event.Owner,
		network string,
		address chain.Address,
		assetID, objectID string,
		amount chain.Amount,
	) error

	// UnreserveTx gives the promise to an object back; without one it does nothing.
	UnreserveTx(
		ctx context.Context,
		tx wallet.Tx,
		network string,
		address chain.Address,
		assetID, objectID string,
	) error

	// TrackTx has the balances of a wallet read from now on and shown to the owner.
	TrackTx(ctx context.Context, tx wallet.Tx, owner event.Owner, network string, party chain.Party) error

	// RefreshBalances reads the balances of wallets from the network and stores them; of all wallets
	// that are tracked there when none is named.
	RefreshBalances(ctx context.Context, network string, parties ...chain.Party) error

	// SpendableCoins returns the coins of a wallet that a new transaction may spend now; none where no outputs
	// are spent. waiting is set while others are taken by transactions of its own that wait for a block, or are their
	// change.
	SpendableCoins(
		ctx context.Context,
		network string,
		wallet chain.Party,
	) (coins []chain.Coin, waiting bool, err error)

	// HasBalances reports whether the balances of a network's wallets can be known.
	HasBalances(network string) bool
}
