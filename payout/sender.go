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
	// MasterWallet returns the master wallet of an account, given by its index, on a network. A signer
	// without such a key is fault.Forbidden.
	MasterWallet(ctx context.Context, network string, accountIndex uint32) (chain.Party, error)

	// EnqueueTx stores a transaction to be signed and sent.
	EnqueueTx(ctx context.Context, tx wallet.Tx, t wallet.Transaction) (wallet.Transaction, error)

	// CompareWallet returns fault.State until this process has read a network up to its previous position,
	// and its pool holds no unrecorded transaction of the wallet. It asks the node until then.
	CompareWallet(ctx context.Context, network string, address chain.Address) error

	// CancelTx fails a transaction that is not signed. A signed one is fault.State with code
	// transaction_signed. One that may have been sent by records that are lost has code
	// transaction_awaiting_review.
	CancelTx(ctx context.Context, tx wallet.Tx, transactionID string) (wallet.Transaction, error)

	// ReserveTx reserves an amount (base units) of a wallet's balance for an object, or replaces its
	// reservation. A balance that is too small is fault.State with code insufficient_balance.
	ReserveTx(
		ctx context.Context,
		tx wallet.Tx,
		owner event.Owner,
		network string,
		address chain.Address,
		assetID, objectID string,
		amount chain.Amount,
	) error

	// UnreserveTx ends the reservation of an object; without one it does nothing.
	UnreserveTx(
		ctx context.Context,
		tx wallet.Tx,
		network string,
		address chain.Address,
		assetID, objectID string,
	) error

	// TrackTx starts reading the balances of a wallet, and shows them to the owner.
	TrackTx(ctx context.Context, tx wallet.Tx, owner event.Owner, network string, party chain.Party) error

	// RefreshBalances reads the balances of wallets from the network and stores them. Without parties, it
	// does so for all wallets that are tracked there.
	RefreshBalances(ctx context.Context, network string, parties ...chain.Party) error

	// SpendableCoins returns the coins of a wallet that a new transaction may spend now; none on networks
	// without outputs. waiting is set while the wallet's own unconfirmed transactions hold other coins, or
	// make them as change.
	SpendableCoins(
		ctx context.Context,
		network string,
		wallet chain.Party,
	) (coins []chain.Coin, waiting bool, err error)

	// HasBalances reports whether the balances of a network's wallets can be known.
	HasBalances(network string) bool
}
