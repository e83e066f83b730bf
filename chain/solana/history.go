package solana

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// TransfersTo returns the blocks of a range of heights with transfers to the addresses and their token
// accounts, or with transactions that one of the addresses signed. They are read from the accounts'
// histories. Spent lists those signers alone.
//
// Nodes omit signatures silently, so every history must be consistent. Each transaction finds the
// balance that the one before left, the newest leaves the present balance, and the first finds none.
// An inconsistent history is fault.Unavailable unless another node has the complete one.
//
// An account with the balance of its last complete reading has received nothing since: coin leaves our
// addresses only by a sweep, after crediting. Such accounts cost no further call.
func (d *Driver) TransfersTo(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	if to < from {
		return nil, emptyRange(from, to)
	}

	s := historyScan{driver: d, from: from, to: to, addresses: map[chain.Address]bool{}}

	for _, address := range addresses {
		if err := s.addAddress(address); err != nil {
			return nil, err
		}
	}

	var blocks []chain.Block

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		blocks, err = s.read(ctx, e)
		return err
	})
	if err != nil {
		return nil, aboveTip(err, to)
	}

	return blocks, nil
}

// historyScan is one call of TransfersTo.
type historyScan struct {
	driver    *Driver
	from, to  uint64 // heights
	addresses map[chain.Address]bool
	accounts  []holdingAccount
}

// addAddress adds an address with its token accounts of all enabled mints.
func (s *historyScan) addAddress(address chain.Address) error {
	owner, err := parseKey(string(address))
	if err != nil {
		return err
	}

	if s.addresses[address] {
		return nil
	}

	s.addresses[address] = true
	s.accounts = append(s.accounts, holdingAccount{key: owner})

	for _, m := range s.driver.mints {
		key, err := m.accountOf(owner)
		if err != nil {
			return err
		}

		s.accounts = append(s.accounts, holdingAccount{key: key, mint: &m})
	}

	return nil
}

