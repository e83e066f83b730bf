// Package failover calls the nodes of one network in turn until one answers. The drivers that speak
// to nodes over HTTP (evm, tron, bitcoin, solana) share it; nothing else imports it.
//
// A Set prefers nodes in one of two orders. Best health first suits networks whose answers name
// their block (EVM, Tron): returning to the preferred node costs nothing. Where answers depend on
// one node's mempool or ledger (Bitcoin, Solana), the node that answered last is called first.
//
// A node that refuses calls is called as often as it answered, unless it refuses as large a share then: pace.go.
//
// set.go holds the failover loop, throttle.go repeats refused calls, send.go sends to every node, node.go holds the
// health of one node, failure.go the errors. secrets.go keeps API keys out of messages, and config.go holds defaults
// that all drivers share.
package failover
