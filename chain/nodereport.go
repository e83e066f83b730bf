package chain

import "time"

// NodeReporter tells what a driver last saw of its nodes, for Health.
type NodeReporter interface {
	// NodeReports returns a report for each configured node, in the order of configuration. It does no I/O.
	NodeReports() []NodeReport
}

// NodeReport is what a driver last saw of one node.
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
