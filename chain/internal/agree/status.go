package agree

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Status returns the status of a transaction as a node says it, read by read. That it is included is two nodes' word,
// where several are configured; it is final when both say so. That it is unknown is the word of all that answer.
//
// Errors:
//   - those of failover.Set.Ask;
//   - fault.Unavailable (nodes_disagree): those that show it in a block show something else of it each;
//   - fault.Unavailable (node_behind): one alone shows it in a block, others that answer do not;
//   - fault.Unavailable (nodes_missing): one alone answers.
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

// sharedStatus returns what two nodes say alike of an included transaction.
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

// SameStatus reports whether two nodes say the same of what an included transaction did, and where.
func SameStatus(a, b chain.TxStatus) bool {
	return a.Block.Hash == b.Block.Hash && a.Reverted == b.Reverted && a.Fee == b.Fee &&
		slices.Equal(a.Transfers, b.Transfers)
}

func isNotIncluded(s chain.TxStatus) bool { return s.State != chain.TxIncluded }

// VerifiedStatus returns the status of a transaction as a node says it, read by read, of a network whose blocks prove
// what is in them: one node that shows it in a block is right against others that do not know it. Errors are those of
// failover.Set.Ask.
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
