package sim

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// DefaultValidBlocks is the window of a transaction, in blocks, when none is configured.
const DefaultValidBlocks = 30

// WindowsConfig describes a simulated network whose transactions are valid in a window only. The zero
// value is usable.
type WindowsConfig struct {
	// Network is the network that the driver describes. Defaults to DefaultWindowsNetwork().
	Network chain.Network

	// Clock returns the time that blocks are stamped with. Defaults to time.Now.
	Clock func() time.Time

	// BlockTime is the time between blocks of Tick. Defaults to Network.BlockTime, or 2 s.
	BlockTime time.Duration

	// FinalDepth is the distance, in blocks, of the final block from the tip. Defaults to
	// Network.Confirmations − 1.
	FinalDepth uint64

	// ValidBlocks (in blocks) and ValidFor are the window, counted from the tip at Build. ValidBlocks
	// defaults to DefaultValidBlocks where there is no ValidFor; ValidFor to 0: no limit in time.
	ValidBlocks uint64
	ValidFor    time.Duration

	// LateBlocks is the number of blocks after which TransfersTo shows a transfer; see Late. Defaults to 0.
	LateBlocks uint64

	// Intercept is called before every node call, without a lock held; see SetIntercept. Defaults to none.
	Intercept func(ctx context.Context, method Method) error

	// Seed distinguishes the hashes of two networks. Defaults to 0.
	Seed uint64
}

// DefaultWindowsNetwork returns the test network "simwindows", with three confirmations. Its native coin
// SIMW has 18 decimals and the price of TRX; its token USDX has 6 decimals and the price of USDC.
func DefaultWindowsNetwork() chain.Network {
	network := DefaultNetwork()
	network.Slug, network.CAIP2, network.DisplayName = "simwindows", "sim:windows", "Simulated network of windows"
	network.NativeAsset = "SIMW"
	network.Assets[0].Symbol, network.Assets[0].Price = "SIMW", "TRX"

	return network
}

// Windows is a simulated network of accounts without nonces, in Tron's manner, and the driver that reads
// its blocks. A transaction is unique by its hash and can be included in its window only, on a branch
// with the block that it refers to. Nothing displaces it.
//
// Addresses, keys, gas and node faults are those of Chain. Everything is safe for concurrent use.
type Windows struct{ windows }

// AddressWindows is the same network with a driver that reads the transfers to given addresses instead of
// blocks, in Solana's manner.
type AddressWindows struct{ windows }

// windows is what both have in common.
type windows struct {
	node
	config WindowsConfig
	price  uint64 // base units of the native coin per gas

	ledger   *Chain // only its balances, frozen holdings and pure functions are used
	final    uint64 // height of the final block; falls only by a fork below it
	late     uint64 // see Late
	arrivals uint64

	blocks   [][]*receipt          // by height
	receipts map[string]*receipt   // of the canonical chain, by transaction hash
	pool     map[string]*poolEntry // by transaction hash
	failing  map[string]bool       // hashes of transactions that fail
	refs     map[uint64]uint64     // heights of the canonical blocks by reference
}

type windowsDriver interface {
	chain.Driver
	chain.RefConfirmer
	chain.Finder
	chain.Balancer
	chain.Deriver
	chain.URIBuilder
	chain.FeeEstimator
	chain.Sender
	chain.Sweeper
	chain.Checker
}

var (
	_ windowsDriver        = (*Windows)(nil)
	_ chain.BlockScanner   = (*Windows)(nil)
	_ windowsDriver        = (*AddressWindows)(nil)
	_ chain.AddressScanner = (*AddressWindows)(nil)
)

// NewWindows returns a network with a genesis block, timed now. It panics when the configured network has
// no native coin.
func NewWindows(config WindowsConfig) *Windows {
	w := new(Windows)
	w.setUp(config)

	return w
}

// NewAddressWindows is NewWindows for a driver that reads transfers by address.
func NewAddressWindows(config WindowsConfig) *AddressWindows {
	w := new(AddressWindows)
	w.setUp(config)

	return w
}

