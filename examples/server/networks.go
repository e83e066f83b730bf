package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// known are the networks that NETWORKS may name. "local" is a development node with chain id 31337.
var known = func() map[string]chain.Network {
	bySlug := map[string]chain.Network{}
	for _, n := range []chain.Network{
		evm.Ethereum, evm.Base, evm.Optimism, evm.Arbitrum, evm.Polygon, evm.BNB,
		evm.Sepolia, evm.BaseSepolia, evm.OPSepolia, evm.ArbitrumSepolia, evm.PolygonAmoy, evm.BNBTestnet,
		bitcoin.Mainnet, bitcoin.Testnet4, bitcoin.Signet,
		solana.Mainnet, solana.Devnet,
		tron.Mainnet, tron.Nile, tron.Shasta,
		evm.Local(31337),
	} {
		bySlug[n.Slug] = n
	}

	return bySlug
}()

// drivers returns a driver for each network. They call no node yet.
func (s settings) drivers(log *slog.Logger) ([]payments.ChainDriver, error) {
	if len(s.networks) == 0 {
		return nil, errors.New("NETWORKS is empty: name at least one, such as sepolia")
	}

	var all []payments.ChainDriver

	for _, slug := range s.networks {
		network, ok := known[slug]
		if !ok {
			return nil, fmt.Errorf(
				"NETWORKS names %q: there are %s", slug, strings.Join(slices.Sorted(maps.Keys(known)), ", "),
			)
		}

		driver, err := newDriver(network, s.nodes[slug], log)
		if err != nil {
			return nil, fmt.Errorf("NODES_%s: %w", variableName(slug), err)
		}

		all = append(all, driver)
	}

	return all, nil
}

// newDriver returns the driver of the network's family, which asks the first URL and turns to the others.
func newDriver(network chain.Network, urls []string, log *slog.Logger) (payments.ChainDriver, error) {
	switch network.Family {
	case chain.Bitcoin:
		return bitcoin.New(bitcoin.Config{Network: network, RPCs: urls, Logger: log})

	case chain.Solana:
		return solana.New(solana.Config{Network: network, RPCs: urls, Logger: log})

	case chain.Tron:
		var nodes []tron.Node
		for _, url := range urls {
			nodes = append(nodes, tron.Node{URL: url})
		}

		return tron.New(tron.Config{Network: network, Nodes: nodes, Logger: log})

	default:
		return evm.New(evm.Config{Network: network, RPCs: urls, Logger: log})
	}
}

// rates returns the fixed prices of the settings, or what two of three markets agree on.
func (s settings) rates() (rate.Source, error) {
	if len(s.prices) > 0 {
		fixed, err := rate.NewFixed(s.prices, time.Minute, nil)
		if err != nil {
			return nil, fmt.Errorf("PRICES: %w", err)
		}

		return fixed, nil
	}

	return rate.Median(rate.MedianConfig{
		Sources: []rate.Source{rate.Coinbase(), rate.Kraken(), rate.Binance()},
	})
}
