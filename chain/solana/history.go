package solana

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// TransfersTo returns the blocks of a range of heights with transfers to the addresses and their token
// accounts, or with transactions that one of the addresses signed. They are read from the accounts'
// histories. Spent lists those signers alone. Where anything cannot be read it is fault.Unavailable. Only backends
// answer that have reached the end of the range; without one it is fault.NotFound.
//
// Nodes omit signatures silently, so every history must be consistent. Each transaction finds the
// balance that the one before left, the newest leaves the present balance, and the first finds none
// unless the node no longer has what was before.
//
// An account with the balance of its last complete reading has received nothing since, unless something moved
// there shortly before. Such accounts cost no further call.
func (d *driver) TransfersTo(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	s, err := d.newHistoryScan(addresses, from, to)
	if err != nil {
		return nil, err
	}

	s.unbounded = true

	reading, err := s.run(ctx)
	if err != nil {
		return nil, err
	}

	for _, unread := range reading.Unread {
		return nil, fault.New(
			fault.Unavailable, "node_unavailable",
			"the history of %s cannot be read: %s", unread.Address, unread.Why,
		)
	}

	return reading.Blocks, nil
}

// ReadTransfers is TransfersTo for a part: up to where the node is, a bounded number of transactions of each
// account, and without the addresses that cannot be read. Blocks below from may be there once more.
func (d *driver) ReadTransfers(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) (chain.AddressReading, error) {
	s, err := d.newHistoryScan(addresses, from, to)
	if err != nil {
		return chain.AddressReading{}, err
	}

	return s.run(ctx)
}

// historyScan is one call of TransfersTo or ReadTransfers.
type historyScan struct {
	driver    *driver
	from, to  uint64 // heights
	unbounded bool   // read histories to their end
	addresses map[chain.Address]bool
	accounts  []addressAccount // still to be read

	slotsMu sync.Mutex
	slots   map[uint64]uint64 // by height

	mu     sync.Mutex
	at     *blockHeader
	byHash map[string]confirmedTx
	unread map[chain.Address]chain.Unread
}

// addressAccount is an account of an address.
type addressAccount struct {
	holdingAccount
	address chain.Address
}

// newHistoryScan returns a scan of the addresses with their token accounts of all enabled mints.
func (d *driver) newHistoryScan(addresses []chain.Address, from, to uint64) (*historyScan, error) {
	if to < from {
		return nil, emptyRange(from, to)
	}

	s := &historyScan{
		driver:    d,
		from:      from,
		to:        to,
		addresses: map[chain.Address]bool{},
		slots:     map[uint64]uint64{},
		byHash:    map[string]confirmedTx{},
		unread:    map[chain.Address]chain.Unread{},
	}

	for _, address := range addresses {
		owner, err := parseKey(string(address))
		if err != nil {
			return nil, err
		}

		if s.addresses[address] {
			continue
		}

		s.addresses[address] = true
		s.accounts = append(s.accounts, addressAccount{holdingAccount{key: owner}, address})

		for _, m := range d.mints {
			key, err := m.accountOf(owner)
			if err != nil {
				return nil, err
			}

			s.accounts = append(s.accounts, addressAccount{holdingAccount{key: key, mint: &m}, address})
		}
	}

	return s, nil
}

// run reads from one node after another what the one before could not show.
func (s *historyScan) run(ctx context.Context) (chain.AddressReading, error) {
	err := s.driver.ask(ctx, func(ctx context.Context, e *endpoint) error {
		return s.read(ctx, e)
	})
	if err != nil && (s.at == nil || len(s.unread) == 0) {
		return chain.AddressReading{}, aboveTip(err, s.to)
	}

	low := uint64(0) // an unsettled account is read from further below
	if s.unbounded {
		low = s.from
	}

	blocks, err := s.blocks(low)

	reading := chain.AddressReading{Blocks: blocks, At: s.at.ref()}
	for _, address := range slices.Sorted(maps.Keys(s.unread)) {
		reading.Unread = append(reading.Unread, s.unread[address])
	}

	return reading, err
}

