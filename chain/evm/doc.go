// Package evm reads and writes EVM networks (Ethereum, its rollups and its relatives) over JSON-RPC.
//
// It implements chain.Driver and every optional interface that an account network can have: whole blocks
// with the movements of the native coin and of the enabled ERC-20 tokens, the pool, look-up by hash,
// balances at a block, fees, building and sending type-2 transactions, and the steps of a release. It
// holds no state that matters: what it remembers of its endpoints (chain id seen, tip seen, batch size)
// only saves requests.
//
// A node is believed as little as possible. Blocks are read by hash after the first look, receipts must
// belong to the block and explain its logs bloom, and an endpoint whose chain id is not the network's is
// never asked for anything. What cannot be checked is fault.Unavailable, never a guess.
//
// chain/watch and chain/send use this package through the interfaces of package chain alone.
package evm
