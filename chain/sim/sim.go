// Package sim simulates a network in memory for tests and demonstrations: blocks, a pool, fees, forks and
// a clock, in the model of the EVM.
//
// New returns the network, and Chain.Driver the driver that reads it and sends on it, for payments.Config:
//
//	network := sim.New(sim.Config{})
//	config.Drivers = []payments.ChainDriver{network.Driver()}
//	config.Signer = sim.NewSigner(1, nil)
//
// The methods of Chain change the network:
//   - payments: Fund, Pay, PayMany, PayInternal, PayFailing
//   - the pool: Drop, Replace, SetFee
//   - blocks and time: Mine, Run, Fork, Advance
//   - nodes and tokens: Fail, LoseNextResponses, Freeze
//
// They panic on a programming error, such as an unknown asset. Everything is safe for concurrent use. With a
// fixed clock, the same calls on the same Config.Seed show the same hashes, transfers and order.
package sim

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// Config describes a simulated network. The zero value is usable.
type Config struct {
	// Network is the network that the driver describes. Defaults to DefaultNetwork().
	Network chain.Network

	// Clock returns the time that blocks are stamped with. Defaults to time.Now.
	Clock func() time.Time

	// BlockTime is the time between blocks of Run. Defaults to Network.BlockTime, or 2 s.
	BlockTime time.Duration

	// SafeDepth and FinalDepth are the distances, in blocks, of the safe and the final block from the tip.
	// FinalDepth defaults to Network.Confirmations − 1, SafeDepth to half of FinalDepth, rounded up.
	SafeDepth, FinalDepth uint64

	// NoFinality makes the driver show no safe and no final block, as on networks without finality.
	NoFinality bool

	// MaxOutputs is the number of destinations that one transaction may pay, at most 64. Defaults to 1.
	MaxOutputs int

	// Seed distinguishes the hashes of two networks. Defaults to 0.
	Seed uint64
}

// DefaultNetwork returns the test network "simnet", with three confirmations. Its native coin SIM has 18
// decimals and the price of ETH; its token USDX has 6 decimals and the price of USDC. Several networks in one
// process need different Slug and CAIP2.
func DefaultNetwork() chain.Network { return sim.DefaultNetwork() }

// NewSigner returns a signer for simulated networks. Its keys derive from seed, which is the whole secret. A
// policy other than nil is called with every request; Sign returns its error.
func NewSigner(seed uint64, policy func(chain.SignRequest) error) chain.Signer {
	return sim.NewSigner(seed, policy)
}

// Chain is a simulated network.
type Chain struct {
	chain *sim.Chain
}

// New returns a network that has its genesis block. It panics when Config.Network is not valid.
func New(config Config) *Chain {
	return &Chain{
		chain: sim.New(sim.Config{
			Network:    config.Network,
			Clock:      config.Clock,
			BlockTime:  config.BlockTime,
			SafeDepth:  config.SafeDepth,
			FinalDepth: config.FinalDepth,
			NoFinality: config.NoFinality,
			MaxOutputs: config.MaxOutputs,
			Seed:       config.Seed,
		}),
	}
}

// Driver returns the driver of the network. It returns only data that a node can know.
func (c *Chain) Driver() chain.Driver { return c.chain }

// Network returns the network's description. The caller may change it.
func (c *Chain) Network() chain.Network { return c.chain.Network() }

// NewAddress returns an address without a known key.
func (c *Chain) NewAddress() chain.Address { return c.chain.NewAddress() }

// Party returns a signer's key of a role and an index with its address on this network.
func (c *Chain) Party(keys chain.Signer, role chain.Role, index uint32) chain.Party {
	key := chain.KeyRef{Family: chain.Sim, Livemode: c.chain.Network().Livemode, Role: role, Index: index}

	public, err := keys.PublicKey(context.Background(), key)
	if err != nil {
		panic("sim: " + err.Error())
	}

	address, err := c.chain.DeriveAddress(public)
	if err != nil {
		panic("sim: " + err.Error())
	}

	return chain.Party{Key: key, Address: address}
}

// Balance returns an address' balance at the tip, in base units.
func (c *Chain) Balance(of chain.Address, symbol string) chain.Amount {
	return c.chain.Balance(of, symbol)
}