func (w *windows) setUp(config WindowsConfig) {
	if config.Network.Slug == "" {
		config.Network = DefaultWindowsNetwork()
	}

	if config.FinalDepth == 0 && config.Network.Confirmations > 0 {
		config.FinalDepth = config.Network.Confirmations - 1
	}

	if config.ValidBlocks == 0 && config.ValidFor <= 0 {
		config.ValidBlocks = DefaultValidBlocks
	}

	w.config, w.price, w.late = config, DefaultBaseFee, config.LateBlocks
	w.init(config.Network, config.Clock, config.BlockTime, config.Intercept, config.Seed)

	w.ledger = &Chain{
		network:   w.network,
		native:    w.native,
		networkID: w.networkID,
		config:    Config{MaxOutputs: 1},
		frozen:    map[chain.Holding]bool{},
	}
	w.receipts, w.pool = map[string]*receipt{}, map[string]*poolEntry{}
	w.failing, w.refs = map[string]bool{}, map[uint64]uint64{}

	w.appendBlock(w.now(), nil)
}

// SetPrice sets the gas price, in base units of the native coin. Waiting transactions that offer less
// wait, until they expire.
func (w *windows) SetPrice(price uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.price = price
}

// Late makes TransfersTo show transfers only when that many blocks are on top of theirs. Until then they
// are left out of its answers silently, as nodes do.
func (w *windows) Late(blocks uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.late = blocks
}

// Fund adds an amount, in base units, to an address' balance at every height, genesis included. No
// transaction shows it and no fork reverts it.
func (w *windows) Fund(to chain.Address, symbol string, amount chain.Amount) {
	asset := w.ledger.asset(symbol)

	mustAccount(to)
	w.mu.Lock()
	defer w.mu.Unlock()

	w.ledger.fund(to, asset, amount)
}

// Balance returns an address' balance at the tip, in base units.
func (w *windows) Balance(of chain.Address, symbol string) chain.Amount {
	asset := w.ledger.asset(symbol)
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.balance(of, asset.ID, w.tip())
}

func (w *windows) balance(of chain.Address, assetID string, height uint64) chain.Amount {
	return w.ledger.balances.at(chain.Holding{Address: of, AssetID: assetID}, height)
}

// Freeze sets whether every transfer of an asset to an address fails.
func (w *windows) Freeze(address chain.Address, symbol string, frozen bool) {
	asset := w.ledger.asset(symbol)
	w.mu.Lock()
	defer w.mu.Unlock()

	w.ledger.frozen[chain.Holding{Address: address, AssetID: asset.ID}] = frozen
}

// Pay puts a payment by a new, funded external account into the pool and returns its transaction hash.
// The amount is in base units; 0 is sent too.
func (w *windows) Pay(to chain.Address, symbol string, amount chain.Amount) string {
	output := chain.Output{To: to, AssetID: w.ledger.asset(symbol).ID, Amount: amount}

	moved, err := w.ledger.transferOf(output)
	if err != nil {
		panic("sim: " + err.Error())
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	tx := &transaction{
		network:   w.networkID,
		from:      w.newAccount(),
		transfers: []transfer{moved},
		maxPrice:  2 * w.price,
	}
	w.setWindow(tx, w.tip())

	asset, _ := w.network.AssetByID(output.AssetID)
	w.ledger.fund(tx.from.address(), asset, amount)
	w.ledger.fund(tx.from.address(), w.native, tx.maxFee())

	return w.enqueue(tx)
}

// PayFailing is Pay for a payment that fails when it is mined.
func (w *windows) PayFailing(to chain.Address, symbol string, amount chain.Amount) string {
	hash := w.Pay(to, symbol, amount)
	w.mu.Lock()
	defer w.mu.Unlock()

	w.failing[hash] = true

	return hash
}

// Drop removes a transaction from the pool and reports whether it was there.
func (w *windows) Drop(hash string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	waiting := w.pool[hash] != nil
	delete(w.pool, hash)

	return waiting
}

// enqueue puts a transaction into the pool and returns its hash.
func (w *windows) enqueue(tx *transaction) string {
	w.arrivals++
	hash := tx.hash()
	w.pool[hash] = &poolEntry{tx: tx, hash: hash, arrival: w.arrivals}

	return hash
}
