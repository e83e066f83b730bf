package txmgr

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// firstTips keeps wallets from signing until their network has been read up to its tip at the start of this
// process. It also stops wallets while the pool holds transactions of theirs that are not on record. The
// records may be older than both.
type firstTips struct {
	mu sync.Mutex
	// runs is set while the engine's Run or Step runs. Otherwise wallets sign only in tests, which run single
	// workers.
	runs bool
	// looks are this process's looks at the networks, by network.
	looks map[string]firstLook
	// refused are the times at which pools, and second nodes (see highestTip), first did not answer, by
	// network.
	refused map[string]time.Time
}

// firstLook is a process's look at a network, until the network is read up to it.
type firstLook struct {
	// height is the highest tip that a node showed; 0 once the network is read up to it.
	height uint64
	// shown is the tip that the preferred node showed.
	shown uint64
	// alone is set while other nodes are configured and none of them shows the tip as well.
	alone bool
	// unrecorded are the hashes of the pool's transactions that are not on record, by the address that they
	// take from. Each is removed once it is in a block, which freezes the wallet, or has left the pool.
	unrecorded map[chain.Address][]string
	at         time.Time
}

// lookEvery is the interval between two looks at a pool. poolPatience is the time for which wallets wait for
// a pool that does not answer: the look is a precaution, and some providers refuse it.
const (
	lookEvery    = 15 * time.Second
	poolPatience = 2 * time.Minute
)

// Begin makes wallets wait until their networks are read; end reverts that.
func (o *Manager) Begin() (end func()) {
	set := func(runs bool) {
		o.firstTips.mu.Lock()
		defer o.firstTips.mu.Unlock()

		o.firstTips.runs = runs
	}

	set(true)

	return func() { set(false) }
}

// CompareWallet returns fault.State with code wallet_unread until this process has compared a wallet with its
// network. The network must have been read up to its tip at this process's first look. Its pool must hold no
// transaction of the wallet that is not on record. Until then each call asks the node, also for the few
// blocks that the follower has not read yet. A network that is not served any more has no node to ask: it
// returns nil.
func (o *Manager) CompareWallet(ctx context.Context, network string, address chain.Address) error {
	driver, err := o.registry.Driver(network)
	if errors.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	cursor, followed, err := o.db.Cursor(ctx, network)
	if err != nil || !followed {
		return err // nothing was sent from a network that was never read
	}

	compared, err := o.compared(ctx, driver, address)
	if err == nil && !compared {
		compared, err = o.comparedAhead(ctx, driver, cursor.At, address)
	}

	if err != nil {
		return err
	}

	if !compared {
		return fault.New(
			fault.State,
			"wallet_unread",
			"%s is not read yet, or its pool shows transactions of wallet %s that are not on record",
			network,
			address,
		)
	}

	return nil
}

// IsRead reports whether a network has been read up to the tip that its node first showed to this process.
// Its pool must also show no transaction of the address that is not on record.
func (o *Manager) IsRead(ctx context.Context, network string, address chain.Address) (bool, error) {
	o.firstTips.mu.Lock()
	runs := o.firstTips.runs
	o.firstTips.mu.Unlock()

	if !runs {
		return true, nil
	}

	driver, err := o.registry.Driver(network)
	if err != nil {
		return false, err
	}

	return o.compared(ctx, driver, address)
}

// WasCompared reports whether this process has compared a wallet with its network. Until then, lost records
// may have sent transactions that the current records show as unsigned. It does no I/O.
func (o *Manager) WasCompared(network string, address chain.Address) bool {
	o.firstTips.mu.Lock()
	defer o.firstTips.mu.Unlock()

	if !o.firstTips.runs {
		return true
	}

	look, known := o.firstTips.looks[network]

	return known && look.height == 0 && len(look.unrecorded[address]) == 0
}

// isRead is IsRead for the worker's wallet.
func (d *walletWorker) isRead(ctx context.Context) (bool, error) {
	return d.IsRead(ctx, d.network.Slug, d.party.Address)
}

