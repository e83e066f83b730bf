package sim

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Broadcast puts a transaction into the pool. In addition to the errors of chain.Sender, it returns
// fault.State, which is no proof of expiry, with code:
//   - nonce_used: the sender's nonce is higher;
//   - replacement_underpriced: it pays less than 10 % more than the pooled one at its nonce;
//   - transaction_expired: its validity has ended.
func (c *Chain) Broadcast(ctx context.Context, signed chain.Signed) error {
	lost, err := ask(ctx, c, MethodBroadcast, func(*node) (lost bool, err error) {
		err = c.accept(signed.Raw)
		if c.faults.lostResponses > 0 {
			c.faults.lostResponses--
			return true, nil
		}

		return false, err
	})
	if lost {
		return fault.Wrap(
			context.DeadlineExceeded, fault.Unavailable, "node_unavailable",
			"network %s did not answer Broadcast in time",
			c.network.Slug,
		)
	}

	return err
}

// accept validates signed bytes and adds their transaction to the pool. A known one is accepted.
func (c *Chain) accept(raw []byte) error {
	tx, err := decode(raw)
	if err != nil {
		return err
	}

	if err := c.checkStateless(tx); err != nil {
		return err
	}

	hash := tx.hash()
	if c.receipts[hash] != nil || c.pool.byHash[hash] != nil {
		return nil
	}

	if err := c.checkState(tx); err != nil {
		return err
	}

	return c.pool.add(tx, hash)
}

// checkStateless returns fault.Invalid for a transaction that the network never includes.
func (c *Chain) checkStateless(tx *transaction) error {
	if tx.network != c.networkID {
		return fault.New(
			fault.Invalid, "transaction_foreign",
			"the transaction was made for another network than %s",
			c.network.Slug,
		)
	}

	if tx.valueTransfers() > uint64(c.config.MaxOutputs) {
		return fault.New(
			fault.Invalid, "transaction_malformed",
			"a transaction of network %s pays at most %d destinations",
			c.network.Slug, c.config.MaxOutputs,
		)
	}

	if slices.ContainsFunc(tx.transfers, func(t transfer) bool { return t.kind == kindInternal }) {
		return fault.New(
			fault.Invalid, "transaction_malformed",
			"internal movements are a contract's, not a sender's",
		)
	}

	return tx.verify()
}

// checkState returns an error for a transaction that the block after the tip cannot include, other
// than for a nonce gap or its price.
func (c *Chain) checkState(tx *transaction) error {
	tip := c.blocks[c.tip()].ref
	if next := c.nonces.at(tx.from.address(), tip.Height); tx.nonce < next {
		return fault.New(
			fault.State, "nonce_used", "nonce %d of %s is used: the next one is %d",
			tx.nonce, tx.from.address(), next,
		)
	}

	if tx.expired(tip.Height+1, tip.Time) {
		return fault.New(
			fault.State, "transaction_expired",
			"the transaction could be included up to block %d or %s only",
			tx.validToHeight, tx.validToTime(),
		)
	}

	if gas, rules := tx.gas(), c.gasRules(tip.Height+1); gas > rules.most() || gas < rules.Native {
		return fault.New(
			fault.Invalid, "transaction_malformed",
			"the transaction has %d gas: it takes at least %d, and a block takes at most %d",
			gas, rules.Native, rules.most(),
		)
	}

	if !c.affordable(tx, tip.Height) {
		return fault.New(
			fault.Invalid, "insufficient_funds",
			"%s holds too little %s for the transaction and its fee of up to %s",
			tx.from.address(), c.native.Symbol, tx.maxFee(),
		)
	}

	return nil
}

// Status returns the status of a transaction. One outside the canonical chain is TxDead when its nonce
// is used or its validity has ended at the final block.
func (c *Chain) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	status, err := ask(
		ctx,
		c,
		MethodStatus,
		func(n *node) (chain.TxStatus, error) { return n.status(signed), nil },
	)
	if err != nil || status.State == chain.TxIncluded {
		return status, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	// What one node does not know, another one may show in a block.
	for _, n := range c.preferredFirst()[1:] {
		if n.begin() != nil {
			continue
		}

		if shown := n.status(signed); shown.State == chain.TxIncluded {
			return shown, nil
		}
	}

	return status, nil
}

func (n *node) status(signed chain.Signed) chain.TxStatus {
	final := n.final()
	if included := n.included(signed.TxHash); included != nil {
		return chain.TxStatus{
			State:     chain.TxIncluded,
			Block:     n.ref(included.height),
			Final:     included.height <= final,
			Reverted:  included.reverted,
			Fee:       included.fee,
			Transfers: n.transfersOf(included),
		}
	}

	if n.c.nonces.at(signed.From, final) > signed.Nonce {
		return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonConflict}
	}

	finalRef := n.c.blocks[final].ref
	if (signed.ValidToHeight != 0 && finalRef.Height > signed.ValidToHeight) ||
		(!signed.ValidTo.IsZero() && finalRef.Time.After(signed.ValidTo)) {
		return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonExpired}
	}

	if n.c.pool.byHash[signed.TxHash] != nil && !slices.Contains(n.faults.Denies, signed.TxHash) {
		return chain.TxStatus{State: chain.TxPooled}
	}

	return chain.TxStatus{State: chain.TxUnknown}
}
