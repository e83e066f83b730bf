// Package tron reads and writes Tron networks over the HTTP interface of a full node: one's own
// java-tron, or a provider such as TronGrid.
//
// It implements chain.Driver, whole blocks with the movements of TRX and of the enabled TRC-20
// tokens, look-up by hash, balances at a block, fees, building and sending of transfers, and the
// steps of a release. There is no pool to read (a node hands it out one transaction at a time), no
// nonce, and no replacement: a transaction carries an expiration, and only when a solidified block
// is past it is the transaction proven dead.
//
// A node is believed as little as possible. Transactions are read from their bytes, which must hash
// to their id; receipts must cover every transaction of their block; an endpoint whose genesis
// block is not the network's is never asked for anything. What cannot be checked is
// fault.Unavailable, never a guess. Tron's block headers commit to no logs: that a node leaves one
// out shows only in balances.
//
// docs/tron.md says what was tested against what. chain/watch and chain/send use this package
// through the interfaces of package chain alone.
package tron
