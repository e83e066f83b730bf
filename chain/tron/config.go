package tron

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Node is a full node of one's own, or a provider.
type Node struct {
	// URL is the http or https base URL of /wallet/…. Errors and logs show only its host.
	URL string
	// SolidityURL is the base URL of /walletsolidity/…, another port on a node of one's own. Defaults to URL.
	SolidityURL string
	// APIKey is sent as TRON-PRO-API-KEY. Defaults to none.
	APIKey string
}

// Config configures a driver. Network and one node are required.
type Config struct {
	// Network is Mainnet, Nile, Shasta or Private, or the caller's own. Its CAIP2 name holds the last 4 bytes
	// of the genesis block's id, which nodes are checked against.
	Network chain.Network
	// Tokens are enabled beside the network's own assets. Symbol, Contract and Decimals are required.
	Tokens []chain.Asset

	// Nodes are asked in this order; one that fails or lags is passed over. Balances take several requests:
	// behind a load balancer they fail more often, but are never wrong.
	Nodes []Node

	// HTTPClient sends the requests; its Timeout is kept, redirects are never followed. Defaults to a client
	// without proxy.
	HTTPClient *http.Client
	// Logger receives node failures. Defaults to discarding.
	Logger *slog.Logger
	// Timeout bounds each HTTP request. Defaults to 20 seconds.
	Timeout time.Duration
	// Attempts is the number of times that all nodes are tried before a call is fault.Unavailable. Defaults
	// to 3.
	Attempts int
	// Concurrency is the number of concurrent HTTP requests per node. Defaults to 4.
	Concurrency int
	// MaxBlocks is the largest number of blocks that one call of Blocks returns, 1 to 100. Defaults to 20.
	MaxBlocks int
	// MaxResponse is the largest response body in bytes. Defaults to 64 MiB.
	MaxResponse int64

	// Permissions are the ids of active permissions, 2 to 9, by the account that they sign for, such as a master
	// wallet whose owner permission is kept elsewhere. The account's own key must reach the permission's threshold
	// alone, and the permission must allow TransferContract and TriggerSmartContract, for DelegateEnergy also
	// DelegateResourceContract and UnDelegateResourceContract. Defaults to the owner permission, 0.
	Permissions map[chain.Address]int
	// DelegateEnergy has releases of tokens use the energy of the master wallet's stake as far as it goes: it is
	// delegated to the deposit address before the sweep and taken back afterwards. Defaults to false: the sweep
	// burns TRX that the master wallet tops up.
	DelegateEnergy bool
	// EnergyProvider sells the energy of releases of tokens instead. Defaults to none.
	EnergyProvider EnergyProvider

	// MaxEnergyPrice is the highest price of energy at which transactions are made, in sun per unit, whatever nodes
	// say. Defaults to 1,000.
	MaxEnergyPrice uint64
	// MaxFeeLimit is the highest fee limit of a call, in sun: it burns no more. While a call needs more, it waits.
	// Defaults to 500 TRX.
	MaxFeeLimit uint64

	// Validity is the time after the newest block in which a transaction can be included, 1 minute to 23
	// hours. One that expires is rebuilt about a minute later. Defaults to 5 minutes.
	Validity time.Duration
	// Now is the clock of transactions. Defaults to time.Now.
	Now func() time.Time
}

// New returns the driver of a configuration, without I/O: its Check asks the nodes. A configuration that
// cannot work is fault.Invalid (config_invalid).
func New(c Config) (chain.Driver, error) {
	d, err := newDriver(c)
	if err != nil {
		return nil, err
	}

	return d, nil
}

func newDriver(c Config) (*driver, error) {
	c = c.withDefaults()

	genesis, err := c.check()
	if err != nil {
		return nil, err
	}

	d := &driver{
		genesis:   genesis,
		tokens:    map[address]chain.Asset{},
		attempts:  c.Attempts,
		maxBlocks: c.MaxBlocks,
		validity:  c.Validity,
		delegates: c.DelegateEnergy,
		provider:  c.EnergyProvider,
		now:       c.Now,

		maxEnergyPrice: c.MaxEnergyPrice,
		maxFeeLimit:    c.MaxFeeLimit,
	}

	if d.permissions, err = c.permissionIDs(); err != nil {
		return nil, err
	}

	tokens, err := canonicalTokens(append(append([]chain.Asset{}, c.Network.Assets...), c.Tokens...))
	if err != nil {
		return nil, err
	}

	c.Network.Assets = nil

	d.network = c.Network.With(tokens...)
	for _, a := range d.network.Assets {
		if a.Kind == chain.Token {
			contract, _ := parseAddress(string(a.Contract)) // canonical since canonicalTokens
			d.tokens[contract] = a
		}
	}

	native, ok := d.network.Native()
	if !ok {
		return nil, invalidConfig("network %s has no native asset: add one of kind native", c.Network.Slug)
	}

	d.native = native

	if d.nodes, err = d.newNodes(c); err != nil {
		return nil, err
	}

	return d, nil
}

