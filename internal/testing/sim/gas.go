package sim

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// GasRules are what transactions take of gas by the rules of a fork.
type GasRules struct {
	// Native is what each native destination takes, and Token each token or internal transfer. The first native
	// destination beside those takes nothing.
	Native, Token uint64

	// NewAccount is what a native transfer takes more to an address that holds nothing and never sent, and NewSlot a
	// transfer of a token to an address that holds none of it.
	NewAccount, NewSlot uint64

	// Most is the most gas that a transaction may have. Defaults to BlockGas.
	Most uint64
}

// BlockGas is the gas that a block takes.
const BlockGas = 30_000_000

// GasFork are rules of gas with the height of the first block that applies them.
type GasFork struct {
	From  uint64
	Rules GasRules
}

// AmsterdamGas returns rules like those of Amsterdam (EIP-2780, EIP-8037): what adds to the state is dear.
func AmsterdamGas() GasRules {
	return GasRules{
		Native:     GasNative,
		Token:      70_000,
		NewAccount: 183_600,
		NewSlot:    98_000,
		Most:       1 << 24,
	}
}

// defaultGas are the rules of networks whose rules never change.
var defaultGas = GasRules{Native: GasNative, Token: GasToken}

// of returns what a transaction takes whose receivers hold what it sends already.
func (r GasRules) of(t *transaction) uint64 {
	calls, values := t.contractCalls(), t.valueTransfers()
	if calls == 0 {
		return values * r.Native
	}

	return calls*r.Token + (max(values, 1)-1)*r.Native
}

// mostOf returns the most that a transaction may take.
func (r GasRules) mostOf(t *transaction) uint64 {
	return r.of(t) + t.valueTransfers()*r.NewAccount + t.contractCalls()*r.NewSlot
}

func (r GasRules) most() uint64 {
	if r.Most == 0 {
		return BlockGas
	}

	return r.Most
}

// gasRules returns the rules that the block of a height applies.
func (c *Chain) gasRules(height uint64) GasRules {
	rules := defaultGas

	for _, fork := range c.config.GasForks {
		if fork.From <= height {
			rules = fork.Rules
		}
	}

	return rules
}

// ForkGas has transactions take gas by other rules from the next block on.
func (c *Chain) ForkGas(rules GasRules) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.config.GasForks = append(slices.Clip(c.config.GasForks), GasFork{From: c.tip() + 1, Rules: rules})
}

// mostGas returns the most that a transaction may take by any of the network's rules: what payers set.
func (c *Chain) mostGas(tx *transaction) uint64 {
	most := defaultGas.of(tx)
	for _, fork := range c.config.GasForks {
		most = max(most, fork.Rules.mostOf(tx))
	}

	return most
}

// gasUsed returns what a transaction takes after the block of a height, by some rules. slots has every transfer of a
// token open a slot.
func (c *Chain) gasUsed(tx *transaction, rules GasRules, height uint64, slots bool) uint64 {
	gas := rules.of(tx)

	var seen []chain.Holding

	for _, t := range tx.transfers {
		holding := chain.Holding{Address: t.to.address(), AssetID: c.assetID(t)}
		empty := c.balances.at(holding, height).IsZero() && !slices.Contains(seen, holding)
		seen = append(seen, holding)

		switch {
		case t.kind == kindToken && (empty || slots):
			gas += rules.NewSlot
		case t.kind == kindValue && empty && t.to != tx.from && c.nonces.at(holding.Address, height) == 0:
			gas += rules.NewAccount
		}
	}

	return gas
}

// estimate returns the gas that a node says an order's transaction takes in the next block. A token that a master
// wallet pays has enough for a receiver whose balance becomes zero meanwhile; a release has not.
func (n *node) estimate(order chain.Order, tx *transaction) (uint64, error) {
	c, rules := n.c, n.c.gasRules(n.tip+1)

	gas := c.gasUsed(tx, rules, n.tip, order.From.Key.Role != chain.RoleDeposit)
	if n.faults.Gas > 0 {
		gas = n.faults.Gas
	}

	if gas > rules.most() {
		return 0, fault.New(
			fault.Unavailable,
			"node_unavailable",
			"a node of network %s estimates %d gas, more than the %d there are",
			c.network.Slug,
			gas,
			rules.most(),
		)
	}

	return gas, nil
}

// agreedGas returns the gas of an order's transaction as two nodes say it, the higher one within a fifth, or as the one
// does that answers.
func (n *node) agreedGas(order chain.Order, tx *transaction) (uint64, error) {
	gas, err := n.estimate(order, tx)
	if err != nil {
		return 0, err
	}

	said := []uint64{gas}

	for _, other := range n.c.nodes {
		if other == n || other.begin() != nil {
			continue
		}

		word, err := other.estimate(order, tx)
		if err != nil {
			continue
		}

		for _, earlier := range said {
			if max(earlier, word) <= min(earlier, word)+min(earlier, word)/5 {
				return max(earlier, word), nil
			}
		}

		said = append(said, word)
	}

	if len(said) > 1 {
		return 0, n.c.notAgreed(
			"nodes_disagree", "the nodes of network %s say different things of %s", "the gas of a transfer",
		)
	}

	return gas, nil
}

// setGas sets the gas limit of an order's transaction: what it takes in the next block, and no less than the same
// transfers had that it replaces, which a fork may have cut short.
func (n *node) setGas(order chain.Order, tx *transaction) error {
	gas, err := n.agreedGas(order, tx)
	if err != nil {
		return err
	}

	tx.gasLimit = gas

	if order.Replaces == nil || len(order.Replaces.Raw) == 0 {
		return nil
	}

	old, err := decode(order.Replaces.Raw)
	if err == nil && slices.EqualFunc(old.transfers, tx.transfers, sameCall) &&
		old.gas() <= n.c.gasRules(n.tip+1).most() {
		tx.gasLimit = max(gas, old.gas())
	}

	return nil
}

// sameCall reports whether two transfers take the same gas: all but their amounts is equal.
func sameCall(a, b transfer) bool { return a.kind == b.kind && a.asset == b.asset && a.to == b.to }

// RanOutOfGas reports whether a transaction in a block was reverted for want of gas.
func (c *Chain) RanOutOfGas(ctx context.Context, signed chain.Signed) (bool, error) {
	return ask(ctx, c, MethodStatus, func(n *node) (bool, error) {
		included := n.included(signed.TxHash)
		if included == nil {
			return false, fault.New(
				fault.NotFound, "transaction_unknown", "network %s has no block with transaction %s",
				c.network.Slug, signed.TxHash,
			)
		}

		return included.outOfGas, nil
	})
}

// Fits reports whether the next block may hold a transaction by its gas.
func (c *Chain) Fits(ctx context.Context, signed chain.Signed) (bool, error) {
	return ask(ctx, c, MethodStatus, func(n *node) (bool, error) {
		tx, err := decode(signed.Raw)
		if err != nil {
			return false, err
		}

		return tx.gas() <= c.gasRules(n.tip+1).most(), nil
	})
}
