// Package bitcoin is the chain driver of Bitcoin networks, over the JSON-RPC of Bitcoin Core from
// version 22 on and its derivatives, or of btcd.
//
// It implements chain.Driver and the optional interfaces of a UTXO network. It reads whole blocks with each
// output as a transfer and each input as a spend, the mempool, and transactions by hash. It estimates fees,
// selects coins, builds and broadcasts transactions, bumps them by replacement (RBF) and by a child (CPFP),
// and plans the one step of a release.
//
// The driver stores nothing that must survive: its caches only save requests. internal/txmgr records the
// coins and passes them to Build. internal/follow and internal/txmgr use this package only through the
// interfaces of package chain.
//
// Our addresses are P2WPKH (BIP-84) or, with Config.Taproot, P2TR without scripts (BIP-86). Every standard
// address can be paid.
//
// Answers of nodes are verified. A block must have the hash and the proof of work of its header. Its
// transactions are decoded from their bytes and must have the header's Merkle root. Their witnesses must
// match the commitment in the coinbase (BIP-141), and the coinbase must begin with the height (BIP-34). The
// header's target must be exactly the one that the chain requires (retarget.go). A node with another genesis
// block is not used. An answer that cannot be verified is fault.Unavailable.
//
// A node's answer about a hash only says where to look: Status and Transaction report a transaction as
// included only out of a verified block. Status never answers chain.TxDead, which only the rows of blocks
// prove.
//
// It is one package because the parts share private records: answers are verified with the codec, the keys
// and the block index that building and signing use. A host imports one driver.
package bitcoin
