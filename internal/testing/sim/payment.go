package sim

// Controls that fund addresses and send transactions of third parties.

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/seed-8ee7f392/payments/chain"
)

// Fund adds an amount, in base units, to an address' balance at every height, genesis included. No
// transaction shows it and no fork reverts it.
func (c *Chain) Fund(to chain.Address, symbol string, amount chain.Amount) {
	asset := c.asset(symbol)

	mustAccount(to)
	c.mu.Lock()
	defer c.mu.Unlock()

	c.fund(to, asset, amount)
}

func (c *Chain) fund(to chain.Address, asset chain.Asset, amount chain.Amount) {
	c.balances.updateAll(
		chain.Holding{Address: to, AssetID: asset.ID},
		func(old chain.Amount) chain.Amount { return old.Add(amount) },
	)
}

// Balance returns an address' balance at the tip, in base units.
func (c *Chain) Balance(of chain.Address, symbol string) chain.Amount {
	asset := c.asset(symbol)
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.balances.at(chain.Holding{Address: of, AssetID: asset.ID}, c.tip())
}

// NewAddress returns an address without a known key.
func (c *Chain) NewAddress() chain.Address {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.newAccount().address()
}

func (c *Chain) newAccount() account {
	c.externalAccounts++

	preimage := append([]byte("sim external account"), c.networkID[:]...)
	preimage = binary.BigEndian.AppendUint64(preimage, c.config.Seed)
	preimage = binary.BigEndian.AppendUint64(preimage, c.externalAccounts)
	hash := sha256.Sum256(preimage)

	return account(hash[:20])
}

// Pay puts a payment by a new, funded external account into the pool and returns its transaction
// hash. The amount is in base units; 0 is sent too.
func (c *Chain) Pay(to chain.Address, symbol string, amount chain.Amount) string {
	return c.PayMany(chain.Output{To: to, AssetID: c.asset(symbol).ID, Amount: amount})
}

// PayMany puts one transaction with several payments into the pool, as an exchange sends them, and
// returns its hash. It panics when an output after the first pays native coin, which is transfer 0.
func (c *Chain) PayMany(outputs ...chain.Output) string {
	c.mu.Lock()
	defer c.mu.Unlock()

	transfers := make([]transfer, 0, len(outputs))
	for i, output := range outputs {
		t, err := c.transferOf(output)
		if err != nil || (t.kind == kindValue && i > 0) || i >= maxTransfers {
			panic(fmt.Sprintf(
				"sim: payment %d (%s of asset %s to %s) cannot be made here: %v",
				i, output.Amount, output.AssetID, output.To, err,
			))
		}

		transfers = append(transfers, t)
	}

	return c.queuePayment(transfers)
}

// PayInternal sends native coin through a contract and returns the transaction hash. Blocks and pool
// do not show the transfer. The recipient's balance does, and Transaction, as transfer 2^20. After LogCoin its block
// shows it as a log.
func (c *Chain) PayInternal(to chain.Address, amount chain.Amount) string {
	t := transfer{kind: kindInternal, to: mustAccount(to), amount: amount}

	c.mu.Lock()
	defer c.mu.Unlock()

	return c.queuePayment([]transfer{t})
}

// LogCoin has every movement of coin log from the next block on (EIP-7708): what contracts send is in the logs that
// blocks show, beside those of tokens. A plain transfer has a log, too, which is not shown again.
func (c *Chain) LogCoin() {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.coinLogsFrom = min(c.coinLogsFrom, c.tip()+1)
}

// PayFailing is Pay for a payment that reverts when it is mined.
func (c *Chain) PayFailing(to chain.Address, symbol string, amount chain.Amount) string {
	hash := c.Pay(to, symbol, amount)
	c.mu.Lock()
	defer c.mu.Unlock()

	c.failing[hash] = true

	return hash
}

// PayUnknownType is Pay by a transaction of a type that the driver does not know. Every node shows it, with its
// transfers; the driver cannot verify its block, and says so in Block.Unverified.
func (c *Chain) PayUnknownType(to chain.Address, symbol string, amount chain.Amount) string {
	hash := c.Pay(to, symbol, amount)
	c.mu.Lock()
	defer c.mu.Unlock()

	c.unknownType[hash] = true

	return hash
}

