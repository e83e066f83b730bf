package health

import "time"

// NodeReport is what was last seen of one node of a network.
type NodeReport struct {
	// Host names the node without its secrets.
	Host string
	// Version is the software that the node names; empty while it named none.
	Version string
	// Problem is why the node is not believed, a sentence for people; empty while it is. Since is when that began.
	Problem string
	Since   time.Time
	// Warnings are what the node warns of itself.
	Warnings []string
}
