// Package bitcoin reads and writes Bitcoin networks over a node's JSON-RPC.
//
// It implements chain.Driver and the optional interfaces that a network of outputs can have: whole blocks
// with every output as a transfer and every input as a spend, the pool, look-up by hash, fees, coin
// selection, building and sending (with replacement by fee), and the one step of a release. Bitcoin Core
// and its derivatives from version 22 on are what it is written for. It holds no state that matters:
// what it remembers (which pool transactions it has read, in which block a transaction of ours lies)
// only saves requests. Coins belong to chain/send; Build is given them.
//
// Addresses of ours are P2WPKH (BIP-84) or, with Config.Taproot, P2TR without scripts (BIP-86). Every
// standard address can be paid.
//
// A node is believed as little as possible. A block's header is hashed again, its transactions are
// decoded from their bytes and must add up to the header's Merkle root, and a node whose genesis block is
// not the network's is never asked for anything. What cannot be checked is fault.Unavailable, never a guess.
//
// chain/watch and chain/send use this package through the interfaces of package chain alone.
package bitcoin