// compared is IsRead, even while runs is not set.
func (o *Manager) compared(ctx context.Context, driver chain.Driver, address chain.Address) (bool, error) {
	tips, network := &o.firstTips, driver.Network().Slug

	look, known := tips.of(network)

	unread := look.height > 0

	waits := len(look.unrecorded[address]) > 0
	if known && !unread && !waits {
		return true, nil
	}

	fresh, first, shown := !known || o.now().Sub(look.at) >= lookEvery, look.height, look.shown
	if !fresh && !unread {
		return false, nil
	}

	if fresh {
		var err error
		if look, err = o.look(ctx, driver); err != nil {
			return false, err
		}
	}

	c, followed, err := o.db.Cursor(ctx, network)
	if err != nil {
		return false, &storeError{err}
	}

	// A node below the records cannot show what they lack, and one without a second node may be wrong.
	if fresh && followed && (look.height < c.At.Height || look.alone) {
		return false, nil
	}

	if unread {
		// A height that another node showed before and shows no more was wrong. The tip that the preferred
		// node showed stays the minimum, because that node may lag since then.
		look.height, look.shown = max(min(look.height, first), shown), max(look.shown, shown)
	}

	if followed && c.At.Height >= look.height {
		if look, err = o.pass(ctx, driver, look, c.At); err != nil {
			return false, err
		}
	}

	tips.keep(network, look)

	return look.height == 0 && len(look.unrecorded[address]) == 0, nil
}

// of returns the look at a network; known is false if there was none yet.
func (f *firstTips) of(network string) (look firstLook, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()

	look, known = f.looks[network]

	return look, known
}

func (f *firstTips) keep(network string, look firstLook) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.looks == nil {
		f.looks = map[string]firstLook{}
	}

	f.looks[network] = look
}

// pass looks again once the height of a look is reached. It returns the new look as read if the blocks up to
// its tip follow the last block that was read. A fork may have returned a transaction from a block to the
// pool, or moved it to a later block.
func (o *Manager) pass(
	ctx context.Context,
	driver chain.Driver,
	look firstLook,
	read chain.Ref,
) (firstLook, error) {
	now, err := o.look(ctx, driver)
	if err != nil {
		return firstLook{}, err
	}

	height := max(now.height, look.height)
	now.shown = max(now.shown, look.shown)

	ahead, goesOn, err := o.unrecordedAhead(ctx, driver, read, now.height)
	if err != nil {
		return firstLook{}, err
	}

	if !goesOn || now.height < height {
		now.height = height
		return now, nil
	}

	now.height = 0

	if now.unrecorded == nil {
		now.unrecorded = map[chain.Address][]string{}
	}

	for address, hashes := range ahead {
		now.unrecorded[address] = append(now.unrecorded[address], hashes...)
	}

	return now, nil
}

// comparedAhead is compared for one request that does not wait for the follower to reach the tip. It reports
// whether neither the pool nor the few blocks that are not read hold a transaction of the wallet that is not
// on record.
func (o *Manager) comparedAhead(
	ctx context.Context,
	driver chain.Driver,
	read chain.Ref,
	address chain.Address,
) (bool, error) {
	if _, ok := driver.(chain.BlockScanner); !ok {
		return false, nil
	}

	look, known := o.firstTips.of(driver.Network().Slug)
	if !known {
		return false, nil
	}

	look, err := o.pass(ctx, driver, look, read)

	return err == nil && look.height == 0 && len(look.unrecorded[address]) == 0, err
}

// look looks at a network. It reads the pool first, so that a transaction which leaves it for a block
// meanwhile is at or below the tip.
func (o *Manager) look(ctx context.Context, driver chain.Driver) (firstLook, error) {
	look := firstLook{at: o.now()}

	if pool, ok := driver.(chain.Mempool); ok {
		waiting, err := pool.Pool(ctx)
		if err == nil {
			look.unrecorded, err = o.unrecordedIn(ctx, driver.Network().Slug, waiting)
		}

		if err == nil {
			err = o.dropAcknowledged(ctx, driver.Network().Slug, look.unrecorded)
		}

		if err != nil && !o.givesUpPool(ctx, driver.Network().Slug, err) {
			return firstLook{}, err
		}
	}

	head, err := driver.Head(ctx)
	if err != nil {
		return firstLook{}, err
	}

	height, alone := o.highestTip(ctx, driver, head.Tip)
	if ctx.Err() != nil {
		return firstLook{}, ctx.Err()
	}

	look.height, look.shown, look.alone = max(height, 1), head.Tip.Height, alone

	return look, nil
}

// givesUpPool reports whether a pool has not answered for poolPatience; wallets then go on without it.
func (o *Manager) givesUpPool(ctx context.Context, network string, cause error) bool {
	if o.refusedFor(network) < poolPatience {
		return false
	}

	o.config.Log.WarnContext(
		ctx, "wallets sign without a look at the pool: it does not answer",
		"network", network, "error", publicText(cause),
	)

	return true
}

// refusedFor returns the time since a pool or a second node first did not answer.
func (o *Manager) refusedFor(what string) time.Duration {
	tips := &o.firstTips

	tips.mu.Lock()
	defer tips.mu.Unlock()

	if tips.refused == nil {
		tips.refused = map[string]time.Time{}
	}

	if _, known := tips.refused[what]; !known {
		tips.refused[what] = o.now()
	}

	return o.now().Sub(tips.refused[what])
}
