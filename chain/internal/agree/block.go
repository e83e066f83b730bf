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

// RefAt reads the block of a height from one node.
type RefAt[N any] func(ctx context.Context, node N, height uint64) (chain.Ref, error)

// Ref returns nil when two nodes have a block at its height, or the only one that is configured. proven is set where
// blocks are verified; see failover.Subject. Errors:
//   - those of failover.Agree;
//   - fault.NotFound (block_unknown): two nodes have another block, or the only one has.
//
// A block that was asked for is one that a node showed. Where two have another one, the preferred node is demoted.
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

// VerifiedBlock is chain.Agreed.AgreedBlock of a network whose blocks prove what is in them. Two nodes have to have
// the block (Ref), and another one than the preferred shows what is in it. What cannot be verified is what two nodes
// show alike (Block). read returns fault.NotFound where its node has another block.
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

// headerOnly returns a reference where there is no error.
func headerOnly(at chain.Ref, err error) chain.Ref {
	if err != nil {
		return chain.Ref{}
	}

	return at
}

// Block returns what two nodes show alike of a block (Merge), each read by read, or what the only one shows that is
// configured. read returns fault.NotFound where its node has another block at that height. Errors:
//   - those of failover.Set.Ask;
//   - fault.NotFound: two nodes have another block, or the only one has;
//   - fault.Unavailable (nodes_missing, nodes_disagree): fewer than two nodes show the block.
func Block[N failover.Member](
	ctx context.Context,
	s *failover.Set[N],
	attempts int,
	need uint64,
	at chain.Ref,
	read func(ctx context.Context, node N) (chain.Block, error),
) (chain.Block, error) {
	others, other := 0, error(nil) // nodes with another block, and what the last of them says

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

// askSeveral asks nodes one after the other until enough is said, or all that can be asked were: the first as
// failover.Set.Ask does, the others as AskBeside does.
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

// Merge returns of a block, as several nodes show it, what two of them show alike. A transaction of which no two show
// the same is in Unread, and Unverified is set; of it who signed it stays in Spent, where two show that alike: that it
// is in the block must not be lost. What one node alone shows is returned as it is.
//
// Internal transfers are shown by some nodes only: those that two do not show alike are left out.
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

// hashesIn returns the transactions that nodes show of a block, each once, in their order.
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

// txWord is what one node shows of a transaction in a block; the zero value is that it is not there.
type txWord struct {
	transfers []chain.Transfer
	spent     []chain.Spend
	unread    bool // what it did, the node does not show
}

// wordsOf returns what a node shows of the transactions in a block, by hash.
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

// sharedWord returns what two nodes show alike of a transaction, which may be that it is not there. Two that show the
// same internal transfers go before two that do not. Where no two agree the word is at most who signed it.
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
