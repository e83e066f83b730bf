package evm

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// PoolSource selects where pending transactions are read from.
type PoolSource string

// The sources of Driver.Pool.
const (
	// PoolPending reads the node's pending block: little data, almost everywhere available, limited
	// to one block. Rollup nodes without a public pool show nothing.
	PoolPending PoolSource = "pending"
	// PoolContent reads txpool_content: all that the node knows. Providers often refuse it, and on
	// busy networks it is large, so it suits a node of one's own.
	PoolContent PoolSource = "txpool"
	// PoolOff reads nothing: payments are first seen in blocks.
	PoolOff PoolSource = "off"
)

// Config selects a network and its nodes. Network and one URL are required.
type Config struct {
	// Network is one of this package's (Ethereum, Base, Local …) or the caller's own.
	Network chain.Network
	// RPC is the http or https URL of a node. It may hold an API key: errors and logs show its host
	// only.
	RPC string
	// RPCs are further nodes in order of preference, after RPC. A node that fails or lags is
	// skipped.
	RPCs []string
	// WebSocket is the ws or wss URL of a node that announces new blocks (newHeads), for example the node of
	// RPC. A payment is then read as soon as it is mined. The URL is used for nothing else, and RPC is polled
	// all the same. It may hold an API key. Defaults to none: new blocks are found by polling.
	WebSocket string
	// Tokens are enabled in addition to the network's assets. Symbol, Contract and Decimals are
	// required.
	Tokens []chain.Asset
	// HTTPClient sends the requests; its Timeout applies too. Redirects are never followed.
	// Defaults to a client of its own.
	HTTPClient *http.Client
	// Logger receives node failures. Defaults to discarding them.
	Logger *slog.Logger
	// Timeout bounds each HTTP request, and the making of a subscription. Defaults to 20 seconds.
	Timeout time.Duration
	// Attempts is how often all nodes are tried before a call is fault.Unavailable. Defaults to 3.
	Attempts int
	// Alone is the time after which the network goes on with one node, if all other nodes give no usable
	// answer for so long. Proofs in that node's verified blocks then confirm payments and end transactions,
	// and Health names the node. What no block proves, such as a balance, still waits for a second node.
	// Alone needs two nodes or more. Defaults to 0: the network waits.
	Alone time.Duration
	// Concurrency bounds the HTTP requests in flight to one node. Defaults to 4.
	Concurrency int
	// MaxBatch bounds the JSON-RPC calls of one request, and the blocks that one call of Blocks
	// returns. The size halves when a node refuses and grows back one by one. Defaults to 32.
	MaxBatch int
	// MaxResponse bounds a response body, in bytes. Defaults to 128 MiB.
	MaxResponse int64
	// Pool is where pending transactions are read from. Defaults to PoolPending.
	Pool PoolSource
	// Traces makes Transaction ask for internal transfers of the native coin (debug_traceTransaction). They
	// then count for a payment whose hash a payer names, although blocks and receipts do not show them. Many
	// providers refuse the method. It is not called where blocks log all transfers of coin (EIP-7708).
	// Defaults to false.
	Traces bool
	// L1GasPriceOracle is the contract of an OP-stack rollup with getL1Fee(bytes). Defaults to the predeploy
	// on the OP-stack networks of this package, else to no contract.
	L1GasPriceOracle chain.Address
	// MaxGasPrice is the highest price that a transaction offers, base fee and tip together, in wei per unit
	// of gas, whatever nodes ask for. While the network asks for more, transactions wait. Defaults to 500
	// gwei; on Polygon and its test network to 10,000 gwei.
	MaxGasPrice uint64
	// MaxGas is the most gas that a transaction may have; the gas limit of blocks applies too. Defaults to
	// 16,777,216 (EIP-7825) on Ethereum, Base and their test networks, else to 0: only the limit of blocks
	// applies.
	MaxGas uint64
}

// maxTxGas is the most gas of a transaction on networks with EIP-7825.
const maxTxGas = 1 << 24

// opGasPriceOracle is the predeployed GasPriceOracle of every OP-stack rollup (Optimism
// specification, "Predeploys").
const opGasPriceOracle chain.Address = "0x420000000000000000000000000000000000000F"

// New returns the driver of a configuration. It does no I/O: payments.Engine.Check
// calls the nodes. Errors:
//
//   - fault.Invalid (config_invalid): a configuration that cannot work
//   - fault.Invalid (address_invalid): a malformed L1GasPriceOracle
func New(config Config) (chain.Driver, error) {
	d, err := newDriver(config)
	if err != nil {
		return nil, err
	}

	if config.WebSocket == "" {
		return d, nil
	}

	return newNotified(d, config)
}

