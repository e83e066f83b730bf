// Package sim is a whole network in memory: blocks, a pool, accounts with nonces, fees, forks, finality and
// time, with every fault a real node can have at the push of a button.
//
// A *Chain is both sides of the wire. As a driver it implements chain.Driver, BlockScanner,
// Mempool, Finder, Balancer, Deriver, URIBuilder, FeeEstimator, Nonces, Sender, Batcher, Sweeper
// and Checker, and knows nothing that a node would not tell. As a network it has controls (Fund,
// Pay, Mine, Fork, Drop, FailNext, Lag …) with which the demo of examples/quickstart runs and the
// money rules of the domains are tested; package conformance uses the same controls to hold this
// driver to the suite that every driver has to pass.
//
// The model is the EVM's: accounts have nonces, a transaction pays gas × min(max price, base +
// priority price), a replacement at a nonce must pay a tenth more, tokens leave logs, contracts can
// move coin that no block scan shows. Signatures are real (secp256k1), so that a wrong key is found
// here too. Money is not: nothing of this package touches a real network.
//
// The controls are for tests and demonstrations: they panic on a mistake of the program, such as an
// asset that the network does not have. Everything is safe for concurrent use, and with a fixed
// clock the same calls on the same Config.Seed give the same hashes.
package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// The gas that a transaction uses, by what it does. A transaction without token or internal
// movements uses GasNative; any other GasToken for each of those. Each further destination of
// native coin costs GasNative more.
const (
	GasNative = 21_000
	GasToken  = 60_000
)

// The prices of gas before SetFee is called, in base units of the native coin.
const (
	DefaultBaseFee  = 1_000_000_000
	DefaultPriority = 100_000_000
)

// Config describes a simulated network. The zero value is a usable one.
type Config struct {
	// Network is what the driver says of itself. Defaults to DefaultNetwork().
	Network chain.Network
	// Clock tells the time that blocks are stamped with. Defaults to time.Now.
	Clock func() time.Time
	// BlockTime is how often Run and Tick mine a block. Defaults to Network.BlockTime, or 2 s.
	BlockTime time.Duration
	// SafeDepth and FinalDepth say how many blocks the safe and the final block lie below the tip.
	// FinalDepth defaults to Network.Confirmations − 1, SafeDepth to half of FinalDepth, rounded up.
	SafeDepth, FinalDepth uint64
	// MaxOutputs is how many destinations one transaction may pay, up to 64, as on networks that
	// spend outputs. Defaults to 1.
	MaxOutputs int
	// NoFinality makes Head leave Safe and Final out, as on networks without such a notion. Status still
	// calls a transaction final at FinalDepth.
	NoFinality bool
	// ValidBlocks and ValidFor bound, counted from Build, when a transaction may be included. 0
	// means no bound.
	ValidBlocks uint64
	ValidFor    time.Duration
	// Intercept is called before every call that would go over the wire to a node, outside of any lock; see
	// SetIntercept.
	Intercept func(ctx context.Context, method Method) error
	// Seed makes the hashes of two networks differ.
	Seed uint64
}

// DefaultNetwork describes the test network "simnet": native coin SIM with 18 decimals, priced as
// ETH, and the token USDX with 6 decimals, priced as USDC; three confirmations. Change Slug and
// CAIP2 to have several.
func DefaultNetwork() chain.Network {
	return chain.Network{
		Slug:                  "simnet",
		Family:                chain.Sim,
		CAIP2:                 "sim:1",
		DisplayName:           "Simulated network",
		NativeAsset:           "SIM",
		Rule:                  chain.RuleConfirmations,
		Confirmations:         3,
		EstimatedConfirmation: 6 * time.Second,
		BlockTime:             2 * time.Second,
		Assets: []chain.Asset{
			{
				Symbol:    "SIM",
				Name:      "Simulated coin",
				Kind:      chain.Native,
				Decimals:  18,
				MinAmount: chain.Pow10(12),
				Price:     "ETH",
			},
			{
				Symbol:    "USDX",
				Name:      "Simulated dollar",
				Kind:      chain.Token,
				Contract:  tokenContract("USDX"),
				Decimals:  6,
				MinAmount: chain.Pow10(4),
				Price:     "USDC",
			},
		},
	}
}

