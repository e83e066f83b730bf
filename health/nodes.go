package health

import "time"

// Node is one node of a network, as this process sees it.
type Node struct {
	// Name is the node's host, without secrets.
	Name string
	// Tip is the height of the newest block that the node returned; 0 for none.
	Tip uint64
	// Trouble is the node's problem: "silent", "foreign", "forked", "behind", "disagrees", "refuses" or
	// "uncertain"; empty if there is none. See chain.NodeTrouble. Since is when it began, and Why explains it.
	Trouble string
	Since   time.Time
	Why     string
	// Alone is set while the network goes on with only this node's verified blocks, because all others are
	// missing.
	Alone bool
	// Version is the node's software, and Warnings are the node's own warnings; empty if they are not known
	// (all networks but Bitcoin).
	Version  string
	Warnings []string
}

// Ready reports whether the network is read, and can confirm money.
func (n Network) Ready() bool {
	return n.Stopped == "" && !n.Stale && n.Follower.LastError == "" && n.Unagreed == ""
}
