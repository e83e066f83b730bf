package bitcoin

import (
	"cmp"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/btcsuite/btcd/chaincfg/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Config configures a driver. Network and one URL are required.
type Config struct {
	// Network is Mainnet, Testnet4, Signet or Regtest, or a copy of one with other settings.
	Network chain.Network

	// RPC is the URL of a node, http(s)://user:password@host:port. Errors and logs show only its host.
	RPC string
	// RPCs are further nodes, in order of preference after RPC. A node that answers is used until it fails.
	RPCs []string
	// CookieFile is the path of a node's .cookie file with the credentials for URLs that have none.
	// It is read at each request, since a node rewrites it at each start. Defaults to none.
	CookieFile string

	// Pinned are blocks that every node must have, by height and hash, such as a block after a split of the
	// network. Take them from a source that you trust. On Mainnet block 810,000 is always pinned. Defaults to
	// none.
	Pinned []chain.Ref

	// ZMQ is the address at which a node publishes the hashes of new blocks (its option -zmqpubhashblock),
	// tcp://host:port or ipc:///path. A payment is then read as soon as it is mined. The address is used for
	// nothing else, and RPC is polled all the same. ZMQ has neither password nor encryption: keep it on the
	// machine or in a private network. Defaults to none: new blocks are found by polling.
	ZMQ string

	// Taproot derives P2TR addresses by BIP-86 instead of P2WPKH by BIP-84. Choose before the first address
	// is shown, together with the signer's keys (hdkey.WithTaproot). Coins of both kinds can be spent.
	Taproot bool

	// Keys adds the data to each PSBT that hardware devices need: the paths of the keys of inputs and change,
	// and the transactions that inputs spend. Set it to the paths of the signer, such as hdkey.Signer.
	// Defaults to none.
	Keys KeyPaths

	// FeeTarget is the confirmation target in blocks, 1 to 1008. Defaults to 3.
	FeeTarget int
	// MinFeeRate and MaxFeeRate bound the fee estimate, in satoshi per 1000 virtual bytes. If a node relays
	// nothing below MaxFeeRate, calls are fault.Limited. Default to 1,000 and 500,000.
	MinFeeRate, MaxFeeRate uint64
	// FallbackFeeRate is the rate while the node has no estimate, in satoshi per 1000 virtual bytes.
	// Defaults to 10,000.
	FallbackFeeRate uint64

	// CPFPMaxFee enables CPFP bumps of payments with too low a fee. It is the most, in satoshi, that a bump
	// may cost the merchant's master wallet. No bump costs more than a tenth of the payment, rounded down.
	// Defaults to 0: no payment is bumped.
	CPFPMaxFee uint64
	// CPFPAfter is the time after which an unconfirmed payment is bumped. Defaults to 1 hour.
	CPFPAfter time.Duration

	// HTTPClient sends the requests; redirects are never followed. Defaults to a client without proxy.
	HTTPClient *http.Client
	// Logger receives node failures. Defaults to discarding.
	Logger *slog.Logger
	// Timeout bounds each HTTP request, and the making of a subscription. Defaults to 30 seconds.
	Timeout time.Duration
	// Attempts is the number of times that all nodes are tried before a call is fault.Unavailable. Defaults
	// to 3.
	Attempts int
	// Alone is the time after which the network goes on with one node, if all other nodes give no usable
	// answer for so long. That node's blocks then confirm payments and end transactions, and Health names the
	// node. Alone needs two nodes or more. Defaults to 0: the network waits.
	Alone time.Duration
	// Concurrency is the number of concurrent HTTP requests per node; as many blocks are in memory while they
	// are read. Defaults to 4, the default number of RPC threads of Bitcoin Core.
	Concurrency int
	// MaxBlocks is the largest number of blocks that one call of Blocks returns. Defaults to 8.
	MaxBlocks int
	// MaxResponse is the largest response body in bytes. If the previous outputs of a block make the answer
	// larger, the block is read without them; a block of 4 MB then needs 8 MB. Defaults to 128 MiB.
	MaxResponse int64
	// PoolLimit is the largest number of transactions that Pool returns. It takes them in the node's order:
	// first those without unconfirmed ancestors, by fee. Defaults to 20,000. With a negative limit no mempool
	// is read, and payments are first seen in blocks.
	PoolLimit int
}

// New returns the driver of a configuration. It does no I/O; Check calls the nodes. A configuration that
// cannot work is fault.Invalid (config_invalid).
func New(c Config) (chain.Driver, error) {
	d, err := newDriver(c)
	if err != nil {
		return nil, err
	}

	if c.ZMQ == "" {
		return d, nil
	}

	return newNotified(d, c.ZMQ)
}

func newDriver(c Config) (*driver, error) {
	c = c.withDefaults()

	params := paramsOf(c.Network)
	if err := c.check(params); err != nil {
		return nil, err
	}

	network := c.Network
	network.Assets = nil

	d := &driver{
		network:  network.With(c.Network.Assets...),
		params:   params,
		config:   c,
		log:      c.Logger,
		pool:     poolCache{limit: max(c.PoolLimit, 0)},
		searches: map[string]*inclusionSearch{},
	}
	d.native = d.network.Assets[0]

	d.nodes = &failover.Set[*endpoint]{
		Network: d.network.Slug,
		Log:     c.Logger,
		Keep:    true,
		Verify:  d.verify,
		Alone:   c.Alone,
	}
	for _, raw := range c.RPCs {
		node, err := newEndpoint(raw, c)
		if err != nil {
			return nil, err
		}

		d.nodes.Nodes = append(d.nodes.Nodes, node)
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
	c.CPFPAfter = failover.Positive(c.CPFPAfter, time.Hour)
	c.Timeout = failover.Positive(c.Timeout, 30*time.Second)
	c.Attempts = failover.Positive(c.Attempts, 3)
	c.Concurrency = failover.Positive(c.Concurrency, 4)
	c.MaxBlocks = failover.Positive(c.MaxBlocks, 8)
	c.MaxResponse = failover.Positive(c.MaxResponse, 128<<20)
	c.PoolLimit = cmp.Or(c.PoolLimit, 20_000)

	return c
}

// check returns fault.Invalid (config_invalid) for a configuration that cannot work.
func (c Config) check(params *chaincfg.Params) error {
	switch {
	case c.Network.Family != chain.Bitcoin || params == nil:
		return invalidConfig(
			"network %q is not a Bitcoin network of a known genesis block: start from Mainnet, Testnet4, "+
				"Signet or Regtest",
			c.Network.Slug,
		)
	case c.Network.Rule != chain.RuleConfirmations || c.Network.Confirmations == 0:
		return invalidConfig("network %s: the rule must be confirmations, at least 1", c.Network.Slug)
	case len(c.Network.Assets) != 1 || c.Network.Assets[0].Kind != chain.Native ||
		c.Network.Assets[0].Decimals != decimals:
		return invalidConfig(
			"network %s: it has one asset, its native coin with 8 decimals",
			c.Network.Slug,
		)
	case len(c.RPCs) == 0:
		return invalidConfig("network %s has no node: set RPC", c.Network.Slug)
	case c.Alone < 0:
		return invalidConfig("network %s: Alone must not be negative", c.Network.Slug)
	case c.FeeTarget < 1 || c.FeeTarget > 1008:
		return invalidConfig("FeeTarget is %d: use 1 to 1008 blocks", c.FeeTarget)
	case c.MinFeeRate > c.MaxFeeRate || c.MaxFeeRate > maxSaneFeeRate:
		return invalidConfig(
			"fee rates %d to %d satoshi per 1000 vB: MinFeeRate must not exceed MaxFeeRate, nor that %d",
			c.MinFeeRate, c.MaxFeeRate, int64(maxSaneFeeRate),
		)
	case slices.ContainsFunc(c.Pinned, func(pin chain.Ref) bool {
		hash, err := parseHash(pin.Hash)
		return err != nil || hash != pin.Hash || pin.Height > math.MaxInt32
	}):
		return invalidConfig(
			"Pinned: give each block's height, and its hash as 64 lower case hexadecimal digits",
		)
	case c.CPFPMaxFee > maxSatoshi:
		return invalidConfig("CPFPMaxFee is %d satoshi, more than there are", c.CPFPMaxFee)
	}

	return nil
}

func invalidConfig(format string, args ...any) error {
	return fault.New(fault.Invalid, "config_invalid", "bitcoin: "+format, args...)
}
