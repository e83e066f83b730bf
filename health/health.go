// Package health holds the report of Engine.Health: the state of every network. It imports nothing
// of this module, so that handlers and hosts can use its types alone.
package health

import (
	"time"
)

// Network is the state of one network.
type Network struct {
	Network string
	// Height is the height of the last block whose payments are stored, Tip that of the newest
	// block on the node.
	Height, Tip uint64
	// Behind is Tip − Height, in blocks; 0 when Height is above Tip.
	Behind uint64
	// Stopped is why the network is not read any more; empty while it runs. See Resume.
	Stopped string
	// ReadAt is when the cursor last moved.
	ReadAt time.Time
	// Follower is this process's state; other processes may follow the network instead.
	Follower Follower
}

// Wallet is a wallet that does not send.
type Wallet struct {
	// Network is the slug, Address the wallet's, Account the id of the account that owns it.
	Network, Address, Account string
	// StuckSince is when the transaction was signed that no block holds and all later ones wait for.
	StuckSince time.Time
	// Reason says why, for people.
	Reason string
}

// Report is the state of every network.
type Report struct {
	Networks []Network
	// Wallets are those that do not send; empty when all is well.
	Wallets []Wallet
}

// OK reports whether every network is read and none is stopped.
func (h Report) OK() bool {
	for _, n := range h.Networks {
		if n.Stopped != "" || n.Follower.LastError != "" {
			return false
		}
	}

	return true
}
