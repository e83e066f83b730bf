package txmgr

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// A transaction of lost records may wait in the pool for ever. Its wallet signs nothing until the transaction
// is in a block or gone. A person may acknowledge it as foreign. That is stored as a row without a block,
// which proves nothing.

// pooledKey returns the key of the row that acknowledges a transaction in the pool. No chain.Spend has such a
// key.
func pooledKey(txHash string, address chain.Address) string {
	return "pool/" + txHash + "/" + string(address)
}

// PooledFrom returns the addresses that a transaction in a network's pool takes from; none if it is on
// record.
func (o *Manager) PooledFrom(ctx context.Context, network, txHash string) ([]chain.Address, error) {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return nil, err
	}

	mempool, ok := driver.(chain.Mempool)
	if !ok {
		return nil, nil
	}

	pool, err := mempool.Pool(ctx)
	if err != nil {
		return nil, err
	}

	pool = slices.DeleteFunc(pool, func(t chain.PoolTx) bool { return t.TxHash != txHash })

	unrecorded, err := o.unrecordedIn(ctx, network, pool)

	return slices.Sorted(maps.Keys(unrecorded)), err
}

// AcknowledgePooledTx records that a transaction of an address that waits in the pool is foreign.
func (o *Manager) AcknowledgePooledTx(
	ctx context.Context,
	tx wallet.Tx,
	network string,
	address chain.Address,
	txHash string,
) error {
	key := pooledKey(txHash, address)

	known, err := tx.OutgoingByKey(ctx, network, []string{key})
	if err != nil || len(known) > 0 {
		return err
	}

	return tx.PutOutgoing(ctx, &wallet.Outgoing{
		Network:      network,
		Key:          key,
		Address:      address,
		TxHash:       txHash,
		Unrecorded:   true,
		Acknowledged: wallet.Foreign,
	})
}

// dropAcknowledged removes the transactions that a person called foreign from those of a pool, by address.
func (o *Manager) dropAcknowledged(
	ctx context.Context,
	network string,
	unrecorded map[chain.Address][]string,
) error {
	var keys []string

	for address, hashes := range unrecorded {
		for _, hash := range hashes {
			keys = append(keys, pooledKey(hash, address))
		}
	}

	if len(keys) == 0 {
		return nil
	}

	rows, err := o.db.OutgoingByKey(ctx, network, sortedSet(keys))
	if err != nil {
		return &storeError{err}
	}

	for _, row := range rows {
		unrecorded[row.Address] = slices.DeleteFunc(
			unrecorded[row.Address], func(hash string) bool { return hash == row.TxHash },
		)
	}

	return nil
}

// UnrecordedInPool returns the transactions of a network's pool that are not on record, by the address that
// they take from. It returns those that this process saw at its start, and those that still keep an address
// from signing.
func (o *Manager) UnrecordedInPool(network string) map[chain.Address][]string {
	o.firstTips.mu.Lock()
	defer o.firstTips.mu.Unlock()

	return maps.Clone(o.firstTips.looks[network].unrecorded)
}
