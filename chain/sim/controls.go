package sim

// The controls: what other people do on the network.

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/seed-8ee7f392/payments/chain"
)

// Fund gives an address coins that were there from the first block on: no transaction shows them,
// every balance contains them, no fork takes them away.
func (c *Chain) Fund(to chain.Address, symbol string, amount chain.Amount) {
	asset := c.asset(symbol)

	mustAccount(to)
	c.mu.Lock()
	defer c.mu.Unlock()

	c.fund(to, asset, amount)
}

func (c *Chain) fund(to chain.Address, asset chain.Asset, amount chain.Amount) {
	c.balances.rewrite(
		chain.Holding{Address: to, AssetID: asset.ID},
		func(old chain.Amount) chain.Amount { return old.Add(amount) },
	)
}

// Balance returns what an address holds at the tip.
func (c *Chain) Balance(of chain.Address, symbol string) chain.Amount {
	asset := c.asset(symbol)
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.balances.at(chain.Holding{Address: of, AssetID: asset.ID}, c.tip())
}

// NewAddress returns an address that nobody has the key of.
func (c *Chain) NewAddress() chain.Address {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.newPayer().address()
}

func (c *Chain) newPayer() account {
	c.payers++
	b := append([]byte("sim external account"), c.networkID[:]...)
	b = binary.BigEndian.AppendUint64(b, c.config.Seed)
	h := sha256.Sum256(binary.BigEndian.AppendUint64(b, c.payers))

	return account(h[:20])
}

// Pay sends a payment from an external account of its own, funded for it, and returns the hash of the
// transaction, which is in the pool. An amount of 0 is sent as well.
func (c *Chain) Pay(to chain.Address, symbol string, amount chain.Amount) string {
	return c.PayMany(chain.Output{To: to, AssetID: c.asset(symbol).ID, Amount: amount})
}

// PayMany makes several payments in one transaction, as an exchange does. Native coin is transfer 0, so it
// has to come first and only once.
func (c *Chain) PayMany(outputs ...chain.Output) string {
	c.mu.Lock()
	defer c.mu.Unlock()

	moves := make([]movement, 0, len(outputs))
	for i, o := range outputs {
		m, err := c.movement(o)
		if err != nil || (m.kind == moveValue && i > 0) || i >= maxMovements {
			panic(
				fmt.Sprintf(
					"sim: payment %d (%s of asset %s to %s) cannot be made here: %v",
					i, o.Amount, o.AssetID, o.To, err,
				),
			)
		}

		moves = append(moves, m)
	}

	return c.pay(moves)
}

// PayHidden sends native coin through a contract: no block and no pool shows it, only the balance of the
// recipient does, and the transaction when it is looked up by its hash (transfer 2^20).
func (c *Chain) PayHidden(to chain.Address, amount chain.Amount) string {
	m := movement{kind: moveInternal, to: mustAccount(to), amount: amount}

	c.mu.Lock()
	defer c.mu.Unlock()

	return c.pay([]movement{m})
}

// PayFailing sends a payment whose execution will fail when it is mined.
func (c *Chain) PayFailing(to chain.Address, symbol string, amount chain.Amount) string {
	hash := c.Pay(to, symbol, amount)
	c.mu.Lock()
	defer c.mu.Unlock()

	c.failing[hash] = true

	return hash
}

func (c *Chain) pay(moves []movement) string {
	tx := &transaction{
		network:  c.networkID,
		from:     c.newPayer(),
		moves:    moves,
		maxPrice: 2*c.baseFee + c.priority,
		priority: c.priority,
	}
	for _, m := range moves {
		asset, _ := c.network.AssetByID(c.assetID(m))
		c.fund(tx.from.address(), asset, m.amount)
	}

	c.fund(tx.from.address(), c.native, tx.maxFee().Mul(4)) // enough to replace it a few times

	hash := tx.hash()
	if err := c.waiting.add(tx, hash); err != nil {
		panic(fmt.Sprintf("sim: a new account cannot have something waiting: %v", err))
	}

	return hash
}

// Drop makes the network forget a transaction that waits in the pool, and reports whether it was there.
func (c *Chain) Drop(hash string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.waiting.remove(hash)
}

// Replace displaces a waiting transaction by one of the same sender at the same nonce that pays a
// tenth more for its gas and gives nobody anything, whoever's transaction it is: the controls sign
// for everybody. It returns the hash of the new one.
func (c *Chain) Replace(hash string) string {
	c.mu.Lock()
	defer c.mu.Unlock()

	entry := c.waiting.byHash[hash]
	if entry == nil {
		panic(fmt.Sprintf("sim: transaction %s does not wait in the pool", hash))
	}

	return c.spend(
		entry.tx.from, entry.tx.nonce, replacementPrice(entry.tx.maxPrice),
		replacementPrice(entry.tx.priority),
	)
}

// UseNonce puts a transaction into the pool that uses the next nonce of an address for nothing, as another
// holder of its key would do, and returns its hash. It pays the current price; the address has to have the
// native coin for it.
func (c *Chain) UseNonce(of chain.Address) string {
	from := mustAccount(of)

	c.mu.Lock()
	defer c.mu.Unlock()

	nonce := c.nonces.at(of, c.tip())
	if entry := c.waiting.bySlot[slot{from, nonce}]; entry != nil {
		return c.spend(from, nonce, replacementPrice(entry.tx.maxPrice), replacementPrice(entry.tx.priority))
	}

	return c.spend(from, nonce, 2*c.baseFee+c.priority, c.priority)
}

func (c *Chain) spend(from account, nonce, maxPrice, priority uint64) string {
	tx := &transaction{
		network:  c.networkID,
		from:     from,
		nonce:    nonce,
		maxPrice: maxPrice,
		priority: priority,
		moves:    []movement{{kind: moveValue, to: from}},
	}

	hash := tx.hash()
	if err := c.waiting.add(tx, hash); err != nil {
		panic(fmt.Sprintf("sim: %v", err))
	}

	return hash
}

// SetFee sets the prices of gas, in base units of the native coin: the base fee that every transaction has to
// offer, and the priority price that Build adds. What is in the pool at less than the base fee waits.
func (c *Chain) SetFee(base, priority uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.baseFee, c.priority = base, priority
}

// Freeze makes every transfer of an asset to an address fail, or ends that.
func (c *Chain) Freeze(address chain.Address, symbol string, frozen bool) {
	asset := c.asset(symbol)
	c.mu.Lock()
	defer c.mu.Unlock()

	c.frozen[chain.Holding{Address: address, AssetID: asset.ID}] = frozen
}

func mustAccount(a chain.Address) account {
	acc, err := parseAccount(string(a))
	if err != nil {
		panic("sim: " + err.Error())
	}

	return acc
}
