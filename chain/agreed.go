package chain

import (
	"context"
	"errors"
	"time"
)

// ErrNotAgreed is what errors.Is finds in the error of a read that two nodes have to answer alike, and do not.
var ErrNotAgreed = errors.New("no two nodes agree")

// Agreed answers the reads that confirm money: what two configured nodes give alike, or what the only configured one
// gives. Callers do not learn how many nodes there are. Its errors, where two are needed and do not agree, are
// fault.Unavailable and ErrNotAgreed:
//   - nodes_missing: fewer than two nodes answer, or have got that far;
//   - nodes_disagree: several answer, and no two alike.
type Agreed interface {
	// AgreedHead returns the highest block that two nodes have, and the lower of what two say of the safe and the
	// final block. A safe or final block that fewer than two nodes name is zero. It asks every node for its tip.
	AgreedHead(ctx context.Context) (Head, error)
	// AgreedBlock returns the block of a reference as two nodes show it: of its transactions at least those with the
	// given hashes. Without hashes it shows no transactions, and costs no more than a header. One of the hashes
	// that it does not show is not in the block; one of which no two nodes show the same is in Block.Unread.
	// fault.NotFound: two nodes, or the only one, have another block at that height.
	AgreedBlock(ctx context.Context, at Ref, hashes []string) (Block, error)
	// Nodes returns the state of each configured node, in the order of configuration. It does no I/O.
	Nodes() []NodeState
}

// NodeTrouble is what is wrong with a node.
type NodeTrouble string

// The troubles of nodes. Healthy nodes have none, "".
const (
	// NodeSilent does not answer, or gives no usable answer.
	NodeSilent NodeTrouble = "silent"
	// NodeForeign serves another network.
	NodeForeign NodeTrouble = "foreign"
	// NodeBehind has a tip well below that of another node.
	NodeBehind NodeTrouble = "behind"
	// NodeForked follows another chain than another node, with no more proven work.
	NodeForked NodeTrouble = "forked"
	// NodeDisagrees says something else than another node does. Either may be wrong.
	NodeDisagrees NodeTrouble = "disagrees"
	// NodeUncertain names a safe or final block that cannot be told from its tip.
	NodeUncertain NodeTrouble = "uncertain"
	// NodeRefuses refuses calls for the moment, as too many. They are repeated.
	NodeRefuses NodeTrouble = "refuses"
)

// NodeState is what a driver knows about one of its nodes.
type NodeState struct {
	// Name is the node's host, without secrets.
	Name string
	// Tip is the height of the newest block that the node showed; 0 for none.
	Tip uint64
	// Trouble is what is wrong with it; empty while nothing is. Since is since when, and Why says more.
	Trouble NodeTrouble
	Since   time.Time
	Why     string
	// Alone is set while the network goes on with this node's verified blocks, as the others have been missing for
	// longer than configured.
	Alone bool
	// Version is the software that the node names, and Warnings are what it warns of itself; empty where the driver
	// does not ask, or the node names none. Neither decides anything.
	Version  string
	Warnings []string
}