// queuePayment puts a transaction of a new, funded account into the pool and returns its hash.
func (c *Chain) queuePayment(transfers []transfer) string {
	return c.queueFrom(c.newAccount(), transfers)
}

func (c *Chain) queueFrom(from account, transfers []transfer) string {
	tx := &transaction{
		network:   c.networkID,
		from:      from,
		transfers: transfers,
		maxPrice:  2*c.baseFee + c.priority,
		priority:  c.priority,
	}
	tx.gasLimit = c.mostGas(tx)
	c.fundFor(tx)

	hash := tx.hash()
	if err := c.pool.add(tx, hash); err != nil {
		panic(fmt.Sprintf("sim: a new account cannot have something waiting: %v", err))
	}

	return hash
}

// fundFor gives the sender of a payment what it sends and pays.
func (c *Chain) fundFor(tx *transaction) {
	for _, t := range tx.transfers {
		asset, _ := c.network.AssetByID(c.assetID(t))
		c.fund(tx.from.address(), asset, t.amount)
	}

	c.fund(tx.from.address(), c.native, tx.maxFee().Mul(4)) // covers several replacements
}

// Drop removes a transaction from the pool and reports whether it was there.
func (c *Chain) Drop(hash string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.pool.remove(hash)
}

// Replace replaces a pooled transaction of any sender by one that pays 10 % more for its gas and
// transfers nothing. It returns the hash of the replacement.
func (c *Chain) Replace(hash string) string {
	c.mu.Lock()
	defer c.mu.Unlock()

	entry := c.pool.byHash[hash]
	if entry == nil {
		panic(fmt.Sprintf("sim: transaction %s does not wait in the pool", hash))
	}

	return c.replaceEntry(entry)
}

// CancelNonce puts a transaction without value at the next nonce of an address into the pool and returns
// its hash. Another holder of the key could do so. The address pays the current price.
func (c *Chain) CancelNonce(of chain.Address) string {
	from := mustAccount(of)

	c.mu.Lock()
	defer c.mu.Unlock()

	nonce := c.nonces.at(of, c.tip())
	if entry := c.pool.byNonce[senderNonce{from, nonce}]; entry != nil {
		return c.replaceEntry(entry)
	}

	return c.queueSelfTransfer(from, nonce, 2*c.baseFee+c.priority, c.priority)
}

func (c *Chain) replaceEntry(entry *poolEntry) string {
	maxPrice, priority := replacementPrice(entry.tx.maxPrice), replacementPrice(entry.tx.priority)

	return c.queueSelfTransfer(entry.tx.from, entry.tx.nonce, maxPrice, priority)
}

// queueSelfTransfer puts a transfer of 0 from an account to itself into the pool. Prices are base
// units of the native coin per gas.
func (c *Chain) queueSelfTransfer(from account, nonce, maxPrice, priority uint64) string {
	tx := &transaction{
		network:   c.networkID,
		from:      from,
		nonce:     nonce,
		maxPrice:  maxPrice,
		priority:  priority,
		transfers: []transfer{{kind: kindValue, to: from}},
	}
	tx.gasLimit = c.mostGas(tx)

	hash := tx.hash()
	if err := c.pool.add(tx, hash); err != nil {
		panic(fmt.Sprintf("sim: %v", err))
	}

	return hash
}

// SetFee sets the base fee, which every transaction has to pay, and the priority price that Build
// offers. Both are base units of the native coin per gas. Pooled transactions below the base fee wait.
func (c *Chain) SetFee(base, priority uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.baseFee, c.priority = base, priority
}

// Freeze sets whether every transfer of an asset to an address fails.
func (c *Chain) Freeze(address chain.Address, symbol string, frozen bool) {
	asset := c.asset(symbol)
	c.mu.Lock()
	defer c.mu.Unlock()

	c.frozen[chain.Holding{Address: address, AssetID: asset.ID}] = frozen
}

func mustAccount(address chain.Address) account {
	parsed, err := parseAccount(string(address))
	if err != nil {
		panic("sim: " + err.Error())
	}

	return parsed
}
