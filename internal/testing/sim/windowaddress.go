package sim

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
)

// addressDriver is the driver of ByAddress.
type addressDriver struct {
	windowsDriver // w, without Blocks and the controls

	w *Windows
}

// ByAddress returns a driver of the same network that is a chain.AddressScanner in place of a
// chain.BlockScanner, in Solana's manner. Its blocks have no Spent; see Late.
func (w *Windows) ByAddress() chain.Driver { return addressDriver{w, w} }

// ParentAt returns the parent of the block at a height.
func (d addressDriver) ParentAt(ctx context.Context, height uint64) (string, error) {
	if err := d.w.call(ctx, MethodRefAt); err != nil {
		return "", err
	}

	d.w.mu.Lock()
	defer d.w.mu.Unlock()

	if err := d.w.checkReadable(height); err != nil {
		return "", err
	}

	return d.w.block(height).Parent, nil
}

// TransfersTo returns the blocks of a range with transfers to the addresses.
func (d addressDriver) TransfersTo(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	if err := d.w.call(ctx, MethodTransfersTo); err != nil {
		return nil, err
	}

	d.w.mu.Lock()
	defer d.w.mu.Unlock()

	if _, err := d.w.checkRange(from, to); err != nil {
		return nil, err
	}

	if err := d.w.checkReadable(to); err != nil {
		return nil, err
	}

	isOther := func(moved chain.Transfer) bool { return !slices.Contains(addresses, moved.To) }

	var blocks []chain.Block

	for height := from; height <= to && height+d.w.late <= d.w.nodeTip(); height++ {
		block := d.w.block(height)
		block.Spent = nil

		if block.Transfers = slices.DeleteFunc(block.Transfers, isOther); len(block.Transfers) > 0 {
			blocks = append(blocks, block)
		}
	}

	return blocks, nil
}
