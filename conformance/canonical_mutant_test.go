package conformance_test

// Mutants of what a driver must not believe: a pool's amount, a node's word about a hash, one node alone.

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

func init() {
	for name, m := range canonicalMutants {
		driverMutants[name] = m
	}
}

// canonicalMutants break a driver with one node.
var canonicalMutants = map[string]driverMutant{
	"the pool's amount is credited": {
		"BlockScanner/BlockDecidesTheAmount",
		mutatePoolAmount(func(f *faulty, c *sim.Chain, claims map[string]chain.Amount) {
			f.blocks = func(ctx context.Context, from, to uint64) ([]chain.Block, error) {
				blocks, err := c.Blocks(ctx, from, to)
				for _, b := range blocks {
					claimAmounts(b.Transfers, claims)
				}

				return blocks, err
			}
		}),
	},
	"the pool's amount is found": {
		"Finder/BlockDecidesTheAmount",
		mutatePoolAmount(func(f *faulty, c *sim.Chain, claims map[string]chain.Amount) {
			f.transaction = func(ctx context.Context, hash string) (chain.FoundTx, error) {
				found, err := c.Transaction(ctx, hash)
				if found.Block.IsZero() {
					for _, t := range found.Transfers {
						claims[t.TxHash] = t.Amount
					}
				}

				claimAmounts(found.Transfers, claims)

				return found, err
			}
		}),
	},
	"failed transactions are not in Spent": {
		"BlockScanner/SpentListsFailedTransactions",
		mutateSpent(func(spent []chain.Spend) []chain.Spend {
			return slices.DeleteFunc(spent, func(s chain.Spend) bool { return s.Failed })
		}),
	},
	"failed transactions are in Spent as good ones": {
		"BlockScanner/SpentListsFailedTransactions",
		mutateSpent(func(spent []chain.Spend) []chain.Spend {
			for i := range spent {
				spent[i].Failed = false
			}

			return spent
		}),
	},
	"the last transaction is not in Spent": {
		"BlockScanner/SpentListsEveryTransaction",
		mutateSpent(func(spent []chain.Spend) []chain.Spend { return spent[:max(0, len(spent)-1)] }),
	},
	"nonces are shared": {
		"BlockScanner/SpentListsEveryTransaction",
		mutateSpent(func(spent []chain.Spend) []chain.Spend {
			for i := range spent {
				spent[i].Shared = true
			}

			return spent
		}),
	},
	"senders are left out": {
		"BlockScanner/SenderIsNamed",
		mutateBlocks(func(blocks []chain.Block) []chain.Block {
			for _, b := range blocks {
				for i := range b.Transfers {
					b.Transfers[i].From = ""
				}
			}

			return blocks
		}),
	},
	"unknown headers count as verified": {
		"BlockScanner/UnknownHeaderIsReadUnverified",
		mutateBlocks(func(blocks []chain.Block) []chain.Block {
			for i := range blocks {
				blocks[i].Unverified = ""
			}

			return blocks
		}),
	},
	"unknown headers stop the reading": {
		"BlockScanner/UnknownHeaderIsReadUnverified",
		mutate(func(f *faulty, c *sim.Chain) {
			f.blocks = func(ctx context.Context, from, to uint64) ([]chain.Block, error) {
				blocks, err := c.Blocks(ctx, from, to)
				if err == nil && blocks[len(blocks)-1].Unverified != "" {
					return nil, sim.Unavailable()
				}

				return blocks, err
			}
		}),
	},
	"the pool uses up other nonces": {
		"Mempool/SpentIsThatOfTheBlock",
		mutate(func(f *faulty, c *sim.Chain) {
			f.pool = func(ctx context.Context) ([]chain.PoolTx, error) {
				txs, err := c.Pool(ctx)
				for _, tx := range txs {
					tx.Spent[0].Nonce++
				}

				return txs, err
			}
		}),
	},
	"what is found uses nothing up": {
		"Finder/SpentIsThatOfTheBlock",
		mutate(func(f *faulty, c *sim.Chain) {
			f.transaction = func(ctx context.Context, hash string) (chain.FoundTx, error) {
				found, err := c.Transaction(ctx, hash)
				found.Spent = nil

				return found, err
			}
		}),
	},
	"what is found failed uses up as a good one": {
		"Finder/FailedUsesUpAsMuch",
		mutate(func(f *faulty, c *sim.Chain) {
			f.transaction = func(ctx context.Context, hash string) (chain.FoundTx, error) {
				found, err := c.Transaction(ctx, hash)
				for i := range found.Spent {
					found.Spent[i].Failed = false
				}

				return found, err
			}
		}),
	},
	"an included status is remembered": {
		"Sender/IncludedIsInItsBlock",
		mutate(func(f *faulty, c *sim.Chain) {
			included := map[string]chain.TxStatus{}
			f.status = func(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
				st, err := c.Status(ctx, tx)
				if st.State == chain.TxIncluded {
					included[tx.TxHash] = st
				}

				if known, ok := included[tx.TxHash]; ok {
					return known, nil
				}

				return st, err
			}
		}),
	},
	"what waits is included in the tip": {
		"Sender/IncludedIsInItsBlock",
		mutate(func(f *faulty, c *sim.Chain) {
			f.status = func(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
				st, err := c.Status(ctx, tx)
				if st.State == chain.TxPooled {
					head, err := c.Head(ctx)
					return chain.TxStatus{State: chain.TxIncluded, Block: head.Tip}, err
				}

				return st, err
			}
		}),
	},
	"a block is read again as it was": {
		"Agreed/AnotherBlockIsNotFound",
		func(h *conformance.DriverHarness, c *sim.Chain) {
			h.Driver = firstNode{c}
		},
	},
}

