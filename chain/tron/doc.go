// Package tron is the chain driver of Tron networks, over the HTTP API of a full node: java-tron,
// or a provider such as TronGrid.
//
// It implements chain.Driver and the optional interfaces of an account network. It reads whole
// blocks with the transfers of TRX and of the enabled TRC-20 tokens, transactions by hash, and
// balances at a block. It estimates fees, builds and broadcasts transfers, and plans the steps of a
// release.
//
// Tron has no nonce and no replacement. A transaction has an expiration, and it is proven dead only when a
// solidified block is past it. The pool is not read, since nodes list it one transaction at a time.
//
// Answers of nodes are verified. Transactions are decoded from their bytes, which must hash to their id, and
// receipts must cover each transaction of a block. A node with another genesis block is not used. An answer
// that cannot be verified is fault.Unavailable. Block headers do not commit to logs: only balances show an
// omitted one.
//
// docs/tron.md lists what was tested against what. internal/follow and internal/txmgr use this
// package through the interfaces of package chain alone.
package tron
