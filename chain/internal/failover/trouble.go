package failover

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// What is wrong with a node, as far as its answers show.

// trouble is since when a node has one, and what was last seen of it.
type trouble struct {
	since time.Time
	why   string
}

// worstFirst orders troubles: of several a node is shown with the first.
var worstFirst = []chain.NodeTrouble{
	chain.NodeForeign,
	chain.NodeForked,
	chain.NodeSilent,
	chain.NodeDisagrees,
	chain.NodeBehind,
	chain.NodeRefuses,
	chain.NodeUncertain,
}

// NoteAnswer notes what an answer, or the lack of one, shows of the node. One that the caller did not wait for shows
// nothing.
func (n *Node) NoteAnswer(ctx context.Context, err error) {
	_, foreign := errors.AsType[*Mismatch](err)
	failure, _ := errors.AsType[*Failure](err)

	switch {
	case failure != nil && failure.Trouble != "":
		n.clear(chain.NodeSilent)
		n.note(failure.Trouble, failure.What)
	case foreign:
		n.clear(chain.NodeSilent)
		n.note(chain.NodeForeign, err.Error())
	case fault.Code(err) == "nodes_disagree": // it answered, as another one did
		n.clear(chain.NodeSilent)
		n.note(chain.NodeDisagrees, err.Error())
	case err == nil || isAnswer(err) || rankOf(err) != rankFailed:
		n.clear(chain.NodeSilent)
		n.clear(chain.NodeForeign)
	case ctx.Err() == nil:
		n.note(chain.NodeSilent, err.Error())
	}
}

// NoteVersion notes the software that the node names.
func (n *Node) NoteVersion(version string) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.version = version
}

// NoteWarnings notes what the node warns of itself.
func (n *Node) NoteWarnings(warnings []string) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.warnings = warnings
}

// Note notes a trouble of the node, or that it is over.
func (n *Node) Note(kind chain.NodeTrouble, is bool, why string) {
	if is {
		n.note(kind, why)
	} else {
		n.clear(kind)
	}
}

func (n *Node) note(kind chain.NodeTrouble, why string) {
	n.mu.Lock()
	defer n.mu.Unlock()

	known, has := n.troubles[kind]
	if !has {
		known.since = time.Now()
	}

	if n.troubles == nil {
		n.troubles = map[chain.NodeTrouble]trouble{}
	}

	known.why = why
	n.troubles[kind] = known
}

func (n *Node) clear(kind chain.NodeTrouble) {
	n.mu.Lock()
	defer n.mu.Unlock()

	delete(n.troubles, kind)
}

// isMissingFor reports whether the node has given no usable answer for a time.
func (n *Node) isMissingFor(d time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	for _, kind := range []chain.NodeTrouble{chain.NodeSilent, chain.NodeForeign} {
		if known, has := n.troubles[kind]; has && time.Since(known.since) >= d {
			return true
		}
	}

	return false
}

// shown returns the node's state.
func (n *Node) shown() chain.NodeState {
	n.mu.Lock()
	defer n.mu.Unlock()

	state := chain.NodeState{Name: n.Host, Tip: n.tip, Version: n.version, Warnings: slices.Clone(n.warnings)}

	for _, kind := range worstFirst {
		if known, has := n.troubles[kind]; has {
			state.Trouble, state.Since, state.Why = kind, known.since, n.Clean(known.why)
			break
		}
	}

	return state
}
