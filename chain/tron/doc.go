// Package tron is the chain driver of Tron networks, over the HTTP API of a full node: java-tron,
// or a provider such as TronGrid.
//
// It implements chain.Driver and the optional interfaces of an account network. It reads whole
// blocks with the transfers of TRX and of the enabled TRC-20 tokens, transactions by hash, and
// balances at a block. It estimates fees, builds and broadcasts transfers, and plans the steps of a
// release.
//
// Tron has no nonce and no replacement. A transaction has an expiration, and it is dead once final blocks up
// to it were read without the transaction; Status never says so. The pool is not read, since nodes list it
// one transaction at a time.
//
// Answers of nodes are verified. The header of a block must hash to its id, and its transactions with their
// signatures and results to the header's transaction root. Transactions are decoded from their bytes, which
// must hash to their id. Receipts must cover each transaction of a block and have its result. That a witness
// of the network signed the header is not checked. A node with another genesis block is not used. An answer
// that cannot be verified is fault.Unavailable. Block headers do not commit to logs and internal transactions:
// only balances show an omitted one.
//
// docs/tron.md lists what was tested against what. internal/follow and internal/txmgr use this
// package through the interfaces of package chain alone.
//
// It is one package because reading, sending and planning share one pool of nodes and one wire format, and a
// host imports one driver.
package tron
