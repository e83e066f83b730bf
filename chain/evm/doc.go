// Package evm is the driver of EVM networks (Ethereum, its rollups, Polygon, BNB Smart Chain) over
// JSON-RPC.
//
// It implements chain.Driver and the optional interfaces of an account network. It reads blocks with
// the transfers of the native coin and of enabled ERC-20 tokens, the mempool, single transactions,
// and balances at a block. It estimates fees, sends type-2 transactions and plans releases.
//
// internal/follow, internal/txmgr and internal/sweep use it through the interfaces of package chain
// only. Keys stay with chain.Signer.
//
// A Driver keeps no state that must survive: it remembers data about its nodes (chain id, tip, batch
// size) only to save requests.
//
// Node answers are verified. Blocks are checked against their header: its hash, the roots of transactions and
// receipts, and the senders' signatures. A node with another chain id is never asked for anything else. An
// answer that fails a check is fault.Unavailable, never a guess. Parts that cannot be checked are listed in
// chain.Block.Unverified. docs/verification.md has the details.
//
// It is one package because the verification of blocks, the balances and the sending share one pool of nodes
// and one wire format, and a host imports one driver.
package evm
