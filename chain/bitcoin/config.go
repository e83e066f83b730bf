package bitcoin

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Config says which network to serve and over which nodes. Network and one URL are required.
type Config struct {
	// Network is Mainnet, Testnet4, Signet or Regtest, or a copy of one with other settings.
	Network chain.Network
	// RPC is the URL of a node, http(s)://user:password@host:port. It may hold a key: no error or log ever
	// shows more of it than the host.
	RPC string
	// RPCs are further nodes, in order of preference after RPC. One that fails is passed over, and the one
	// that answers is kept to until it fails.
	RPCs []string
	// CookieFile is the path of a node's .cookie file, whose credentials are used for every URL that names
	// none; it is read at each request, since a node writes it anew at each start. Defaults to none.
	CookieFile string
	// Taproot derives P2TR addresses by BIP-86 instead of P2WPKH by BIP-84. Choose before the first address
	// is shown, together with the signer's keys (hdkey.WithTaproot). Coins of both kinds can be spent.
	Taproot bool
	// FeeTarget is within how many blocks a transaction of ours should be included, 1 to 1008. Defaults to 3.
	FeeTarget int
	// MinFeeRate and MaxFeeRate bound the node's fee estimate, in satoshi per 1000 virtual bytes; a node that
	// takes nothing below MaxFeeRate is fault.Limited. Default to 1,000 and 500,000.
	MinFeeRate, MaxFeeRate uint64
	// FallbackFeeRate is used while the node has no estimate, in satoshi per 1000 virtual bytes.
	// Defaults to 10,000.
	FallbackFeeRate uint64
	// LiftMaxFee switches child-pays-for-parent on: the most, in satoshi, that a transaction may
	// cost which makes miners take a payment that pays them too little. The master wallet of the
	// merchant pays it. However high it is, no payment is lifted for more than a tenth of its
	// amount, rounded down. Defaults to 0: no payment is lifted.
	LiftMaxFee uint64
	// LiftAfter is how long a payment waits in the pool before it is lifted. Defaults to 1 hour.
	LiftAfter time.Duration
	// HTTPClient carries the requests. Defaults to one without proxy settings of its own. Redirects
	// are never followed.
	HTTPClient *http.Client
	// Logger hears of failing nodes. Defaults to discarding.
	Logger *slog.Logger
	// Timeout bounds each HTTP request. Defaults to 30 seconds.
	Timeout time.Duration
	// Attempts is how often all nodes are tried before a call is fault.Unavailable. Defaults to 3.
	Attempts int
	// Concurrency is how many HTTP requests one node serves at a time, and so how many blocks are held in
	// memory at once while they are read. Defaults to 4, the number of threads of a Bitcoin Core by default.
	Concurrency int
	// MaxBlocks is the most blocks that one call of Blocks returns. Defaults to 8.
	MaxBlocks int
	// MaxResponse is the largest response body that is read, in bytes. Defaults to 128 MiB.
	MaxResponse int64
	// PoolLimit is the most waiting transactions that Pool shows. Where there are more, those that the node
	// lists first are shown: the ones without waiting ancestors, by fee. Defaults to 20,000; negative reads
	// no pool, and payments are first seen in blocks.
	PoolLimit int
}

// New checks the configuration and returns the driver; it does no I/O. Driver.Check asks the nodes.
// A configuration that cannot work is fault.Invalid.
func New(c Config) (*Driver, error) {
	c = c.withDefaults()

	params := paramsOf(c.Network)
	switch {
	case c.Network.Family != chain.Bitcoin || params == nil:
		return nil, invalidConfig(
			"network %q is not a Bitcoin network of a known genesis block: start from Mainnet, Testnet4, "+
				"Signet or Regtest",
			c.Network.Slug,
		)
	case c.Network.Rule != chain.RuleConfirmations || c.Network.Confirmations == 0:
		return nil, invalidConfig("network %s: the rule must be confirmations, at least 1", c.Network.Slug)
	case len(c.Network.Assets) != 1 || c.Network.Assets[0].Kind != chain.Native ||
		c.Network.Assets[0].Decimals != decimals:
		return nil, invalidConfig(
			"network %s: it has one asset, its native coin with 8 decimals",
			c.Network.Slug,
		)
	case len(c.RPCs) == 0:
		return nil, invalidConfig("network %s has no node: set RPC", c.Network.Slug)
	case c.FeeTarget < 1 || c.FeeTarget > 1008:
		return nil, invalidConfig("FeeTarget is %d: use 1 to 1008 blocks", c.FeeTarget)
	case c.MinFeeRate > c.MaxFeeRate || c.MaxFeeRate > maxSaneFeeRate:
		return nil, invalidConfig(
			"fee rates %d to %d satoshi per 1000 vB: MinFeeRate must not exceed MaxFeeRate, nor that %d",
			c.MinFeeRate, c.MaxFeeRate, int64(maxSaneFeeRate),
		)
	case c.LiftMaxFee > maxSatoshi:
		return nil, invalidConfig("LiftMaxFee is %d satoshi, more than there are", c.LiftMaxFee)
	}

	network := c.Network
	network.Assets = nil
	d := &Driver{
		network: network.With(c.Network.Assets...),
		params:  params,
		config:  c,
		log:     c.Logger,
		pool:    poolCache{limit: max(c.PoolLimit, 0)},
		searches:  map[string]*spenderSearch{},
	}
	d.native = d.network.Assets[0]

	d.nodes = &failover.Set[*endpoint]{Network: d.network.Slug, Log: c.Logger, Keep: true, Verify: d.verify}
	for _, raw := range c.RPCs {
		e, err := newEndpoint(raw, c)
		if err != nil {
			return nil, err
		}

		d.nodes.Nodes = append(d.nodes.Nodes, e)
	}

	return d, nil
}

func (c Config) withDefaults() Config {
	if c.RPC != "" {
		c.RPCs = append([]string{c.RPC}, c.RPCs...)
	}

	c.HTTPClient = failover.Client(c.HTTPClient)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.FeeTarget = cmp.Or(c.FeeTarget, 3)
	c.MinFeeRate = cmp.Or(c.MinFeeRate, 1_000)
	c.MaxFeeRate = cmp.Or(c.MaxFeeRate, 500_000)
	c.FallbackFeeRate = cmp.Or(c.FallbackFeeRate, 10_000)
	c.LiftAfter = failover.Positive(c.LiftAfter, time.Hour)
	c.Timeout = failover.Positive(c.Timeout, 30*time.Second)
	c.Attempts = failover.Positive(c.Attempts, 3)
	c.Concurrency = failover.Positive(c.Concurrency, 4)
	c.MaxBlocks = failover.Positive(c.MaxBlocks, 8)
	c.MaxResponse = failover.Positive(c.MaxResponse, 128<<20)
	c.PoolLimit = cmp.Or(c.PoolLimit, 20_000)

	return c
}

func invalidConfig(format string, args ...any) error {
	return fault.New(fault.Invalid, "config_invalid", "bitcoin: "+format, args...)
}