func newDriver(config Config) (*driver, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}

	driver := &driver{
		tokens:      map[common.Address]chain.Asset{},
		attempts:    config.Attempts,
		maxBatch:    config.MaxBatch,
		concurrency: config.Concurrency,
		pool:        config.Pool,
		traces:      config.Traces,
		maxGasPrice: chain.Units(config.MaxGasPrice),
		maxGas:      config.MaxGas,
	}

	if err := driver.setAssets(config); err != nil {
		return nil, err
	}

	if config.L1GasPriceOracle != "" {
		oracle, err := parseAddress(string(config.L1GasPriceOracle))
		if err != nil {
			return nil, err
		}

		driver.l1GasPriceOracle = &oracle
	}

	driver.nodes = &failover.Set[*endpoint]{
		Network: driver.network.Slug,
		Log:     config.Logger,
		Verify:  driver.verify,
		Reach:   refreshTip,
		Alone:   config.Alone,
	}

	for _, raw := range config.RPCs {
		node, err := newEndpoint(raw, config)
		if err != nil {
			return nil, err
		}

		driver.nodes.Nodes = append(driver.nodes.Nodes, node)
	}

	return driver, nil
}

// setAssets sets the network with its enabled assets.
func (d *driver) setAssets(config Config) error {
	assets, err := canonicalTokens(slices.Concat(config.Network.Assets, config.Tokens))
	if err != nil {
		return err
	}

	config.Network.Assets = nil
	d.network = config.Network.With(assets...)

	for _, asset := range d.network.Assets {
		if asset.Kind == chain.Token {
			d.tokens[common.HexToAddress(string(asset.Contract))] = asset
		}
	}

	native, ok := d.network.Native()
	if !ok {
		return invalidConfig("network %s has no native asset: add one of kind native", config.Network.Slug)
	}

	d.native = native

	d.format = formatOf(d.network)
	for _, check := range d.format.holds {
		d.held.Store(check, true)
	}

	return nil
}

// withDefaults returns the configuration with its defaults filled in and RPC as the first of RPCs.
func (c Config) withDefaults() Config {
	if c.RPC != "" {
		c.RPCs = append([]string{c.RPC}, c.RPCs...)
	}

	c.HTTPClient = failover.Client(c.HTTPClient)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Timeout = failover.Positive(c.Timeout, 20*time.Second)
	c.Attempts = failover.Positive(c.Attempts, 3)
	c.Concurrency = failover.Positive(c.Concurrency, 4)
	c.MaxBatch = failover.Positive(c.MaxBatch, 32)
	c.MaxResponse = failover.Positive(c.MaxResponse, 128<<20)

	c.Pool = cmp.Or(c.Pool, PoolPending)
	if c.L1GasPriceOracle == "" {
		switch c.Network.ChainID {
		case Optimism.ChainID, OPSepolia.ChainID, Base.ChainID, BaseSepolia.ChainID:
			c.L1GasPriceOracle = opGasPriceOracle
		}
	}

	highest := uint64(500)

	switch c.Network.ChainID {
	case Polygon.ChainID, PolygonAmoy.ChainID:
		highest = 10_000
	case Ethereum.ChainID, Sepolia.ChainID, Base.ChainID, BaseSepolia.ChainID:
		c.MaxGas = cmp.Or(c.MaxGas, maxTxGas)
	}

	c.MaxGasPrice = cmp.Or(c.MaxGasPrice, highest*1_000_000_000)

	return c
}

// validate returns an error for a configuration that cannot work.
func (c Config) validate() error {
	switch {
	case c.Network.Family != chain.EVM || c.Network.ChainID == 0:
		return invalidConfig("network %q is not an EVM network with a chain id", c.Network.Slug)
	case len(c.RPCs) == 0:
		return invalidConfig("network %s has no node: set RPC", c.Network.Slug)
	case c.Pool != PoolPending && c.Pool != PoolContent && c.Pool != PoolOff:
		return invalidConfig("pool source %q is unknown: use pending, txpool or off", c.Pool)
	case c.Alone < 0:
		return invalidConfig("network %s: Alone must not be negative", c.Network.Slug)
	case c.Network.Confirmations == 0:
		return invalidConfig("network %s: Confirmations must be at least 1", c.Network.Slug)
	}

	switch c.Network.Rule {
	case chain.RuleConfirmations, chain.RuleSafe, chain.RuleFinalized:
		return nil
	}

	return invalidConfig("network %s: confirmation rule %q is unknown", c.Network.Slug, c.Network.Rule)
}

// canonicalTokens returns the assets with checksummed contracts. Two tokens must not share one.
func canonicalTokens(assets []chain.Asset) ([]chain.Asset, error) {
	seen := map[common.Address]string{}

	for i, asset := range assets {
		if asset.Kind == chain.Native {
			continue
		}

		contract, err := parseAddress(string(asset.Contract))
		if err != nil || contract == (common.Address{}) || asset.Symbol == "" {
			return nil, invalidConfig(
				"token %q: contract %q is not a contract address",
				asset.Symbol, asset.Contract,
			)
		}

		if other, twice := seen[contract]; twice {
			return nil, invalidConfig("tokens %s and %s have the same contract", other, asset.Symbol)
		}

		seen[contract] = asset.Symbol
		assets[i].Kind, assets[i].Contract = chain.Token, canonical(contract)
	}

	return assets, nil
}

// parseURL returns the parsed URL of a node. Its error never repeats the URL, which may hold a key.
func parseURL(raw string) (*url.URL, error) {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, invalidConfig("an RPC URL is not of the form http(s)://host/path")
	}

	return parsed, nil
}

// invalidConfig returns fault.Invalid (config_invalid).
func invalidConfig(format string, args ...any) error {
	return fault.New(fault.Invalid, "config_invalid", "evm: "+format, args...)
}
