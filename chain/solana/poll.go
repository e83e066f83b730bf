package solana

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// TransfersTo reads the histories of the addresses and of their token accounts. A node whose history has a gap leaves
// transfers out without saying so: the caller reads the same heights again later, and compares balances.
func (d *Driver) TransfersTo(ctx context.Context, addresses []chain.Address, from, to uint64) ([]chain.Block, error) {
	if to < from {
		return nil, fault.New(fault.Invalid, "range_invalid", "the range of blocks from %d to %d is empty", from, to)
	}
	wanted := map[chain.Address]bool{}
	var accounts []solanago.PublicKey
	for _, a := range addresses {
		owner, err := parseKey(string(a))
		if err != nil {
			return nil, err
		}
		if wanted[a] {
			continue
		}
		wanted[a] = true
		accounts = append(accounts, owner)
		for _, m := range d.mints {
			account, err := m.accountOf(owner)
			if err != nil {
				return nil, err
			}
			accounts = append(accounts, account)
		}
	}
	var blocks []chain.Block
	err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		blocks, err = d.transfersTo(ctx, e, accounts, wanted, from, to)
		return err
	})
	if err != nil {
		return nil, aboveTip(err, to)
	}
	return blocks, nil
}

func (d *Driver) transfersTo(ctx context.Context, e *endpoint, accounts []solanago.PublicKey, wanted map[chain.Address]bool, from, to uint64) ([]chain.Block, error) {
	first, err := d.headerAt(ctx, e, from)
	if err != nil {
		return nil, err
	}
	last, err := d.headerAt(ctx, e, to)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	listed := map[string]bool{}
	err = e.each(ctx, len(accounts), func(ctx context.Context, i int) error {
		history, err := e.signatures(ctx, accounts[i].String(), first.slot, last.slot)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, s := range history {
			if !s.failed() && s.Slot <= last.slot {
				listed[s.Signature] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	signatures := slices.Sorted(maps.Keys(listed))
	byHeight := map[uint64]*chain.Block{}
	err = e.each(ctx, len(signatures), func(ctx context.Context, i int) error {
		f, err := d.lookUp(ctx, e, signatures[i])
		if errors.Is(err, errMissing) {
			return e.garbled("it lists transaction %s and does not have it", signatures[i])
		}
		if err != nil {
			return err
		}
		moved, err := d.transfers(f.executed)
		if err != nil {
			return err
		}
		moved = slices.DeleteFunc(moved, func(t chain.Transfer) bool { return !wanted[t.To] })
		if len(moved) == 0 || f.block.Height < from || f.block.Height > to {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		b := byHeight[f.block.Height]
		if b == nil {
			b = &chain.Block{Ref: f.block.ref(), Parent: f.block.Parent}
			byHeight[f.block.Height] = b
		}
		if b.Hash != f.block.Hash {
			return e.garbled("block %d changed while it was read", b.Height)
		}
		b.Transfers = append(b.Transfers, moved...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var blocks []chain.Block
	for _, height := range slices.Sorted(maps.Keys(byHeight)) {
		b := *byHeight[height]
		slices.SortFunc(b.Transfers, func(x, y chain.Transfer) int {
			return cmp.Or(cmp.Compare(x.TxHash, y.TxHash), cmp.Compare(x.Index, y.Index))
		})
		blocks = append(blocks, b)
	}
	return blocks, nil
}