// read reads the accounts that are left from one node. It returns failover.ErrLagging when another node may
// have more.
func (s *historyScan) read(ctx context.Context, e *endpoint) error {
	last, err := s.lastBlock(ctx, e)
	if err != nil {
		return err
	}

	minSlot := uint64(0)
	if s.unbounded {
		minSlot = last.slot
	}

	infos, slot, err := e.accounts(ctx, keysOf(s.accounts), minSlot)
	if err != nil {
		return err
	}

	if slot < last.slot {
		if last, err = s.blockBelow(ctx, e, slot); err != nil {
			return err
		}
	}

	s.at = &last
	clear(s.unread)

	h := historyReader{historyScan: s, endpoint: e, last: last, slot: slot}

	var left []addressAccount

	err = e.forEach(ctx, len(s.accounts), func(ctx context.Context, i int) error {
		unread, err := h.readAccount(ctx, s.accounts[i], s.accounts[i].balance(infos[i]))
		if err != nil || unread == nil {
			return err
		}

		s.mu.Lock()
		defer s.mu.Unlock()

		if unread.Why != "" {
			left = append(left, s.accounts[i])
		}

		s.addUnread(*unread)

		return nil
	})
	if err != nil {
		return err
	}

	if len(left) > 0 && len(s.driver.nodes.Nodes) > 1 {
		return failover.ErrLagging
	}

	return nil
}

// slotAt returns the slot of a height, which many accounts ask for.
func (s *historyScan) slotAt(ctx context.Context, e *endpoint, height uint64) (uint64, error) {
	s.slotsMu.Lock()
	defer s.slotsMu.Unlock()

	if slot, ok := s.slots[height]; ok {
		return slot, nil
	}

	h, err := s.driver.headerAt(ctx, e, height)
	if err == nil {
		s.slots[height] = h.slot
	}

	return h.slot, err
}

// addUnread stores an entry; of two of one address that of the lower height with its reason.
func (s *historyScan) addUnread(unread chain.Unread) {
	known, ok := s.unread[unread.Address]
	if ok && known.Height < unread.Height {
		unread.Height = known.Height
	}

	if ok && unread.Why == "" {
		unread.Why, unread.TxHash = known.Why, known.TxHash
	}

	s.unread[unread.Address] = unread
}

// lastBlock returns the block at the upper end of the range. That of the last Head needs no call.
func (s *historyScan) lastBlock(ctx context.Context, e *endpoint) (blockHeader, error) {
	if head := s.driver.head.Load(); head != nil && head.Height == s.to {
		return *head, nil
	}

	return s.driver.headerAt(ctx, e, s.to)
}

// blockBelow returns the block of the slot at which a backend answered that is behind the range's end. Below
// the range it is failover.ErrLagging.
func (s *historyScan) blockBelow(ctx context.Context, e *endpoint, slot uint64) (blockHeader, error) {
	slots, err := e.slotsUpTo(ctx, slot)
	if err != nil {
		return blockHeader{}, err
	}

	h, err := e.header(ctx, slots[len(slots)-1])
	if err == nil && h.Height < s.from {
		err = failover.ErrLagging
	}

	return h, err
}

// blocks returns the transfers to the addresses and what they signed, by block from a height on and in order.
func (s *historyScan) blocks(low uint64) ([]chain.Block, error) {
	byHeight := map[uint64]*chain.Block{}

	for _, tx := range s.byHash {
		transfers, err := s.driver.transfers(tx.executedTx)
		if err != nil {
			return nil, err
		}

		transfers = slices.DeleteFunc(transfers, func(t chain.Transfer) bool { return !s.addresses[t.To] })
		spent := slices.DeleteFunc(tx.spends(), func(by chain.Spend) bool { return !s.addresses[by.Sender] })

		if len(transfers)+len(spent) == 0 || tx.block.Height < low || tx.block.Height > s.at.Height {
			continue
		}

		b := byHeight[tx.block.Height]
		if b == nil {
			b = &chain.Block{Ref: tx.block.ref(), Parent: tx.block.Parent}
			byHeight[tx.block.Height] = b
		}

		if b.Hash != tx.block.Hash {
			return nil, fault.New(
				fault.Unavailable, "node_unavailable", "block %d of network %s changed while it was read",
				b.Height, s.driver.network.Slug,
			)
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
