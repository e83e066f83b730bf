package sim

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

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
	// defaults to 30 where there is no ValidFor; ValidFor to 0: no limit in time.
	ValidBlocks uint64
	ValidFor    time.Duration

	// NonceAccounts is how many nonce accounts every address has. Defaults to 0.
	NonceAccounts int

	// LateBlocks is the number of blocks after which the driver of ByAddress shows a transfer; see Late. Defaults to 0.
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
type Windows struct {
	baseNode
	config WindowsConfig
	price  uint64 // base units of the native coin per gas

	ledger   *Chain // only its balances, frozen holdings and pure functions are used
	final    uint64 // height of the final block; falls only by a fork below it
	late     uint64 // see Late
	arrivals uint64

	blocks   [][]*receipt           // by height
	receipts map[string]*receipt    // of the canonical chain, by transaction hash
	pool     map[string]*poolEntry  // by transaction hash
	failing  map[string]bool        // hashes of transactions that fail
	refs     map[uint64]uint64      // heights of the canonical blocks by reference
	closed   map[chain.Address]bool // whose nonce accounts are closed
	noNonces bool                   // no block takes a durable transaction any more
}

// windowsDriver is what the driver and that of ByAddress have in common.
type windowsDriver interface {
	chain.Driver
	chain.Agreed
	chain.Finder
	chain.Balancer
	chain.Deriver
	chain.URIBuilder
	chain.FeeEstimator
	chain.Sender
	chain.Sweeper
	chain.Decoder
	chain.DurableNonces
	chain.Checker
}

var (
	_ windowsDriver        = (*Windows)(nil)
	_ chain.BlockScanner   = (*Windows)(nil)
	_ windowsDriver        = addressDriver{}
	_ chain.AddressScanner = addressDriver{}
)

// NewWindows returns a network with a genesis block, timed now. It panics when the configured network has
// no native coin.
func NewWindows(config WindowsConfig) *Windows {
	config = config.withDefaults()
	w := &Windows{
		config:   config,
		price:    DefaultBaseFee,
		late:     config.LateBlocks,
		receipts: map[string]*receipt{},
		pool:     map[string]*poolEntry{},
		failing:  map[string]bool{},
		refs:     map[uint64]uint64{},
		closed:   map[chain.Address]bool{},
	}
	w.init(config.Network, config.Clock, config.BlockTime, config.Intercept, config.Seed)

	w.ledger = &Chain{
		network:   w.network,
		native:    w.native,
		networkID: w.networkID,
		config:    Config{MaxOutputs: 1},
		frozen:    map[chain.Holding]bool{},
	}
	w.appendBlock(w.now(), nil)

	return w
}

func (config WindowsConfig) withDefaults() WindowsConfig {
	if config.Network.Slug == "" {
		config.Network = DefaultWindowsNetwork()
	}

	if config.FinalDepth == 0 && config.Network.Confirmations > 0 {
		config.FinalDepth = config.Network.Confirmations - 1
	}

	if config.ValidBlocks == 0 && config.ValidFor <= 0 {
		config.ValidBlocks = 30
	}

	return config
}

// SetPrice sets the gas price, in base units of the native coin. Waiting transactions that offer less
// wait, until they expire.
func (w *Windows) SetPrice(price uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.price = price
}

// Late makes the driver of ByAddress show transfers only when that many blocks are on top of theirs. Until
// then it leaves them out silently, as nodes do.
func (w *Windows) Late(blocks uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.late = blocks
}

// Fund adds an amount, in base units, to an address' balance at every height, genesis included. No
// transaction shows it and no fork reverts it.
func (w *Windows) Fund(to chain.Address, symbol string, amount chain.Amount) {
	asset := w.ledger.asset(symbol)

	mustAccount(to)
	w.mu.Lock()
	defer w.mu.Unlock()

	w.ledger.fund(to, asset, amount)
}

// Balance returns an address' balance at the tip, in base units.
func (w *Windows) Balance(of chain.Address, symbol string) chain.Amount {
	asset := w.ledger.asset(symbol)
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.balance(of, asset.ID, w.tip())
}

func (w *Windows) balance(of chain.Address, assetID string, height uint64) chain.Amount {
	return w.ledger.balances.at(chain.Holding{Address: of, AssetID: assetID}, height)
}

// Freeze sets whether every transfer of an asset to an address fails.
func (w *Windows) Freeze(address chain.Address, symbol string, frozen bool) {
	asset := w.ledger.asset(symbol)
	w.mu.Lock()
	defer w.mu.Unlock()

	w.ledger.frozen[chain.Holding{Address: address, AssetID: asset.ID}] = frozen
}

// Pay puts a payment by a new, funded external account into the pool and returns its transaction hash.
// The amount is in base units; 0 is sent too.
func (w *Windows) Pay(to chain.Address, symbol string, amount chain.Amount) string {
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
func (w *Windows) PayFailing(to chain.Address, symbol string, amount chain.Amount) string {
	hash := w.Pay(to, symbol, amount)
	w.mu.Lock()
	defer w.mu.Unlock()

	w.failing[hash] = true

	return hash
}

// Drop removes a transaction from the pool and reports whether it was there.
func (w *Windows) Drop(hash string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	waiting := w.pool[hash] != nil
	delete(w.pool, hash)

	return waiting
}

// enqueue puts a transaction into the pool and returns its hash.
func (w *Windows) enqueue(tx *transaction) string {
	w.arrivals++
	hash := tx.hash()
	w.pool[hash] = &poolEntry{tx: tx, hash: hash, arrival: w.arrivals}

	return hash
}