// newNodes returns the configured nodes, none of them asked yet.
func (d *driver) newNodes(c Config) (*failover.Set[*endpoint], error) {
	nodes := &failover.Set[*endpoint]{
		Network: d.network.Slug,
		Log:     c.Logger,
		Verify:  d.verify,
		Reach:   checkHeight,
	}

	for _, n := range c.Nodes {
		node, err := newEndpoint(n, c)
		if err != nil {
			return nil, err
		}

		nodes.Nodes = append(nodes.Nodes, node)
	}

	return nodes, nil
}

func (c Config) withDefaults() Config {
	c.HTTPClient = failover.Client(c.HTTPClient)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Timeout = failover.Positive(c.Timeout, 20*time.Second)
	c.Attempts = failover.Positive(c.Attempts, 3)
	c.Concurrency = failover.Positive(c.Concurrency, 4)
	c.MaxBlocks = failover.Positive(c.MaxBlocks, 20)
	c.MaxResponse = failover.Positive(c.MaxResponse, 64<<20)

	c.MaxEnergyPrice = cmp.Or(c.MaxEnergyPrice, 1_000)
	c.MaxFeeLimit = cmp.Or(c.MaxFeeLimit, 500_000_000)

	c.Validity = cmp.Or(c.Validity, 5*time.Minute)
	if c.Now == nil {
		c.Now = time.Now
	}

	return c
}

// check returns the last 4 bytes of the genesis block's id in hex, or fault.Invalid (config_invalid).
func (c Config) check() (genesis string, err error) {
	digits, ok := strings.CutPrefix(c.Network.CAIP2, "tron:0x")
	switch {
	case c.Network.Family != chain.Tron || !ok || !isLowerHex(digits, 8):
		return "", invalidConfig(
			"network %q is no Tron network whose CAIP2 name is tron:0x and 8 hexadecimal digits, in lower case",
			c.Network.Slug,
		)
	case len(c.Nodes) == 0:
		return "", invalidConfig("network %s has no node: set Nodes", c.Network.Slug)
	case c.MaxBlocks > 100:
		return "", invalidConfig("MaxBlocks is %d, and nodes return at most 100 blocks at once", c.MaxBlocks)
	case c.Validity < time.Minute || c.Validity > 23*time.Hour:
		return "", invalidConfig("Validity is %s: set it between 1 minute and 23 hours", c.Validity)
	case c.DelegateEnergy && c.EnergyProvider != nil:
		return "", invalidConfig("DelegateEnergy and EnergyProvider are set: releases use one of them")
	case c.Network.Confirmations == 0:
		return "", invalidConfig("network %s: Confirmations must be at least 1", c.Network.Slug)
	}

	if c.Network.Rule == chain.RuleConfirmations || c.Network.Rule == chain.RuleFinalized {
		return digits, nil
	}

	return "", invalidConfig(
		"network %s: confirmation rule %q is unknown: use finalized or confirmations",
		c.Network.Slug, c.Network.Rule,
	)
}

// permissionIDs returns the permissions by account. Source: java-tron, AccountPermissionUpdateActuator: an account has
// at most 8 active permissions, from id 2 on.
func (c Config) permissionIDs() (map[address]int64, error) {
	ids := map[address]int64{}

	for account, id := range c.Permissions {
		owner, err := parseAddress(string(account))
		if err != nil || id < 2 || id > 9 {
			return nil, invalidConfig(
				"Permissions: %q is no account with an active permission %d",
				account,
				id,
			)
		}

		ids[owner] = int64(id)
	}

	return ids, nil
}

// canonicalTokens returns the assets with their contracts in canonical form.
func canonicalTokens(assets []chain.Asset) ([]chain.Asset, error) {
	seen := map[address]string{}

	for i, a := range assets {
		if a.Kind == chain.Native {
			continue
		}

		contract, err := parseAddress(string(a.Contract))
		if err != nil || contract == (address{}) || a.Symbol == "" {
			return nil, invalidConfig("token %q: contract %q is not a contract address", a.Symbol, a.Contract)
		}

		if other, twice := seen[contract]; twice {
			return nil, invalidConfig("tokens %s and %s have the same contract", other, a.Symbol)
		}

		seen[contract] = a.Symbol
		assets[i].Kind, assets[i].Contract = chain.Token, canonical(contract)
	}

	return assets, nil
}

// checkURL returns the parsed URL of a node. Its error never shows the URL, which may hold a key.
func checkURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" ||
		(u.Scheme != "http" && u.Scheme != "https") {
		return nil, invalidConfig("a node's URL is not of the form http(s)://host/path")
	}

	return u, nil
}

func invalidConfig(format string, args ...any) error {
	return fault.New(fault.Invalid, "config_invalid", "tron: "+format, args...)
}
