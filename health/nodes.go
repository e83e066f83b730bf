package health

import "time"

// Node is one node of a network, as this process sees it.
type Node struct {
	// Name is the node's host, without secrets.
	Name string
	// Tip is the height of the newest block that it showed; 0 for none.
	Tip uint64
	// Trouble is what is wrong with it: "silent", "foreign", "forked", "behind", "disagrees", "refuses" or "uncertain";
	// empty while nothing is. See chain.NodeTrouble. Since is since when, and Why says more.
	Trouble string
	Since   time.Time
	Why     string
	// Alone is set while the network goes on with this node's verified blocks, as all others are missing.
	Alone bool
	// Version is the software that the node names, and Warnings are what it warns of itself; empty where that is not
	// known (all but Bitcoin).
	Version  string
	Warnings []string
}

// Ready reports whether the network is read, and what confirms money on it goes on.
func (n Network) Ready() bool {
	return n.Stopped == "" && !n.Stale && n.Follower.LastError == "" && n.Unagreed == ""
}
