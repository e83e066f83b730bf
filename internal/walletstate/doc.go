// Package walletstate holds the moves of the records that chain/wallet declares: transactions, balances, wallets, and
// what the chain says of them.
//
// The moves of a transaction are pure and idempotent. They are legal from the states that their comments name; from any
// other state they return fault.State with code transaction_state and change nothing. There is no way back to
// wallet.Queued: bytes that were signed stay signed. They live here because no host and no store makes them.
package walletstate
