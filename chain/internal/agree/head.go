package agree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

const (
	// The depth below the lower of two tips down to which a common block is searched: maxApart blocks, or the
	// blocks of apartFor, whichever is deeper. Nodes that differ for longer are on two branches.
	maxApart = 8
	apartFor = time.Minute
	// tolerated is the time by which a node's newest block may be older than another node's before the node
	// is reported as behind. One block is always tolerated.
	tolerated = 5 * time.Second
)

// HeadReader reads the data that Head compares.
type HeadReader[N any] struct {
	// Head reads one node's head.
	Head func(ctx context.Context, node N) (chain.Head, error)
	// At reads one node's block at a height. Above its tip the error is fault.NotFound or
	// failover.ErrLagging.
	At RefAt[N]
	// Depth is the number of blocks after which a block counts as safe and final at a node that reports none,
	// while another node reports one.
	Depth uint64
}

// Head implements chain.Agreed.AgreedHead: it returns the blocks that two nodes have. It notes which nodes
// are behind, and which are on a branch of their own.
func Head[N failover.Member](
	ctx context.Context,
	s *failover.Set[N],
	reader HeadReader[N],
) (chain.Head, error) {
	var mu sync.Mutex

	heads := map[N]chain.Head{}

	err := s.AskEach(ctx, func(ctx context.Context, node N) error {
		head, err := reader.Head(ctx, node)
		if err != nil {
			return err
		}

		node.State().SawTip(head.Tip.Height)

		mu.Lock()
		defer mu.Unlock()

		heads[node] = head

		return nil
	})
	if err != nil {
		return chain.Head{}, err
	}

	mu.Lock()
	defer mu.Unlock()

	noteBehind(heads)

	if len(heads) == 1 {
		for node, head := range heads {
			if len(s.Nodes) == 1 || s.IsAlone(node) {
				return head, nil
			}
		}

		return chain.Head{}, s.Missing(nil, "the newest block")
	}

	return shared(ctx, s, heads, reader)
}

// shared returns the newest blocks that two nodes have.
func shared[N failover.Member](
	ctx context.Context,
	s *failover.Set[N],
	heads map[N]chain.Head,
	reader HeadReader[N],
) (head chain.Head, _ error) {
	var (
		apart uint64
		group errgroup.Group
	)

	group.Go(func() (err error) {
		head.Tip, apart, err = sharedRef(ctx, s, reader, heads, func(h chain.Head) chain.Ref { return h.Tip })
		return err
	})
	group.Go(func() (err error) {
		head.Safe, _, err = sharedRef(ctx, s, reader, heads, func(h chain.Head) chain.Ref { return h.Safe })
		return err
	})
	group.Go(func() (err error) {
		head.Final, _, err = sharedRef(ctx, s, reader, heads, func(h chain.Head) chain.Ref { return h.Final })
		return err
	})

	if err := group.Wait(); err != nil {
		return chain.Head{}, err
	}

	if apart <= 1 {
		for node := range heads {
			node.State().Note(chain.NodeDisagrees, false, "")
		}
	}

	// While the nodes advance, a block that two of them call safe may be above the newest shared block that
	// was found.
	if head.Safe.Height > head.Tip.Height {
		head.Safe = head.Tip
	}

	if head.Final.Height > head.Tip.Height {
		head.Final = head.Tip
	}

	return head, nil
}

// sharedRef returns the newest block that two nodes have, at or below the blocks that which selects. apart is
// its distance below the lower of these. The block is zero if which selects none at any node. Beyond maxApart
// the distance doubles with each try, so that the block may be that much older. Errors are fault.Unavailable
// (nodes_disagree, nodes_missing).
func sharedRef[N failover.Member](
	ctx context.Context,
	s *failover.Set[N],
	reader HeadReader[N],
	heads map[N]chain.Head,
	which func(chain.Head) chain.Ref,
) (ref chain.Ref, apart uint64, err error) {
	named, order := namedRefs(s, reader, heads, which)
	if named == nil {
		return chain.Ref{}, 0, nil
	}

	lower := named[order[1]]
	oldest := lower.Time // the time of the oldest block that was compared

	for apart = 0; apart <= lower.Height; apart = further(apart) {
		if apart > maxApart && lower.Time.Sub(oldest) >= apartFor {
			break
		}

		seen := map[string]bool{}

		for _, node := range order {
			ref, failed := refOf(ctx, node, named[node], lower.Height-apart, reader.At)

			switch {
			case failed != nil:
				err = failed
			case seen[ref.Hash]:
				return ref, apart, nil
			case ref.Hash != "":
				seen[ref.Hash], oldest = true, ref.Time
			}
		}
	}

	what := fmt.Sprintf("the blocks up to %d", lower.Height)
	if err != nil {
		return chain.Ref{}, 0, s.Missing(err, what)
	}

	for _, node := range order {
		node.State().Note(chain.NodeDisagrees, true, "no other node has "+what)
	}

	return chain.Ref{}, 0, s.Disagree(what)
}

// further returns the next distance below the lower of two tips at which to search.
func further(apart uint64) uint64 {
	if apart < maxApart {
		return apart + 1
	}

	return 2 * apart
}

// namedRefs returns the block that which selects at each node, and the nodes by its height, highest first;
// nil if it selects none at any node. For a node without such a block, while others have one, it takes the
// block at reader.Depth. Such a node must neither leave the other's block unconfirmed nor deny it.
func namedRefs[N failover.Member](
	s *failover.Set[N],
	reader HeadReader[N],
	heads map[N]chain.Head,
	which func(chain.Head) chain.Ref,
) (named map[N]chain.Ref, order []N) {
	named = map[N]chain.Ref{}
	any := false

	for _, node := range s.Nodes { // in a fixed order
		head, answered := heads[node]
		if !answered {
			continue
		}

		named[node] = which(head)
		if named[node].IsZero() {
			named[node] = chain.Ref{
				Height: (head.Tip.Height + 1) - min(head.Tip.Height+1, max(1, reader.Depth)),
			}
		} else {
			any = true
		}

		order = append(order, node)
	}

	if !any {
		return nil, nil
	}

	slices.SortStableFunc(order, func(a, b N) int { return cmp.Compare(named[b].Height, named[a].Height) })

	return named, order
}

// refOf returns a node's block at a height; zero above the block that it reported, and if it has no block
// there any more.
func refOf[N failover.Member](
	ctx context.Context,
	node N,
	named chain.Ref,
	height uint64,
	at RefAt[N],
) (chain.Ref, error) {
	switch {
	case height > named.Height:
		return chain.Ref{}, nil
	case height == named.Height && named.Hash != "":
		return named, nil
	}

	ref, err := at(ctx, node, height)
	if errors.Is(err, fault.NotFound) || errors.Is(err, failover.ErrLagging) {
		return chain.Ref{}, nil
	}

	return ref, err
}

// noteBehind notes which nodes are behind the one with the newest block, and which are not.
func noteBehind[N failover.Member](heads map[N]chain.Head) {
	var newest chain.Ref

	for _, head := range heads {
		if head.Tip.Height > newest.Height {
			newest = head.Tip
		}
	}

	for node, head := range heads {
		isBehind := newest.Height > head.Tip.Height+1 && newest.Time.Sub(head.Tip.Time) > tolerated
		node.State().Note(chain.NodeBehind, isBehind, fmt.Sprintf(
			"its newest block is %d, another node's is %d", head.Tip.Height, newest.Height,
		))
	}
}
