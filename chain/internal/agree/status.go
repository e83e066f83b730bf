package agree

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Status returns the status of a transaction, which read reads from one node. Where several nodes are
// configured, an included transaction needs two nodes that agree, and it is final if both say so. A
// transaction is unknown only if all nodes that answer say so.
//
// Errors:
//   - those of failover.Set.Ask;
//   - fault.Unavailable (nodes_disagree): several nodes show it in a block, and no two agree about it;
//   - fault.Unavailable (node_behind): one node shows it in a block, others that answer do not;
//   - fault.Unavailable (nodes_missing): only one node answers.
func Status[N failover.Member](
	ctx context.Context,
	s *failover.Set[N],
	attempts int,
	hash string,
	read func(ctx context.Context, node N) (chain.TxStatus, error),
) (chain.TxStatus, error) {
	said, err := askSeveral(ctx, s, attempts, 0, read, func(said []chain.TxStatus) bool {
		_, agreed := sharedStatus(said)
		return agreed || said[0].State == chain.TxPooled
	})
	if err != nil {
		return chain.TxStatus{}, err
	}

	if status, agreed := sharedStatus(said); agreed {
		return status, nil
	}

	included := slices.DeleteFunc(slices.Clone(said), isNotIncluded)
	pooled := slices.IndexFunc(said, func(s chain.TxStatus) bool { return s.State == chain.TxPooled })

	switch {
	case len(s.Nodes) == 1 || len(included) == 0 && pooled < 0:
		return said[0], nil
	case len(included) == 0:
		return said[pooled], nil
	}

	code, why := "nodes_disagree", "the nodes of network %s say different things of transaction %s"

	switch {
	case len(said) == 1:
		code, why = "nodes_missing", "network %s has no second node that shows transaction %s"
	case len(included) == 1:
		code, why = "node_behind", "another node of network %s does not show transaction %s yet"
	}

	return chain.TxStatus{}, fault.Wrap(chain.ErrNotAgreed, fault.Unavailable, code, why, s.Network, hash)
}

// sharedStatus returns the status of an included transaction that two nodes agree about.
func sharedStatus(said []chain.TxStatus) (status chain.TxStatus, agreed bool) {
	for i, a := range said {
		for _, b := range said[i+1:] {
			if !isNotIncluded(a) && !isNotIncluded(b) && SameStatus(a, b) {
				a.Final = a.Final && b.Final
				return a, true
			}
		}
	}

	return chain.TxStatus{}, false
}

// SameStatus reports whether two nodes agree about the block and the effects of an included transaction.
func SameStatus(a, b chain.TxStatus) bool {
	return a.Block.Hash == b.Block.Hash && a.Reverted == b.Reverted && a.Fee == b.Fee &&
		slices.Equal(a.Transfers, b.Transfers)
}

func isNotIncluded(s chain.TxStatus) bool { return s.State != chain.TxIncluded }

// VerifiedStatus returns the status of a transaction, which read reads from one node, on a network whose
// blocks prove their contents. If one node shows it in a block, other nodes that do not know it are wrong.
// Errors are those of failover.Set.Ask.
func VerifiedStatus[N failover.Member](
	ctx context.Context,
	s *failover.Set[N],
	attempts int,
	read func(ctx context.Context, node N) (chain.TxStatus, error),
) (chain.TxStatus, error) {
	said, err := askSeveral(ctx, s, attempts, 0, read, func(said []chain.TxStatus) bool {
		return !isNotIncluded(said[len(said)-1])
	})
	if err != nil {
		return chain.TxStatus{}, err
	}

	last := said[len(said)-1]
	if isNotIncluded(last) || len(said) == 1 {
		return said[0], nil
	}

	s.DemoteNode("another node shows a transaction in a block")

	return last, nil
}
