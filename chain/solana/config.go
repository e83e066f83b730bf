package solana

import (
	"cmp"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Config describes a network and its nodes. Network and RPC are required.
type Config struct {
	// Network is Mainnet, Devnet, a Local one or the caller's own. Every node's genesis hash must match
	// its CAIP2 name.
	Network chain.Network

	// RPC is the http or https URL of a node. Of a key in it, errors and logs never contain more than the
	// host.
	RPC string

	// RPCs are further nodes, by preference after RPC. A node that fails or lags is passed over. Defaults
	// to none.
	RPCs []string

	// Tokens are enabled in addition to the network's assets. Symbol, Contract (the mint) and Decimals
	// are required. Defaults to none.
	Tokens []chain.Asset

	// Token2022 lists the mints of enabled tokens that belong to the Token-2022 program; all others
	// belong to SPL Token. Check compares both with the network. Defaults to none.
	Token2022 []chain.Address

	// AcceptedRisks lists, by mint, what the issuer of a Token-2022 token may do that Check refuses otherwise.
	// Defaults to none.
	AcceptedRisks map[chain.Address][]TokenRisk

	// NonceAccounts lists, by the address of a wallet, the nonce accounts whose authority it is. Each transaction that
	// the wallet sends then uses one of them, and no two at a time. Defaults to none: transactions run out.
	NonceAccounts map[chain.Address][]chain.Address

	// Reference adds the key of Reference to payment URIs, as Solana Pay allows. Payments are found without it, and
	// some wallets refuse a URI that has one. Defaults to false.
	Reference bool

	// HTTPClient sends the requests; its Timeout is not changed. Defaults to a client without redirects.
	HTTPClient *http.Client

	// Logger receives node failures. Defaults to discarding.
	Logger *slog.Logger

	// Timeout limits each HTTP request. Defaults to 20 seconds.
	Timeout time.Duration

	// Attempts is the number of times all nodes are tried before a call is fault.Unavailable. Defaults
	// to 3.
	Attempts int

	// Concurrency is the maximum number of HTTP requests in flight per node. Defaults to 8.
	Concurrency int

	// CallsPerSecond is the budget for reading a network on which nothing arrives. Up to 5,000 accounts it is
	// kept; more than that are read within a minute all the same. Defaults to 2.
	CallsPerSecond int

	// WholeBlocks makes the driver read blocks, several megabytes each on the main network. Defaults to false: it
	// finds payments in the histories of addresses, which every provider serves.
	WholeBlocks bool

	// MaxBlocks is the largest number of blocks that Blocks returns. Defaults to 32.
	MaxBlocks int

	// MaxResponse is the largest response body, in bytes. Defaults to 128 MiB.
	MaxResponse int64

	// MaxPriorityPrice is the highest price offered beyond the base fee, in millionths of a lamport per
	// compute unit. Defaults to 1,000,000: at most 0.0002 SOL for a payment to a new token account.
	MaxPriorityPrice uint64
}

// New returns the driver of a configuration. It does no I/O; its Check calls the nodes. An unusable configuration
// is fault.Invalid.
func New(c Config) (chain.Driver, error) {
	d, err := newDriver(c)
	if err != nil {
		return nil, err
	}

	if c.WholeBlocks {
		return &blockDriver{driver: d}, nil
	}

	return d, nil
}

func newDriver(c Config) (*driver, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}

	d := &driver{
		config: c,
		mints:  map[solanago.PublicKey]mint{},
		slots:  newSlotCache(),
		seen:   newSeenAccounts(),
	}
	if err := d.setAssets(c); err != nil {
		return nil, err
	}

	if err := d.setNodes(c); err != nil {
		return nil, err
	}

	return d, nil
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
	c.CallsPerSecond = failover.Positive(c.CallsPerSecond, 2)
	c.MaxBlocks = failover.Positive(c.MaxBlocks, 32)
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

	if err := c.checkNonceAccounts(); err != nil {
		return err
	}

	switch c.Network.Rule {
	case chain.RuleConfirmations, chain.RuleSafe, chain.RuleFinalized:
		return nil
	}

	return invalidConfig("network %s: confirmation rule %q is unknown", c.Network.Slug, c.Network.Rule)
}

// setAssets sets the network with its assets, the mints and the native coin.
func (d *driver) setAssets(c Config) error {
	assets, err := c.assets()
	if err != nil {
		return err
	}

	c.Network.Assets = nil

	d.network = c.Network.With(assets...)
	for _, asset := range d.network.Assets {
		if asset.Kind == chain.Token {
			key := solanago.MustPublicKeyFromBase58(string(asset.Contract))
			d.mints[key] = mint{Asset: asset, key: key, program: solanago.TokenProgramID}
		}
	}

	for _, address := range c.Token2022 {
		key, err := parseKey(string(address))

		m, enabled := d.mints[key]
		if err != nil || !enabled {
			return invalidConfig("Token2022 names %q, which is the mint of no enabled token", address)
		}

		m.program = solanago.Token2022ProgramID
		d.mints[key] = m
	}

	if err := d.setRisks(c); err != nil {
		return err
	}

	native, ok := d.network.Native()
	if !ok {
		return invalidConfig("network %s has no native asset: add one of kind native", c.Network.Slug)
	}

	d.native = native

	return nil
}

// setRisks sets what is accepted of the mints.
func (d *driver) setRisks(c Config) error {
	for address, risks := range c.AcceptedRisks {
		key, err := parseKey(string(address))

		m, enabled := d.mints[key]
		if err != nil || !enabled || m.program != solanago.Token2022ProgramID {
			return invalidConfig("AcceptedRisks names %q, which is no mint of Token2022", address)
		}

		for _, risk := range risks {
			if !slices.Contains(slices.Collect(maps.Values(acceptableRisks)), risk) {
				return invalidConfig("AcceptedRisks of %q: there is no risk %q", address, risk)
			}
		}

		m.accepted = risks
		d.mints[key] = m
	}

	return nil
}

// assets returns the network's assets and the tokens, with the mints in their canonical form.
func (c Config) assets() ([]chain.Asset, error) {
	assets := append(append([]chain.Asset{}, c.Network.Assets...), c.Tokens...)
	symbols := map[solanago.PublicKey]string{}

	for i, asset := range assets {
		if asset.Kind == chain.Native {
			continue
		}

		key, err := parseKey(string(asset.Contract))
		if err != nil || asset.Symbol == "" {
			return nil, invalidConfig(
				"token %q: %q is not the address of a mint", asset.Symbol, asset.Contract,
			)
		}

		if other, twice := symbols[key]; twice {
			return nil, invalidConfig("tokens %s and %s have the same mint", other, asset.Symbol)
		}

		symbols[key] = asset.Symbol
		assets[i].Kind, assets[i].Contract = chain.Token, chain.Address(key.String())
	}

	return assets, nil
}

// setNodes sets the nodes of the configured URLs.
func (d *driver) setNodes(c Config) error {
	d.nodes = &failover.Set[*endpoint]{
		Network: d.network.Slug,
		Log:     c.Logger,
		Keep:    true,
		Verify:  d.verify,
	}

	for _, raw := range c.RPCs {
		e, err := newEndpoint(raw, c)
		if err != nil {
			return err
		}

		d.nodes.Nodes = append(d.nodes.Nodes, e)
	}

	return nil
}

func invalidConfig(format string, args ...any) error {
	return fault.New(fault.Invalid, "config_invalid", "solana: "+format, args...)
}
