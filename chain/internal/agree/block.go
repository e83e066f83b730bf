package agree

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// RefAt reads the block at a height from one node.
type RefAt[N any] func(ctx context.Context, node N, height uint64) (chain.Ref, error)

// Ref returns nil if two nodes have a block at its height, or if the only configured node has it. proven is
// set where blocks are verified; see failover.Subject. Errors:
//   - those of failover.Agree;
//   - fault.NotFound (block_unknown): two nodes, or the only one, have another block.
//
// A node must have shown the block to the caller. If two nodes have another one, the preferred node is
// demoted.
func Ref[N failover.Member](
	ctx context.Context,
	s *failover.Set[N],
	attempts int,
	at chain.Ref,
	proven bool,
	refAt RefAt[N],
) error {
	subject := failover.Subject{
		What:   fmt.Sprintf("block %d", at.Height),
		Height: at.Height,
		Proven: proven,
	}

	hash, err := failover.Agree(
		ctx, s, attempts, subject,
		func(ctx context.Context, node N) (string, error) {
			ref, err := refAt(ctx, node, at.Height)
			return ref.Hash, err
		},
	)

	switch {
	case err != nil:
		return err
	case hash == at.Hash:
		return nil
	case len(s.Nodes) > 1:
		s.DemoteNode("two nodes have another block than it showed: " + at.Hash)
	}

	return fault.New(
		fault.NotFound, "block_unknown", "network %s has block %s at height %d, not %s",
		s.Network, hash, at.Height, at.Hash,
	)
}

// VerifiedBlock implements chain.Agreed.AgreedBlock for a network whose blocks prove their contents. Two
// nodes must have the block (Ref), and a node other than the preferred one gives the contents. If these
// cannot be verified, two nodes must show them alike (Block). read returns fault.NotFound if its node has
// another block.
func VerifiedBlock[N failover.Member](
	ctx context.Context,
	s *failover.Set[N],
	attempts int,
	at chain.Ref,
	hashes []string,
	refAt RefAt[N],
	read func(ctx context.Context, node N) (chain.Block, error),
) (block chain.Block, err error) {
	if err := Ref(ctx, s, attempts, at, true, refAt); err != nil || len(hashes) == 0 {
		return chain.Block{Ref: headerOnly(at, err)}, err
	}

	err = s.AskOthers(ctx, at.Height, func(ctx context.Context, node N) (err error) {
		if block, err = read(ctx, node); errors.Is(err, fault.NotFound) {
			err = failover.ErrLagging // two others have the block
		}

		return err
	})

	switch {
	case err != nil:
		return chain.Block{}, err
	case block.Unverified == "" || len(s.Nodes) == 1:
		return block, nil
	}

	return Block(ctx, s, attempts, at.Height, at, read)
}

// headerOnly returns the reference if there is no error, and a zero one otherwise.
func headerOnly(at chain.Ref, err error) chain.Ref {
	if err != nil {
		return chain.Ref{}
	}

	return at
}

// Block returns the contents of a block that two nodes show alike (Merge), or those of the only configured
// node. It reads each node with read, which returns fault.NotFound if the node has another block at that
// height. Errors:
//   - those of failover.Set.Ask;
//   - fault.NotFound: two nodes, or the only one, have another block;
//   - fault.Unavailable (nodes_missing, nodes_disagree): fewer than two nodes show the block.
func Block[N failover.Member](
	ctx context.Context,
	s *failover.Set[N],
	attempts int,
	need uint64,
	at chain.Ref,
	read func(ctx context.Context, node N) (chain.Block, error),
) (chain.Block, error) {
	others, other := 0, error(nil) // nodes with another block, and the error of the last of them

	readFrom := func(ctx context.Context, node N) (chain.Block, error) {
		block, err := read(ctx, node)
		if errors.Is(err, fault.NotFound) {
			others++
			other, err = err, failover.ErrMissing // the next node may have it
		}

		return block, err
	}

	shown, err := askSeveral(ctx, s, attempts, need, readFrom, areAgreed)

	switch what := fmt.Sprintf("what is in block %d", at.Height); {
	case ctx.Err() != nil:
		return chain.Block{}, err
	case len(shown) > 1 || len(shown) == 1 && len(s.Nodes) == 1:
		return Merge(shown), nil
	case others > 1 || others == 1 && len(s.Nodes) == 1:
		return chain.Block{}, other
	case others == 1 && len(shown) == 1:
		return chain.Block{}, s.Disagree(what)
	case err != nil && others == 0:
		return chain.Block{}, err
	default:
		return chain.Block{}, s.Missing(err, what)
	}
}

// areAgreed reports whether two nodes show each transaction of a block alike.
func areAgreed(shown []chain.Block) bool { return len(shown) > 1 && len(Merge(shown).Unread) == 0 }

