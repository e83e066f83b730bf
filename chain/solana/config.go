package solana

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Config says which network to serve and over which nodes. Network and one URL are required.
type Config struct {
	// Network is Mainnet, Devnet, a Local one or the caller's own. Its CAIP2 name holds the genesis
	// hash that every node is compared with.
	Network chain.Network
	// RPC is the http or https URL of a node. It may hold a key: no error or log ever shows more of
	// it than the host.
	RPC string
	// RPCs are further nodes, in order of preference after RPC. A node that fails or lags is passed over.
	RPCs []string
	// Tokens are enabled beside the network's own assets. Symbol, Contract (the mint) and Decimals
	// are required.
	Tokens []chain.Asset
	// Token2022 lists the mints among the tokens that belong to the Token-2022 program; all others
	// belong to SPL Token. Check compares both with the network.
	Token2022 []chain.Address
	// HTTPClient carries the requests; its Timeout is left alone. Defaults to one without redirects.
	HTTPClient *http.Client
	// Logger hears of failing nodes. Defaults to discarding.
	Logger *slog.Logger
	// Timeout bounds each HTTP request. Defaults to 20 seconds.
	Timeout time.Duration
	// Attempts is how often all nodes are tried before a call is fault.Unavailable. Defaults to 3.
	Attempts int
	// Concurrency is how many HTTP requests one node serves at a time. Defaults to 8.
	Concurrency int
	// MaxBlocks is the most blocks that one call of Blocks returns. Defaults to 16.
	MaxBlocks int
	// MaxResponse is the largest response body that is read, in bytes. Defaults to 128 MiB.
	MaxResponse int64
	// MaxPriorityPrice bounds what is offered beyond the base fee, in millionths of a lamport per
	// compute unit. Defaults to 1,000,000: at most 0.0002 SOL for a payment to a new token account.
	MaxPriorityPrice uint64
}

// mint is an enabled token.
type mint struct {
	chain.Asset
	key     solanago.PublicKey
	program solanago.PublicKey
}

// New checks the configuration and returns a driver that sees payments by the signatures of
// addresses. It does no I/O; Driver.Check asks the nodes. A configuration that cannot work is
// fault.Invalid.
func New(c Config) (*Driver, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}

	d := &Driver{
		config: c,
		mints:  map[solanago.PublicKey]mint{},
		slots:  newSlotMemory(),
		rests:  newRestMemory(),
	}
	assets := append(append([]chain.Asset{}, c.Network.Assets...), c.Tokens...)
	symbols := map[solanago.PublicKey]string{}

	for i, a := range assets {
		if a.Kind == chain.Native {
			continue
		}

		key, err := parseKey(string(a.Contract))
		if err != nil || a.Symbol == "" {
			return nil, invalidConfig("token %q: %q is not the address of a mint", a.Symbol, a.Contract)
		}

		if other, twice := symbols[key]; twice {
			return nil, invalidConfig("tokens %s and %s have the same mint", other, a.Symbol)
		}

		symbols[key] = a.Symbol
		assets[i].Kind, assets[i].Contract = chain.Token, chain.Address(key.String())
	}

	c.Network.Assets = nil

	d.network = c.Network.With(assets...)
	for _, a := range d.network.Assets {
		if a.Kind == chain.Token {
			key := solanago.MustPublicKeyFromBase58(string(a.Contract))
			d.mints[key] = mint{Asset: a, key: key, program: solanago.TokenProgramID}
		}
	}

	for _, a := range c.Token2022 {
		key, err := parseKey(string(a))

		m, enabled := d.mints[key]
		if err != nil || !enabled {
			return nil, invalidConfig("Token2022 names %q, which is the mint of no enabled token", a)
		}

		m.program = solanago.Token2022ProgramID
		d.mints[key] = m
	}

	native, ok := d.network.Native()
	if !ok {
		return nil, invalidConfig("network %s has no native asset: add one of kind native", c.Network.Slug)
	}

	d.native = native

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

// NewBlockDriver is New for a driver that also reads whole blocks. Each is some megabytes on the
// main network.
func NewBlockDriver(c Config) (*BlockDriver, error) {
	d, err := New(c)
	if err != nil {
		return nil, err
	}

	return &BlockDriver{d}, nil
}

func (c Config) withDefaults() Config {
	if c.RPC != "" {
		c.RPCs = append([]string{c.RPC}, c.RPCs...)
	}

	c.HTTPClient = failover.Client(c.HTTPClient)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Timeout = failover.Positive(c.Timeout, 20*time.Second)
	c.Attempts = failover.Positive(c.Attempts, 3)
	c.Concurrency = failover.Positive(c.Concurrency, 8)
	c.MaxBlocks = failover.Positive(c.MaxBlocks, 16)
	c.MaxResponse = failover.Positive(c.MaxResponse, 128<<20)
	c.MaxPriorityPrice = cmp.Or(c.MaxPriorityPrice, 1_000_000)

	return c
}

func (c Config) check() error {
	genesis, ok := strings.CutPrefix(c.Network.CAIP2, "solana:")
	switch {
	case c.Network.Family != chain.Solana || !ok || genesis == "":
		return invalidConfig(
			"network %q is not a Solana network with a CAIP-2 name such as solana:<genesis hash>",
			c.Network.Slug,
		)
	case len(c.RPCs) == 0:
		return invalidConfig("network %s has no node: set RPC", c.Network.Slug)
	case c.Network.Confirmations == 0:
		return invalidConfig("network %s: Confirmations must be at least 1", c.Network.Slug)
	}

	switch c.Network.Rule {
	case chain.RuleConfirmations, chain.RuleSafe, chain.RuleFinalized:
		return nil
	}

	return invalidConfig("network %s: confirmation rule %q is unknown", c.Network.Slug, c.Network.Rule)
}

func invalidConfig(format string, args ...any) error {
	return fault.New(fault.Invalid, "config_invalid", "solana: "+format, args...)
}
