// Package sim simulates a network in memory: blocks, a pool, accounts with nonces, fees, forks,
// finality and time, with bad tokens and nodes that fail or lie.
//
// A *Chain is both the driver and the network. As a driver it implements chain.Driver, BlockScanner,
// Agreed, Mempool, Finder, Balancer, Deriver, URIBuilder, FeeEstimator,
// Nonces, Sender, Batcher, GasReader, FitChecker, Sweeper and Checker. It returns only what a node can know. As a
// network it has controls. The demo in examples/quickstart and the tests of the domains run on them. Package
// conformance uses the same controls to run its driver suite against this driver.
//
// The controls, by what they change:
//   - payments: Fund, Pay, PayMany, PayInternal, PayFailing, PayVariable
//   - coin and tokens: LogCoin, SetToken, TransferFrom, LogTransfer, Freeze
//   - the pool: Drop, Replace, CancelNonce, SetFee, ForkGas
//   - blocks and time: Mine, MineEmpty, Tick, Run, Fork, Advance, SetClock
//   - calls: FailNext, LoseNextResponses, SetIntercept
//   - nodes: SetNode, Lag, Prune
//
// The model is the EVM's. A transaction pays gas × min(max price, base + priority price), and a
// replacement at a nonce pays 10 % more. Tokens leave logs; contracts can transfer coin that no block
// scan shows before LogCoin. Signatures are real (secp256k1), so a wrong key is found. No real network is used.
//
// The pool shows what senders claim; a block shows what its execution of a transaction did, which may
// differ from branch to branch. With Config.Nodes the driver asks several nodes, and verifies that a
// block's contents are those of its header unless Config.Unverified is set.
//
// The controls are for tests and demonstrations: they panic on a programming error, such as an unknown
// asset. Everything is safe for concurrent use. With a fixed clock, the same calls on the same
// Config.Seed show the same hashes, transfers and order.
//
// It is one package because the faults, the nodes and the two families of networks act on one chain under one
// lock.
package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// The gas that a transaction uses before Config.GasForks. Without token or internal transfers it is GasNative per
// destination; otherwise GasToken per such transfer, plus GasNative per native destination after the
// first.
const (
	GasNative = 21_000
	GasToken  = 60_000
)

// The gas prices before SetFee is called, in base units of the native coin per gas.
const (
	DefaultBaseFee  = 1_000_000_000
	DefaultPriority = 100_000_000
)

// Config describes a simulated network. The zero value is usable.
type Config struct {
	// Network is the network that the driver describes. Defaults to DefaultNetwork().
	Network chain.Network

	// Clock returns the time that blocks are stamped with. Defaults to time.Now.
	Clock func() time.Time

	// BlockTime is the time between blocks of Run and Tick. Defaults to Network.BlockTime, or 2 s.
	BlockTime time.Duration

	// SafeDepth and FinalDepth are the distances, in blocks, of the safe and the final block from the tip.
	// FinalDepth defaults to Network.Confirmations − 1, SafeDepth to half of FinalDepth, rounded up.
	SafeDepth, FinalDepth uint64

	// NoFinality makes Head omit Safe and Final, as on networks without finality. Status still reports a
	// transaction as final at FinalDepth.
	NoFinality bool

	// MaxOutputs is the number of destinations that one transaction may pay, at most 64. Defaults to 1.
	MaxOutputs int

	// ValidBlocks (in blocks) and ValidFor limit a transaction's validity, counted from Build. Both
	// default to 0: no limit.
	ValidBlocks uint64
	ValidFor    time.Duration

	// Nodes is the number of nodes that the driver asks, the first one preferred. Defaults to 1.
	Nodes int

	// Unverified makes the driver one that cannot verify blocks: it shows what the preferred node says and
	// sets Block.Unverified. Defaults to false: it asks another node when contents contradict a header.
	Unverified bool

	// CoinLogsFrom is the height of the first block in which movements of coin log; see LogCoin. Defaults to 0: they do
	// not.
	CoinLogsFrom uint64

	// GasForks change what transactions take of gas, in ascending order of heights. Until the first one, GasNative and
	// GasToken count. Defaults to none.
	GasForks []GasFork

	// WholeSeconds has blocks bear the second that they are made in: several of one second share it. Defaults to false.
	WholeSeconds bool

	// Intercept is called before every call, without a lock held; see SetIntercept. Defaults to none.
	Intercept func(ctx context.Context, method Method) error

	// Seed distinguishes the hashes of two networks. Defaults to 0.
	Seed uint64
}