// mutatePoolAmount has a driver remember the amounts that the pool shows.
func mutatePoolAmount(
	change func(f *faulty, c *sim.Chain, claims map[string]chain.Amount),
) func(*conformance.DriverHarness, *sim.Chain) {
	return mutate(func(f *faulty, c *sim.Chain) {
		claims := map[string]chain.Amount{}
		f.pool = func(ctx context.Context) ([]chain.PoolTx, error) {
			txs, err := c.Pool(ctx)
			for _, tx := range txs {
				claims[tx.TxHash] = tx.Transfers[0].Amount
			}

			return txs, err
		}
		change(f, c, claims)
	})
}

func claimAmounts(transfers []chain.Transfer, claims map[string]chain.Amount) {
	for i, t := range transfers {
		if claimed, ok := claims[t.TxHash]; ok {
			transfers[i].Amount = claimed
		}
	}
}

// mutateSpent changes what blocks use up.
func mutateSpent(
	change func(spent []chain.Spend) []chain.Spend,
) func(*conformance.DriverHarness, *sim.Chain) {
	return mutateBlocks(func(blocks []chain.Block) []chain.Block {
		for i := range blocks {
			blocks[i].Spent = change(blocks[i].Spent)
		}

		return blocks
	})
}

// firstNode reads blocks again from the node that showed them, whatever was asked for.
type firstNode struct{ *sim.Chain }

func (d firstNode) AgreedBlock(ctx context.Context, at chain.Ref, _ []string) (chain.Block, error) {
	blocks, err := d.Blocks(ctx, at.Height, at.Height)
	if err != nil {
		return chain.Block{}, err
	}

	return blocks[0], nil
}

// severalMutant breaks a driver with two nodes.
type severalMutant struct {
	fails  string
	change func(d careful) chain.Driver
}

// credulous believes what the first node says about a hash.
type credulous struct{ careful }

func (d credulous) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	return d.Chain.Status(ctx, tx)
}

// hasty takes a transaction for dead that the first node does not show.
type hasty struct{ careful }

func (d hasty) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	if _, err := d.Chain.Transaction(ctx, tx.TxHash); errors.Is(err, fault.NotFound) {
		return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonConflict}, nil
	}

	return d.careful.Status(ctx, tx)
}

func (d credulous) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
	return d.Chain.Transaction(ctx, hash)
}

// alone agrees to what the first node has.
type alone struct{ careful }

