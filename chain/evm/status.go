package evm

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Status looks one attempt up.
//
// Dead (conflict) takes a proof: at the newest final block the sender's nonce has passed the transaction's,
// and afterwards no configured endpoint knows the transaction. All of them have to say so, since a node
// may have thrown its index of old transactions away, and a wrong proof of death would be paid twice; one
// that does not answer makes the call fault.Unavailable. So does a node without the state of the final
// block: where that lies more than 128 blocks back, the proof takes a node that keeps older states.
func (d *Driver) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	hash, err := parseHash(tx.TxHash)
	if err != nil {
		return chain.TxStatus{}, err
	}

	from, err := parseAddress(string(tx.From))
	if err != nil {
		return chain.TxStatus{}, err
	}

	var status chain.TxStatus

	passed := false

	err = d.ask(ctx, 0, func(ctx context.Context, e *endpoint) (err error) {
		status, passed, err = d.statusAt(ctx, e, hash, from, tx.Nonce)
		return err
	})
	if err != nil {
		return chain.TxStatus{}, err
	}

	if !passed {
		return status, nil
	}

	for _, e := range d.nodes.Nodes {
		if err := d.nodes.Vet(ctx, e); err != nil {
			return chain.TxStatus{}, failover.Fault(d.network.Slug, err)
		}

		s, err := d.sight(ctx, e, hash)
		if err != nil {
			return chain.TxStatus{}, failover.Fault(d.network.Slug, err)
		}

		if s.tx != nil {
			return status, nil
		}
	}

	return chain.TxStatus{State: chain.TxDead, Death: chain.DeathConflict}, nil
}

// statusAt is one endpoint's view. passed says that its final block proves the nonce used while it does
// not know the transaction.
func (d *Driver) statusAt(
	ctx context.Context,
	e *endpoint,
	hash common.Hash,
	from common.Address,
	nonce uint64,
) (status chain.TxStatus, passed bool, err error) {
	head, err := d.headOf(ctx, e)
	if err != nil {
		return status, false, err
	}

	final, isFinal := d.finalHeight(head)
	s, err := d.sight(ctx, e, hash)

	used := false
	if err == nil && s.tx == nil && isFinal {
		if used, err = e.nonceUsed(ctx, from, nonce, d.deathHeight(head, final)); used {
			// again: it may have been included meanwhile, and have used the nonce itself
			s, err = d.sight(ctx, e, hash)
		}
	}

	switch {
	case err != nil:
		return status, false, err
	case s.tx == nil:
		return chain.TxStatus{State: chain.TxUnknown}, used, nil
	case s.receipt == nil:
		return chain.TxStatus{State: chain.TxPooled}, false, nil
	}

	status = chain.TxStatus{
		State:    chain.TxIncluded,
		Block:    s.block,
		Reverted: *s.receipt.Status == 0,
		Final:    isFinal && s.block.Height <= final,
	}
	if status.Fee, err = s.receipt.fee(e); err != nil {
		return status, false, err
	}

	status.Transfers, err = d.moved(e, &s.tx.txJSON, s.receipt)

	return status, false, err
}

// finalHeight is the newest height that the network's rule calls final; ok is false while there is none.
// Where safe or final blocks cannot be had, the fall-back depth decides.
func (d *Driver) finalHeight(h chain.Head) (height uint64, ok bool) {
	switch {
	case d.network.Rule == chain.RuleSafe && !h.Safe.IsZero():
		return h.Safe.Height, true
	case d.network.Rule == chain.RuleFinalized && !h.Final.IsZero():
		return h.Final.Height, true
	case h.Tip.Height+1 < d.network.Confirmations:
		return 0, false
	}

	return h.Tip.Height + 1 - d.network.Confirmations, true
}

// deathHeight is where a proof of death is read: under the "safe" rule at the finalized block where there
// is one, since a death cannot be taken back.
func (d *Driver) deathHeight(h chain.Head, final uint64) uint64 {
	if d.network.Rule == chain.RuleSafe && !h.Final.IsZero() {
		return h.Final.Height
	}

	return final
}

// nonceUsed reports whether the account had sent more than nonce transactions by the final height, read
// at that block's hash.
func (e *endpoint) nonceUsed(ctx context.Context, from common.Address, nonce, final uint64) (bool, error) {
	latest := newCall("eth_getTransactionCount", from, "latest")
	if err := e.do(ctx, latest); err != nil {
		return false, err
	}

	var count hexutil.Uint64
	if err := latest.decode(e, &count); err != nil || uint64(count) <= nonce {
		return false, err // not used at the tip, so not before it: no old state has to be read
	}

	ref, err := e.refAt(ctx, final)
	if err != nil {
		return false, err
	}

	c := newCall(
		"eth_getTransactionCount", from,
		map[string]any{"blockHash": ref.Hash, "requireCanonical": true},
	)
	if err := e.do(ctx, c); err != nil {
		return false, err
	}

	err = c.decode(e, &count)

	return err == nil && uint64(count) > nonce, err
}

// fee is what the network took: gas used × effective gas price, and what an OP-stack rollup charged for
// publishing.
func (r *receiptJSON) fee(e *endpoint) (chain.Amount, error) {
	if r.EffectiveGasPrice == nil {
		return chain.Amount{}, e.Garbled(
			"the receipt of transaction %s names no gas price",
			r.TransactionHash.Hex(),
		)
	}

	fee := new(big.Int).Mul(r.EffectiveGasPrice.ToInt(), new(big.Int).SetUint64(uint64(*r.GasUsed)))
	if r.L1Fee != nil {
		fee.Add(fee, r.L1Fee.ToInt())
	}

	return e.amount((*hexutil.Big)(fee))
}
