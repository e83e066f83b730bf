// Package bitcoin is the chain driver of Bitcoin networks, over the JSON-RPC of Bitcoin Core from
// version 22 on and its derivatives, or of btcd.
//
// It implements chain.Driver and the optional interfaces of a UTXO network. It reads whole blocks with each
// output as a transfer and each input as a spend, the mempool, and transactions by hash. It estimates fees,
// selects coins, builds and broadcasts transactions, bumps them by replacement (RBF) and by a child (CPFP),
// and plans the one step of a release.
//
// The driver stores nothing that matters: what it remembers only saves requests. The records of coins belong
// to internal/txmgr, and Build receives them. internal/follow and internal/txmgr use this package through the
// interfaces of package chain alone.
//
// Our addresses are P2WPKH (BIP-84) or, with Config.Taproot, P2TR without scripts (BIP-86). Every standard
// address can be paid.
//
// Answers of nodes are verified. A block must have the hash and the proof of work of its header. Its
// transactions are decoded from their bytes and must have the header's Merkle root, their witnesses the
// commitment of the coinbase (BIP-141), which begins with the height (BIP-34). The header's target must be
// exactly what the chain asks for (retarget.go). A node with another genesis block is not used. An answer that
// cannot be verified is fault.Unavailable.
//
// What a node says about a hash is a hint of where to look: Status and Transaction report a transaction as
// included only out of a verified block. Status never answers chain.TxDead, which only the rows of blocks
// prove.
//
// What a node answers is verified with the codec, the keys and the block index that building and signing use:
// all of it is one package because each part reads the others' private records, and a host imports one driver.
package bitcoin