// askSeveral asks nodes one after the other until enough reports true, or all nodes were asked. It asks the
// first node like failover.Set.Ask and the others like AskBeside.
func askSeveral[N failover.Member, V any](
	ctx context.Context,
	s *failover.Set[N],
	attempts int,
	need uint64,
	read func(ctx context.Context, node N) (V, error),
	enough func(said []V) bool,
) (said []V, err error) {
	var first N

	err = s.Ask(ctx, attempts, need, func(ctx context.Context, node N) error {
		word, err := read(ctx, node)
		if err == nil {
			first, said = node, []V{word}
		}

		return err
	})
	if err != nil || len(s.Nodes) == 1 || enough(said) {
		return said, err
	}

	err = s.AskBeside(ctx, first, need, func(ctx context.Context, node N) (bool, error) {
		word, err := read(ctx, node)
		if err != nil {
			return false, err
		}

		said = append(said, word)

		return enough(said), nil
	})

	return said, err
}

// Merge returns the contents of a block that two nodes show alike. If no two nodes agree about a transaction,
// the transaction is in Unread, and Unverified is set. Its signers stay in Spent if two nodes agree about
// them, because its presence in the block must not be lost. A block of a single node is returned unchanged.
//
// Not every node shows internal transfers. One that no two nodes show alike is left out.
func Merge(shown []chain.Block) chain.Block {
	if len(shown) == 1 {
		return shown[0]
	}

	block := chain.Block{Ref: shown[0].Ref, Parent: shown[0].Parent}
	words := make([]map[string]txWord, len(shown))

	for i, b := range shown {
		words[i] = wordsOf(b)
	}

	if slices.IndexFunc(shown, func(b chain.Block) bool { return b.Unverified == "" }) < 0 {
		block.Unverified = shown[0].Unverified
	}

	for _, hash := range hashesIn(shown) {
		word, agreed := sharedWord(words, hash)
		if !agreed {
			block.Unverified = "no two nodes show the same of transaction " + hash
			block.Unread = append(block.Unread, chain.Unread{
				Height: block.Height,
				TxHash: hash,
				Why:    "no two nodes show the same of it",
			})
		}

		block.Transfers = append(block.Transfers, word.transfers...)
		block.Spent = append(block.Spent, word.spent...)
	}

	return block
}

// hashesIn returns the hashes of all transactions that the nodes show in a block, each once, in their order.
func hashesIn(shown []chain.Block) (hashes []string) {
	seen := map[string]bool{}
	add := func(hash string) {
		if !seen[hash] {
			seen[hash], hashes = true, append(hashes, hash)
		}
	}

	for _, b := range shown {
		for _, spend := range b.Spent {
			add(spend.By)
		}

		for _, unread := range b.Unread {
			add(unread.TxHash)
		}

		for _, moved := range b.Transfers {
			add(moved.TxHash)
		}
	}

	return hashes
}

// txWord is one node's view of a transaction in a block; the zero value means that it is not there.
type txWord struct {
	transfers []chain.Transfer
	spent     []chain.Spend
	unread    bool // the node does not show its effects
}

// wordsOf returns a node's view of each transaction in a block, by hash.
func wordsOf(b chain.Block) map[string]txWord {
	words := make(map[string]txWord, len(b.Spent))

	for _, spend := range b.Spent {
		word := words[spend.By]
		word.spent = append(word.spent, spend)
		words[spend.By] = word
	}

	for _, moved := range b.Transfers {
		word := words[moved.TxHash]
		word.transfers = append(word.transfers, moved)
		words[moved.TxHash] = word
	}

	for _, unread := range b.Unread {
		word := words[unread.TxHash]
		word.unread = true
		words[unread.TxHash] = word
	}

	return words
}

// sharedWord returns the view of a transaction that two nodes share; it may be that the transaction is not
// there. Two nodes that agree about internal transfers, too, are preferred to two that do not. If no two
// nodes agree, the view has at most the signers.
func sharedWord(words []map[string]txWord, hash string) (word txWord, agreed bool) {
	for i, one := range words {
		for _, another := range words[i+1:] {
			a, b := one[hash], another[hash]

			switch {
			case a.unread || b.unread || !slices.Equal(a.spent, b.spent):
			case slices.Equal(a.transfers, b.transfers):
				return a, true
			case slices.Equal(WithoutInternal(a.transfers), WithoutInternal(b.transfers)):
				word, agreed = txWord{spent: a.spent, transfers: WithoutInternal(a.transfers)}, true
			case !agreed:
				word.spent = a.spent
			}
		}
	}

	return word, agreed
}

// WithoutInternal returns transfers without the internal ones.
func WithoutInternal(transfers []chain.Transfer) []chain.Transfer {
	return slices.DeleteFunc(
		slices.Clone(transfers),
		func(t chain.Transfer) bool { return t.Index >= chaindata.InternalIndex },
	)
}