// read reads the histories from one node.
func (s *historyScan) read(ctx context.Context, e *endpoint) ([]chain.Block, error) {
	d := s.driver

	first, err := d.headerAt(ctx, e, s.from)
	if err != nil {
		return nil, err
	}

	last, err := d.headerAt(ctx, e, s.to)
	if err != nil {
		return nil, err
	}

	keys := keysOf(s.accounts)

	infos, slot, err := e.accounts(ctx, keys, last.slot)
	if err != nil {
		return nil, err
	}

	var mu sync.Mutex

	byHash := map[string]confirmedTx{}

	err = e.forEach(ctx, len(s.accounts), func(ctx context.Context, i int) error {
		balance := s.accounts[i].balance(infos[i])
		if d.balances.unchanged(keys[i], balance, s.from) {
			d.balances.put(keys[i], balance, s.to)
			return nil
		}

		history, err := s.history(ctx, e, s.accounts[i], first.slot, slot, balance)
		if err != nil {
			return err
		}

		newer := false

		mu.Lock()
		defer mu.Unlock()

		for _, tx := range history {
			byHash[tx.hash] = tx
			newer = newer || tx.block.slot > last.slot
		}

		// With newer transactions the balance is a later one, for which the range is not complete.
		if !newer {
			d.balances.put(keys[i], balance, s.to)
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	return s.blocks(e, byHash)
}

// history reads the transactions of an account from a slot on, newest first, and checks that they
// explain its balance at slot now.
func (s *historyScan) history(
	ctx context.Context,
	e *endpoint,
	account holdingAccount,
	fromSlot, now, balance uint64,
) ([]confirmedTx, error) {
	list, older, err := e.signatures(ctx, account.key.String(), fromSlot, now)
	if err != nil {
		return nil, err
	}

	if older != nil {
		list = append(list, *older)
	}

	// Sequentially: the caller reads the histories of many accounts concurrently.
	txs := make([]confirmedTx, len(list))
	for i, info := range list {
		tx, err := s.driver.fetchTransaction(ctx, e, info.Signature)
		if errors.Is(err, failover.ErrMissing) {
			return nil, e.Garbled("it lists transaction %s and does not have it", info.Signature)
		}

		if err != nil {
			return nil, err
		}

		txs[i] = tx
	}

	if err := checkHistory(e, account, list, txs, older == nil, now, balance); err != nil {
		return nil, err
	}

	if older != nil {
		txs = txs[:len(txs)-1]
	}

	return txs, nil
}

// checkHistory checks that a history, newest first, explains an account's balance at slot now.
// complete reports that the history reaches back to the account's first transaction.
func checkHistory(
	e *endpoint,
	account holdingAccount,
	list []signatureInfo,
	txs []confirmedTx,
	complete bool,
	now, balance uint64,
) error {
	expected := balance // after the current transaction, backwards in time

	for i, tx := range txs {
		before, after, named := account.balanceChange(tx.executedTx)

		newestUpToNow := i > 0 && list[i-1].Slot > now && list[i].Slot <= now
		if i == 0 && list[i].Slot > now || newestUpToNow {
			expected = balance
		}

		if !named || (list[i].Slot <= now && after != expected) {
			return e.Garbled(
				"its history of %s leaves something out: transaction %s left %d, found later were %d",
				account.key, tx.hash, after, expected,
			)
		}

		expected = before
	}

	if complete && expected != 0 && (len(list) == 0 || list[len(list)-1].Slot <= now) {
		return e.Garbled(
			"its history of %s leaves something out: it began with %d",
			account.key, expected,
		)
	}

	return nil
}

// blocks returns the transfers to the addresses and what they signed, by block and in order of height.
func (s *historyScan) blocks(e *endpoint, byHash map[string]confirmedTx) ([]chain.Block, error) {
	byHeight := map[uint64]*chain.Block{}

	for _, tx := range byHash {
		transfers, err := s.driver.transfers(tx.executedTx)
		if err != nil {
			return nil, err
		}

		transfers = slices.DeleteFunc(transfers, func(t chain.Transfer) bool { return !s.addresses[t.To] })
		spent := slices.DeleteFunc(tx.spends(), func(by chain.Spend) bool { return !s.addresses[by.Sender] })

		if len(transfers)+len(spent) == 0 || tx.block.Height < s.from || tx.block.Height > s.to {
			continue
		}

		b := byHeight[tx.block.Height]
		if b == nil {
			b = &chain.Block{Ref: tx.block.ref(), Parent: tx.block.Parent}
			byHeight[tx.block.Height] = b
		}

		if b.Hash != tx.block.Hash {
			return nil, e.Garbled("block %d changed while it was read", b.Height)
		}

		b.Transfers, b.Spent = append(b.Transfers, transfers...), append(b.Spent, spent...)
	}

	var blocks []chain.Block

	for _, height := range slices.Sorted(maps.Keys(byHeight)) {
		b := *byHeight[height]
		slices.SortFunc(b.Transfers, func(x, y chain.Transfer) int {
			return cmp.Or(cmp.Compare(x.TxHash, y.TxHash), cmp.Compare(x.Index, y.Index))
		})
		slices.SortFunc(b.Spent, func(x, y chain.Spend) int {
			return cmp.Or(cmp.Compare(x.By, y.By), cmp.Compare(x.Sender, y.Sender))
		})

		blocks = append(blocks, b)
	}

	return blocks, nil
}

// signatureInfo is an entry of an address' history.
type signatureInfo struct {
	Signature string          `json:"signature"`
	Slot      uint64          `json:"slot"`
	Err       json.RawMessage `json:"err"`
}

func (s signatureInfo) failed() bool { return len(s.Err) > 0 && string(s.Err) != "null" }

// signaturesPerPage is the number of signatures that one call requests, and the nodes' limit.
// Source: solana.com/docs/rpc/http/getsignaturesforaddress.
const signaturesPerPage = 1000

// signatures returns the confirmed transactions that name an address from a slot on, newest first.
// older is the last one before the slot; nil when there is none.
//
// A node behind minSlot refuses, since it would omit the newest. A short page is not the last one: only
// an empty page, or one that reaches below the slot, ends the list.
func (e *endpoint) signatures(
	ctx context.Context,
	address string,
	fromSlot, minSlot uint64,
) (all []signatureInfo, older *signatureInfo, err error) {
	seen := map[string]bool{}

	for before := ""; ; {
		options := map[string]any{
			"commitment":     "confirmed",
			"limit":          signaturesPerPage,
			"minContextSlot": minSlot,
		}
		if before != "" {
			options["before"] = before
		}

		var page []signatureInfo
		if err := e.call(ctx, &page, "getSignaturesForAddress", address, options); err != nil {
			return nil, nil, err
		}

		if len(page) == 0 {
			return all, nil, nil
		}

		for i, info := range page {
			if seen[info.Signature] || (i > 0 && info.Slot > page[i-1].Slot) ||
				(i == 0 && len(all) > 0 && info.Slot > all[len(all)-1].Slot) {
				return nil, nil, e.Garbled("its history of %s is not in order", address)
			}

			seen[info.Signature] = true
			if info.Slot < fromSlot {
				return all, &info, nil
			}

			all = append(all, info)
		}

		before = page[len(page)-1].Signature
	}
}

// balanceCache stores the balances of accounts at the last complete reading of their histories. It only
// saves requests.
type balanceCache struct {
	mu       sync.Mutex
	readings map[solanago.PublicKey]balanceReading
}

// balanceReading is a balance, in base units, of an account whose history was read up to a height.
type balanceReading struct{ balance, height uint64 }

const maxCachedBalances = 1 << 20

func newBalanceCache() *balanceCache {
	return &balanceCache{readings: map[solanago.PublicKey]balanceReading{}}
}

// unchanged reports whether an account had this balance when its history was read up to a height below
// from. A range that was read already is read once more, since the chain may have forked.
func (c *balanceCache) unchanged(key solanago.PublicKey, balance, from uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	reading, ok := c.readings[key]

	return ok && reading.balance == balance && reading.height < from
}

func (c *balanceCache) put(key solanago.PublicKey, balance, height uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if len(c.readings) >= maxCachedBalances {
		clear(c.readings)
	}

	c.readings[key] = balanceReading{balance, height}
}