func (d alone) AgreedBlock(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	b, err := firstNode{d.Chain}.AgreedBlock(ctx, at, hashes)
	if err == nil && b.Hash != at.Hash {
		return chain.Block{}, fault.New(fault.NotFound, "block_unknown", "the node has another block")
	}

	return b, err
}

// lenient agrees when the second node gives no answer.
type lenient struct{ careful }

func (d lenient) AgreedBlock(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	b, err := d.Chain.AgreedBlock(ctx, at, hashes)
	if fault.Code(err) == "nodes_missing" {
		return chain.Block{Ref: at}, nil
	}

	return b, err
}

// suspicious agrees to nothing.
type suspicious struct{ careful }

func (d suspicious) AgreedBlock(_ context.Context, at chain.Ref, _ []string) (chain.Block, error) {
	return chain.Block{}, fault.New(fault.NotFound, "block_unknown", "block %d may be wrong", at.Height)
}

// forgetful reads blocks again without what they use up.
type forgetful struct{ careful }

func (d forgetful) AgreedBlock(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	b, err := d.Chain.AgreedBlock(ctx, at, hashes)
	b.Spent = nil

	return b, err
}

// boastful takes the head of the first node for one that two have.
type boastful struct{ careful }

func (d boastful) AgreedHead(ctx context.Context) (chain.Head, error) { return d.Head(ctx) }

// trusting takes the balances of one node for right.
type trusting struct{ careful }

func (d trusting) Balances(
	ctx context.Context,
	at chain.Ref,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	amounts, err := d.Chain.Balances(ctx, at, holdings)
	if errors.As(err, new(*chain.UnreadableError)) {
		err = nil
	}

	return amounts, err
}

// counting takes the first node's count.
type counting struct{ careful }

func (d counting) AgreedNonce(ctx context.Context, address chain.Address, _ chain.Ref) (uint64, error) {
	return d.Nonce(ctx, address)
}

// nameless names no node.
type nameless struct{ careful }

func (nameless) Nodes() []chain.NodeState { return nil }

// cheerful calls every node healthy.
type cheerful struct{ careful }

func (d cheerful) Nodes() []chain.NodeState {
	nodes := d.Chain.Nodes()
	for i := range nodes {
		nodes[i].Trouble = ""
	}

	return nodes
}

var severalMutants = map[string]severalMutant{
	"one denial is death": {
		"Sender/DenialIsNoDeath",
		func(d careful) chain.Driver { return hasty{d} },
	},
	"a receipt without logs is taken": {
		"Sender/ReceiptWithoutLogsIsNotTaken",
		func(d careful) chain.Driver { return credulous{d} },
	},
	"a look-up without logs is taken": {
		"Finder/ReceiptWithoutLogsIsNotTaken",
		func(d careful) chain.Driver { return credulous{d} },
	},
	"one node alone agrees": {
		"Agreed/OneNodeAloneIsNotEnough",
		func(d careful) chain.Driver { return alone{d} },
	},
	"silence agrees": {
		"Agreed/WithoutASecondNodeNothingIsAgreed",
		func(d careful) chain.Driver { return lenient{d} },
	},
	"nothing is ever agreed": {
		"Agreed/CanonicalBlockIsAgreed",
		func(d careful) chain.Driver { return suspicious{d} },
	},
	"a block that is read again uses nothing up": {
		"Agreed/BlockIsReadAgain",
		func(d careful) chain.Driver { return forgetful{d} },
	},
	"the first node's head is taken": {
		"Agreed/WithoutASecondNodeNothingIsAgreed",
		func(d careful) chain.Driver { return boastful{d} },
	},
	"a balance of one node is taken": {
		"Agreed/BalanceOfOneNodeIsProvisional",
		func(d careful) chain.Driver { return trusting{d} },
	},
	"the first node's count is taken": {
		"AgreedNonce/WithoutASecondNodeNothingIsAgreed",
		func(d careful) chain.Driver { return counting{d} },
	},
	"no node is named": {
		"Agreed/NodesAreNamed",
		func(d careful) chain.Driver { return nameless{d} },
	},
	"a silent node is called healthy": {
		"Agreed/MissingNodeIsNamed",
		func(d careful) chain.Driver { return cheerful{d} },
	},
}