// DefaultNetwork returns the test network "simnet", with three confirmations. Its native coin SIM has
// 18 decimals and the price of ETH; its token USDX has 6 decimals and the price of USDC. Several
// networks need different Slug and CAIP2.
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

	mu          sync.Mutex
	clock       func() time.Time
	clockOffset time.Duration // added by Advance
	baseFee     uint64        // base units of the native coin per gas
	priority    uint64        // base units of the native coin per gas

	blocks []*block // by height
	final  uint64   // height of the final block; falls only by a fork below it
	forks  uint64   // number of forks; part of every block's hash
	// coinLogsFrom is the height of the first block in which movements of coin log; see LogCoin.
	coinLogsFrom uint64
	balances     history[chain.Holding, chain.Amount]
	nonces       history[chain.Address, uint64]
	frozen       map[chain.Holding]bool
	tokens       map[string]TokenRules // by asset id; absent for a plain token

	pool             pool
	receipts         map[string]*receipt     // of the canonical chain, by transaction hash
	dropped          map[string]*transaction // by forks, by hash
	failing          map[string]bool         // hashes of transactions that revert
	unknownType      map[string]bool         // hashes of transactions that no driver can decode
	calls            map[string]contractCall // by hash of the transaction
	externalAccounts uint64                  // number of accounts created for payers and NewAddress

	nodes     []*node
	preferred int // index of the node that is asked first
	turn      int // number of second opinions so far
	faults    faults
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
	_ chain.GasReader    = (*Chain)(nil)
	_ chain.FitChecker   = (*Chain)(nil)
	_ chain.Sweeper      = (*Chain)(nil)
	_ chain.Checker      = (*Chain)(nil)
	_ chain.Agreed       = (*Chain)(nil)
)

// New returns a network with a genesis block, timed now. It panics when the configured network has no
// native coin.
func New(config Config) *Chain {
	config = config.withDefaults()
	network := config.Network.With()

	native, ok := network.Native()
	if !ok {
		panic(fmt.Sprintf("sim: network %q has no native coin", network.Slug))
	}

	id := sha256.Sum256([]byte(network.CAIP2))

	c := &Chain{
		network:      network,
		native:       native,
		networkID:    [8]byte(id[:8]),
		config:       config,
		clock:        config.Clock,
		coinLogsFrom: config.CoinLogsFrom,
		baseFee:      DefaultBaseFee,
		priority:     DefaultPriority,
		frozen:       map[chain.Holding]bool{},
		tokens:       map[string]TokenRules{},
		pool:         newPool(),
		receipts:     map[string]*receipt{},
		dropped:      map[string]*transaction{},
		failing:      map[string]bool{},
		unknownType:  map[string]bool{},
		calls:        map[string]contractCall{},
		faults:       newFaults(config.Intercept),
	}
	for range config.Nodes {
		c.nodes = append(c.nodes, &node{c: c})
	}

	c.appendBlock(c.now(), nil)

	return c
}

func (config Config) withDefaults() Config {
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

	if config.SafeDepth == 0 {
		config.SafeDepth = (config.FinalDepth + 1) / 2
	}

	if config.CoinLogsFrom == 0 {
		config.CoinLogsFrom = math.MaxUint64
	}

	config.Nodes = max(config.Nodes, 1)
	config.MaxOutputs = min(max(config.MaxOutputs, 1), maxTransfers)

	return config
}

// Network returns the network's description. The caller may change it.
func (c *Chain) Network() chain.Network {
	n := c.network
	n.Assets, n.Tiers = slices.Clone(n.Assets), slices.Clone(n.Tiers)

	return n
}

// asset returns the asset of a symbol. It panics when there is none.
func (c *Chain) asset(symbol string) chain.Asset {
	asset, ok := c.network.Asset(symbol)
	if !ok {
		panic(fmt.Sprintf("sim: network %s has no asset %q", c.network.Slug, symbol))
	}

	return asset
}

// now returns the network's time. The caller holds mu, or is New.
func (c *Chain) now() time.Time { return c.clock().Add(c.clockOffset).UTC().Truncate(time.Millisecond) }
