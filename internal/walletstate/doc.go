// Package walletstate holds the moves of the records that chain/wallet declares: transactions, balances,
// wallets, and the recorded spends of our addresses.
//
// The moves of a transaction are pure and idempotent. They are legal from the states that their comments
// name. From any other state they return fault.State with code transaction_state and change nothing. No move
// except Abandon leads back to wallet.Queued: bytes that were signed stay signed. The moves are internal
// because no host and no store makes them.
package walletstate
