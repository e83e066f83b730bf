package sim

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// The rates of a UTXO network before they are configured or changed, in base units per 1000 virtual bytes.
const (
	DefaultFeeRate   = 10_000
	DefaultRelayRate = 1_000
)

// The policy of nodes. Source: Bitcoin Core's defaults.
const (
	maxPoolAncestors   = 25 // of a waiting transaction, itself included; likewise its descendants
	maxDisplaced       = 100
	maxTransactionSize = 100_000 // virtual bytes that nodes relay
)

// UTXOConfig describes a simulated network that spends outputs. The zero value is usable.
type UTXOConfig struct {
	// Network is the network that the driver describes. Defaults to DefaultUTXONetwork().
	Network chain.Network

	// Clock returns the time that blocks are stamped with. Defaults to time.Now.
	Clock func() time.Time

	// BlockTime is the time between blocks of Tick. Defaults to Network.BlockTime, or 2 s.
	BlockTime time.Duration

	// FeeRate is what the driver estimates and offers. Defaults to DefaultFeeRate.
	FeeRate uint64

	// RelayRate is the least that the pool takes, and what a replacement pays for its own relay.
	// Defaults to DefaultRelayRate.
	RelayRate uint64

	// DustLimit is the smallest output that nodes relay, in base units. Defaults to 294.
	DustLimit uint64

	// Maturity is the number of confirmations before a block reward can be spent. Defaults to 100.
	Maturity uint64

	// BlockVSize and PoolVSize bound a block and the pool, in virtual bytes. They default to
	// 1,000,000 and 300,000,000.
	BlockVSize, PoolVSize uint64

	// MaxOutputs is the number of destinations that one order may pay. Defaults to 50.
	MaxOutputs int

	// CPFPAfter is how long a payment waits before it may be bumped, CPFPMaxFee the most that a bump may
	// cost, in base units. CPFPMaxFee defaults to 0: nothing is bumped.
	CPFPAfter  time.Duration
	CPFPMaxFee uint64

	// Intercept is called before every node call, without a lock held; see SetIntercept. Defaults to none.
	Intercept func(ctx context.Context, method Method) error

	// Seed distinguishes the hashes of two networks. Defaults to 0.
	Seed uint64
}

// DefaultUTXONetwork returns the test network "simutxo", with three confirmations. Its native coin SIMB
// has 8 decimals and the price of BTC.
func DefaultUTXONetwork() chain.Network {
	return chain.Network{
		Slug:                  "simutxo",
		Family:                chain.Sim,
		CAIP2:                 "sim:utxo",
		DisplayName:           "Simulated network of outputs",
		NativeAsset:           "SIMB",
		Rule:                  chain.RuleConfirmations,
		Confirmations:         3,
		EstimatedConfirmation: 6 * time.Second,
		BlockTime:             2 * time.Second,
		Assets: []chain.Asset{{
			Symbol:    "SIMB",
			Name:      "Simulated bitcoin",
			Kind:      chain.Native,
			Decimals:  8,
			MinAmount: chain.Units(1_000),
			Price:     "BTC",
		}},
	}
}

// UTXO is a simulated network that spends outputs, in Bitcoin's manner, and the driver that reads it.
// Addresses, keys and node faults are those of Chain. It has no finality of its own: a block counts as
// final at Network.Confirmations. Everything is safe for concurrent use.
type UTXO struct {
	baseNode
	config UTXOConfig

	feeRate     uint64 // base units per 1000 vB; see SetFeeRate
	relayRate   uint64 // least rate of the pool; see SetFloor
	evictedRate uint64 // least rate of the pool since something was evicted; 0 for none
	minerRate   uint64 // least rate of a package that is mined; see SetMinerFloor
	poolVSize   uint64
	mintedCoins uint64 // number of coins made by mint
	rewards     uint64 // number of block rewards

	blocks   []utxoBlock // by height
	outputs  map[chain.Outpoint]*utxoOutput
	included map[string]*utxoEntry // of the canonical chain, by transaction hash
	pool     utxoPool
}

var _ interface {
	chain.Driver
	chain.BlockScanner
	chain.Agreed
	chain.Mempool
	chain.Finder
	chain.CoinReader
	chain.Deriver
	chain.URIBuilder
	chain.FeeEstimator
	chain.FeeChecker
	chain.InputPricer
	chain.Sender
	chain.Batcher
	chain.Bumper
	chain.Sweeper
	chain.Checker
} = (*UTXO)(nil)

// NewUTXO returns a network with a genesis block, timed now. It panics when the configured network has
// no native coin.
func NewUTXO(config UTXOConfig) *UTXO {
	config = config.withDefaults()
	u := &UTXO{
		config:    config,
		feeRate:   config.FeeRate,
		relayRate: config.RelayRate,
		poolVSize: config.PoolVSize,
		outputs:   map[chain.Outpoint]*utxoOutput{},
		included:  map[string]*utxoEntry{},
		pool:      newUTXOPool(),
	}
	u.init(config.Network, config.Clock, config.BlockTime, config.Intercept, config.Seed)
	u.appendBlock(u.now(), nil)

	return u
}

func (config UTXOConfig) withDefaults() UTXOConfig {
	if config.Network.Slug == "" {
		config.Network = DefaultUTXONetwork()
	}

	for _, field := range []struct {
		value    *uint64
		fallback uint64
	}{
		{&config.FeeRate, DefaultFeeRate},
		{&config.RelayRate, DefaultRelayRate},
		{&config.DustLimit, 294},
		{&config.Maturity, 100},
		{&config.BlockVSize, 1_000_000},
		{&config.PoolVSize, 300_000_000},
	} {
		if *field.value == 0 {
			*field.value = field.fallback
		}
	}

	if config.MaxOutputs <= 0 {
		config.MaxOutputs = 50
	}

	return config
}

// SetFeeRate sets the rate that the driver estimates and offers, in base units per 1000 vB.
func (u *UTXO) SetFeeRate(rate uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()

	u.feeRate = rate
}

// SetFloor sets the least rate that the pool takes, in base units per 1000 vB, and evicts what pays less.
func (u *UTXO) SetFloor(rate uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()

	u.relayRate = rate
	u.evictBelowFloor()
}

// SetPoolSize bounds the pool, in virtual bytes, and evicts the cheapest until it fits.
func (u *UTXO) SetPoolSize(vsize uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()

	u.poolVSize = vsize
	u.evictOversize()
}

// SetMinerFloor sets the least rate of what is mined, in base units per 1000 vB: transactions whose
// package pays less wait.
func (u *UTXO) SetMinerFloor(rate uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()

	u.minerRate = rate
}
