package kv

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

var (
	coins = newTable(
		34, "coin",
		func(c *wallet.Coin) key { return keyOf(c.Network, c.Outpoint.TxHash, c.Outpoint.Vout) },
		func(c *wallet.Coin) *int64 { return &c.Version },
	)
	coinsByAddress = coins.ordered(1, func(c *wallet.Coin) key {
		return when(c.SpentBy == "", c.Network, c.Owner.Address)
	})
	coinsByHeight = coins.ordered(2, func(c *wallet.Coin) key {
		return keyOf(c.Network, max(c.Height, c.SpentAt))
	})
	coinsWaiting = coins.ordered(3, func(c *wallet.Coin) key { return when(c.Height == 0, c.Network) })

	outgoing = newTable(
		35, "outgoing transaction",
		func(o *wallet.Outgoing) key { return keyOf(o.Network, o.Key) },
		func(o *wallet.Outgoing) *int64 { return &o.Version },
	)
	outgoingByHash = outgoing.ordered(
		1,
		func(o *wallet.Outgoing) key { return keyOf(o.Network, o.TxHash) },
	)
	outgoingByAddress = outgoing.ordered(2, func(o *wallet.Outgoing) key {
		return keyOf(o.Network, o.Address, o.Block.Height)
	})
	outgoingByHeight = outgoing.ordered(3, func(o *wallet.Outgoing) key {
		return keyOf(o.Network, o.Block.Height)
	})
	outgoingUnrecorded = outgoing.ordered(4, func(o *wallet.Outgoing) key {
		return when(o.Unrecorded, o.Network, o.Block.Height)
	})
)

func (r *reader) Coins(ctx context.Context, network string, address chain.Address) ([]wallet.Coin, error) {
	return list(ctx, r, coinsByAddress, keyOf(network, address), window[wallet.Coin]{})
}

func (r *reader) CoinsOf(ctx context.Context, network string, hashes []string) ([]wallet.Coin, error) {
	return among(ctx, r, coins.primary(), each(network, hashes), window[wallet.Coin]{})
}

func (r *reader) UnconfirmedCoins(ctx context.Context, network string) ([]wallet.Coin, error) {
	return list(ctx, r, coinsWaiting, keyOf(network), window[wallet.Coin]{})
}

func (r *reader) CoinsAbove(ctx context.Context, network string, height uint64) ([]wallet.Coin, error) {
	return list(ctx, r, coinsByHeight, keyOf(network), window[wallet.Coin]{from: upTo(height)})
}

func (r *reader) OutgoingByKey(
	ctx context.Context,
	network string,
	keys []string,
) ([]wallet.Outgoing, error) {
	return several(ctx, r, outgoing, placesOf(outgoing, network, keys))
}

func (r *reader) OutgoingByHash(
	ctx context.Context,
	network string,
	hashes []string,
) ([]wallet.Outgoing, error) {
	return among(ctx, r, outgoingByHash, each(network, hashes), window[wallet.Outgoing]{})
}

func (r *reader) OutgoingOf(
	ctx context.Context,
	network string,
	address chain.Address,
	from uint64,
	limit int,
) ([]wallet.Outgoing, error) {
	w := window[wallet.Outgoing]{from: keyOf(from), limit: limit}

	return list(ctx, r, outgoingByAddress, keyOf(network, address), w)
}

func (r *reader) OutgoingAbove(
	ctx context.Context,
	network string,
	height uint64,
) ([]wallet.Outgoing, error) {
	return list(ctx, r, outgoingByHeight, keyOf(network), window[wallet.Outgoing]{from: upTo(height)})
}

func (r *reader) UnrecordedOutgoing(
	ctx context.Context,
	network string,
	address chain.Address,
	from time.Time,
) ([]wallet.Outgoing, error) {
	wanted := func(o *wallet.Outgoing) bool {
		return (address == "" || o.Address == address) &&
			(o.Acknowledged == "" || !o.Block.Time.Before(from))
	}

	return list(ctx, r, outgoingUnrecorded, keyOf(network), window[wallet.Outgoing]{match: wanted})
}

func (tx *transaction) PutCoin(ctx context.Context, c *wallet.Coin) error {
	return put(ctx, tx, coins, c)
}

func (tx *transaction) DeleteCoin(ctx context.Context, network string, o chain.Outpoint) error {
	return remove(ctx, tx, coins, coins.at(network, o.TxHash, o.Vout))
}

func (tx *transaction) PutOutgoing(ctx context.Context, o *wallet.Outgoing) error {
	return put(ctx, tx, outgoing, o)
}

func (tx *transaction) DeleteOutgoing(ctx context.Context, network, spend string) error {
	return remove(ctx, tx, outgoing, outgoing.at(network, spend))
}
