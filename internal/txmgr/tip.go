package txmgr

import (
	"context"
	"sync"
)

// firstTips keeps wallets from signing before their network has been read up to where it was when this process
// began: records may be older than the chain.
type firstTips struct {
	mu sync.Mutex
	// runs is set while the engine's Run or Step does: nobody else makes wallets sign, but tests that drive
	// single workers.
	runs bool
	// heights are the heights to read, by network; 0 once they are read.
	heights map[string]uint64
}

// Begin has wallets wait until their networks are read, and returns what ends that.
func (o *Manager) Begin() (end func()) {
	set := func(runs bool) {
		o.firstTips.mu.Lock()
		defer o.firstTips.mu.Unlock()

		o.firstTips.runs = runs
	}

	set(true)

	return func() { set(false) }
}

// isRead reports whether the network has been read up to the tip that its node first showed to this process.
func (d *walletWorker) isRead(ctx context.Context) (bool, error) {
	tips, network := &d.firstTips, d.network.Slug

	tips.mu.Lock()
	height, known := tips.heights[network]
	runs := tips.runs
	tips.mu.Unlock()

	if !runs || known && height == 0 {
		return true, nil
	}

	if !known {
		driver, err := d.registry.Driver(network)
		if err != nil {
			return false, err
		}

		head, err := driver.Head(ctx)
		if err != nil {
			return false, err
		}

		height = max(head.Tip.Height, 1)
	}

	c, followed, err := d.db.Cursor(ctx, network)
	if err != nil {
		return false, &storeError{err}
	}

	read := followed && c.At.Height >= height
	if read {
		height = 0
	}

	tips.mu.Lock()
	defer tips.mu.Unlock()

	if tips.heights == nil {
		tips.heights = map[string]uint64{}
	}

	tips.heights[network] = height

	return read, nil
}
