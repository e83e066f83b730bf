// Package chain defines what all networks have in common: amounts, networks, assets, addresses, blocks,
// transfers, and the interfaces that a driver and a signer implement.
//
// Nothing here talks to a network. The drivers (chain/evm, chain/bitcoin, chain/solana, chain/tron and
// the in-memory chain/sim) implement Driver and as many of the optional interfaces as their network
// allows. internal/follow (money in) and internal/txmgr (money out) are written against these interfaces
// alone, so that every rule about reorganisations, nonces and replacement exists once.
//
// A new ability is a new small interface found by assertion, never a new method on an old one.
package chain
