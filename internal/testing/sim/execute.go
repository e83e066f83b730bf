package sim

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// firstFurtherIndex is the index of a transaction's second value transfer; see chain.Transfer for the others.
const firstFurtherIndex = 1 << 19

// move is one transfer that a transaction makes when it is executed.
type move struct {
	transfer
	from    account
	minted  bool // the sender is given what it transfers
	logOnly bool // a log that no balance follows
}

// shownTransfer is a transfer as a node shows it.
type shownTransfer struct {
	chain.Transfer
	internal bool // shown by hash only, not in blocks
}

// transfers returns the transfers of a transaction in a block, internal ones only on demand.
func (r *receipt) transfers(internal bool) []chain.Transfer { return visible(r.shown, internal) }

// claimed returns the transfers that a pooled transaction claims to make. Where coin of contracts logs only a block's
// execution shows it.
func (c *Chain) claimed(entry *poolEntry, internal bool) []chain.Transfer {
	claim := execution{c: c, hash: entry.hash}
	internal = internal && c.tip()+1 < c.coinLogsFrom

	moves := entry.tx.moves()
	if call, ok := c.calls[entry.hash]; ok {
		moves = call.claim
	}

	for _, m := range moves {
		claim.show(m.kind, c.assetID(m.transfer), m.from.address(), m.to.address(), m.amount)
	}

	return visible(claim.shown, internal)
}

func visible(shown []shownTransfer, internal bool) []chain.Transfer {
	var transfers []chain.Transfer

	for _, t := range shown {
		if !t.internal || internal {
			transfers = append(transfers, t.Transfer)
		}
	}

	return transfers
}

// moves returns the transfers of the transaction as its sender makes them.
func (t *transaction) moves() []move {
	moves := make([]move, 0, len(t.transfers))
	for _, moved := range t.transfers {
		moves = append(moves, move{transfer: moved, from: t.from})
	}

	return moves
}

// execute applies one transaction to the state after the block. ok is false when the block cannot
// include it.
func (c *Chain) execute(entry *poolEntry, in chain.Ref) (included *receipt, ok bool) {
	tx, height := entry.tx, in.Height
	from := tx.from.address()

	price, pays := tx.price(c.baseFee)
	if !pays || tx.nonce != c.nonces.at(from, height) || tx.expired(height, in.Time) ||
		!c.affordable(tx, height) {
		return nil, false
	}

	rules := c.gasRules(height)
	if tx.gas() > rules.most() {
		return nil, false
	}

	used := c.gasUsed(tx, rules, height, false)
	included = &receipt{
		tx:       tx,
		hash:     entry.hash,
		height:   height,
		fee:      chain.Units(price).Mul(min(used, tx.gas())),
		outOfGas: used > tx.gas(),
	}
	c.nonces.set(from, height, tx.nonce+1)
	c.debit(chain.Holding{Address: from, AssetID: c.native.ID}, height, included.fee)

	moves, failed := tx.moves(), c.failing[entry.hash]
	if call, ok := c.calls[entry.hash]; ok {
		moves, failed = call.execute(height, c.forks)
	}

	included.reverted = true
	if !failed && !included.outOfGas {
		included.shown, ok = c.applyMoves(entry.hash, height, moves)
		included.reverted = !ok
	}

	return included, true
}

func (c *Chain) debit(holding chain.Holding, height uint64, amount chain.Amount) {
	c.balances.set(holding, height, c.balances.at(holding, height).Sub(amount))
}

// execution is the execution of one transaction after the block of a height.
type execution struct {
	c       *Chain
	hash    string
	height  uint64
	changed map[chain.Holding]chain.Amount
	shown   []shownTransfer

	coinLogs bool // movements of coin log (EIP-7708)

	values, logs, internalCalls uint32 // number of transfers so far, by kind
}