func tokenContract(symbol string) chain.Address {
	h := sha256.Sum256([]byte("sim token " + symbol))
	return account(h[:20]).address()
}

// Chain is a simulated network and the driver that reads it.
type Chain struct {
	network   chain.Network
	native    chain.Asset
	networkID [8]byte
	config    Config

	mu       sync.Mutex
	clock    func() time.Time
	shift    time.Duration
	baseFee  uint64
	priority uint64

	blocks   []*block // by height
	final    uint64   // height of the final block; never falls but through a fork below it
	forks    uint64   // part of every block's hash, so that forks differ
	balances history[chain.Holding, chain.Amount]
	nonces   history[chain.Address, uint64]
	frozen   map[chain.Holding]bool

	waiting  pool
	included map[string]*inclusion
	failing  map[string]bool // transactions whose execution fails
	payers   uint64          // external accounts made so far

	lag    uint64
	pruned uint64
	faults faults
}

var (
	_ chain.Driver       = (*Chain)(nil)
	_ chain.BlockScanner = (*Chain)(nil)
	_ chain.Mempool      = (*Chain)(nil)
	_ chain.Finder       = (*Chain)(nil)
	_ chain.Balancer     = (*Chain)(nil)
	_ chain.Deriver      = (*Chain)(nil)
	_ chain.URIBuilder   = (*Chain)(nil)
	_ chain.FeeEstimator = (*Chain)(nil)
	_ chain.Nonces       = (*Chain)(nil)
	_ chain.Sender       = (*Chain)(nil)
	_ chain.Batcher      = (*Chain)(nil)
	_ chain.Sweeper      = (*Chain)(nil)
	_ chain.Checker      = (*Chain)(nil)
)

// New returns a network that consists of its genesis block, timed now. It panics when the configured network
// has no native coin.
func New(config Config) *Chain {
	if config.Network.Slug == "" {
		config.Network = DefaultNetwork()
	}

	if config.Clock == nil {
		config.Clock = time.Now
	}

	if config.BlockTime <= 0 {
		config.BlockTime = config.Network.BlockTime
	}

	if config.BlockTime <= 0 {
		config.BlockTime = 2 * time.Second
	}

	if config.FinalDepth == 0 && config.Network.Confirmations > 0 {
		config.FinalDepth = config.Network.Confirmations - 1
	}

	config.MaxOutputs = min(max(config.MaxOutputs, 1), maxMovements)
	if config.SafeDepth == 0 {
		config.SafeDepth = (config.FinalDepth + 1) / 2
	}

	network := config.Network.With()

	native, ok := network.Native()
	if !ok {
		panic(fmt.Sprintf("sim: network %q has no native coin", network.Slug))
	}

	id := sha256.Sum256([]byte(network.CAIP2))
	c := &Chain{
		network:   network,
		native:    native,
		networkID: [8]byte(id[:8]),
		config:    config,
		clock:     config.Clock,
		baseFee:   DefaultBaseFee,
		priority:  DefaultPriority,
		frozen:    map[chain.Holding]bool{},
		waiting:   newPool(),
		included:  map[string]*inclusion{},
		failing:   map[string]bool{},
		faults:    newFaults(config.Intercept),
	}
	c.appendBlock(c.now(), nil)

	return c
}

// Network describes the network.
func (c *Chain) Network() chain.Network {
	n := c.network
	n.Assets = append([]chain.Asset(nil), n.Assets...)
	n.Tiers = append([]chain.Tier(nil), n.Tiers...)

	return n
}

// asset returns the asset of a symbol; controls only.
func (c *Chain) asset(symbol string) chain.Asset {
	a, ok := c.network.Asset(symbol)
	if !ok {
		panic(fmt.Sprintf("sim: network %s has no asset %q", c.network.Slug, symbol))
	}

	return a
}

// now is the network's time; the caller holds mu, or is New.
func (c *Chain) now() time.Time { return c.clock().Add(c.shift).UTC().Truncate(time.Millisecond) }