// applyMoves applies the moves of a transaction, all or none, and returns what a node shows of them. ok
// is false when the transaction reverts.
func (c *Chain) applyMoves(hash string, height uint64, moves []move) (shown []shownTransfer, ok bool) {
	e := execution{
		c:        c,
		hash:     hash,
		height:   height,
		coinLogs: height >= c.coinLogsFrom,
		changed:  map[chain.Holding]chain.Amount{},
	}
	for _, m := range moves {
		if !e.apply(m) {
			return nil, false
		}
	}

	for holding, amount := range e.changed { // in any order: each holding is set once
		c.balances.set(holding, height, amount)
	}

	return e.shown, true
}

// apply makes one move by the rules of its asset and reports whether it could.
func (e *execution) apply(m move) bool {
	id := e.c.assetID(m.transfer)
	from, to := m.from.address(), m.to.address()

	if m.logOnly {
		e.show(m.kind, id, from, to, m.amount)
		return true
	}

	if m.minted {
		holding := chain.Holding{Address: from, AssetID: id}
		e.changed[holding] = e.balance(holding).Add(m.amount)
	}

	rules := e.c.tokens[id]
	if slices.Contains(rules.Refused, to) {
		return true
	}

	fee := chaindata.BPS(m.amount, rules.FeeBPS)
	if !e.transfer(id, from, to, m.amount) {
		return false
	}

	if fee.IsZero() {
		e.show(m.kind, id, from, to, m.amount)
		return true
	}

	if !e.transfer(id, to, rules.Collector, fee) {
		return false
	}

	switch rules.Log {
	case LogNet:
		e.show(m.kind, id, from, to, m.amount.Sub(fee))
		e.show(m.kind, id, from, rules.Collector, fee)
	case LogGross:
		e.show(m.kind, id, from, to, m.amount)
	case LogGrossThenFee:
		e.show(m.kind, id, from, to, m.amount)
		e.show(m.kind, id, to, rules.Collector, fee)
	}

	return true
}

// transfer changes two balances and reports whether it could.
func (e *execution) transfer(id string, from, to chain.Address, amount chain.Amount) bool {
	source, target := chain.Holding{Address: from, AssetID: id}, chain.Holding{Address: to, AssetID: id}
	if e.c.frozen[target] || e.balance(source).Less(amount) {
		return false
	}

	e.changed[source] = e.balance(source).Sub(amount)

	sum, ok := e.balance(target).AddOK(amount)
	e.changed[target] = sum

	return ok
}

func (e *execution) balance(holding chain.Holding) chain.Amount {
	if amount, ok := e.changed[holding]; ok {
		return amount
	}

	return e.c.balances.at(holding, e.height)
}

// show adds a transfer to what a node shows. It omits amounts of 0, but counts them in the indices,
// as logs of 0 are counted.
func (e *execution) show(kind byte, id string, from, to chain.Address, amount chain.Amount) {
	if kind == kindInternal && e.coinLogs {
		kind = kindLogged
	}

	index := e.nextIndex(kind)

	if kind == kindValue && e.coinLogs && from != to && !amount.IsZero() {
		e.logs++ // its log, which shows what is shown already
	}

	if _, known := e.c.network.AssetByID(id); !known || amount.IsZero() {
		return
	}

	e.shown = append(e.shown, shownTransfer{
		Transfer: chain.Transfer{
			TxHash:  e.hash,
			Index:   index,
			From:    from,
			To:      to,
			AssetID: id,
			Amount:  amount,
		},
		internal: kind == kindInternal,
	})
}

// nextIndex returns the index of the next transfer of a kind.
func (e *execution) nextIndex(kind byte) uint32 {
	switch kind {
	case kindToken, kindLogged:
		e.logs++
		return chaindata.LogIndex + e.logs - 1
	case kindInternal:
		e.internalCalls++
		return chaindata.InternalIndex + e.internalCalls - 1
	default:
		e.values++
		if e.values == 1 {
			return 0
		}

		return firstFurtherIndex + e.values - 2
	}
}
