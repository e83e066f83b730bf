package txmgr

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// firstTips keeps wallets from signing before their network has been read up to where it was when this process
// began, and while its pool holds transactions of theirs that are not on record: records may be older than both.
type firstTips struct {
	mu sync.Mutex
	// runs is set while the engine's Run or Step does: nobody else makes wallets sign, but tests that drive
	// single workers.
	runs bool
	// looks are what this process saw of each network.
	looks map[string]firstLook
	// refused are the times when pools first did not answer, by network, and second nodes, see highestTip.
	refused map[string]time.Time
}

// firstLook is what a process saw of a network, before it read up to there.
type firstLook struct {
	// height is the highest tip that a node showed; 0 once it is read.
	height uint64
	// shown is the tip that the preferred node showed.
	shown uint64
	// alone is set while a second node, where there is one, does not show the tip as well.
	alone bool
	// unrecorded are the hashes of the pool's transactions that are not on record, by the address that they take
	// from. They end in a block, which freezes the wallet, or leave the pool.
	unrecorded map[chain.Address][]string
	at         time.Time
}

// The pace of looking at a pool again, and how long one that does not answer holds wallets back: it is a
// precaution that some providers refuse.
const (
	lookEvery    = 15 * time.Second
	poolPatience = 2 * time.Minute
)

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

// CompareWallet returns fault.State with code wallet_unread until a network has been read up to where it was when
// this process first looked, and its pool holds no transaction of the wallet that is not on record. It asks the
// node until that is so, also for the few blocks that the follower has not come to yet. A network that is not served
// any more has no node to ask: what is on record decides.
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
		return err // nothing was ever sent by what was read of it
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

// IsRead reports whether a network has been read up to the tip that its node first showed to this process, and its
// pool shows nothing of an address that is not on record.
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

// WasCompared reports whether this process has compared a wallet with its network: until then, what is not signed on
// record may have been sent by records that are lost. It asks nobody.
func (o *Manager) WasCompared(network string, address chain.Address) bool {
	o.firstTips.mu.Lock()
	defer o.firstTips.mu.Unlock()

	if !o.firstTips.runs {
		return true
	}

	look, known := o.firstTips.looks[network]

	return known && look.height == 0 && len(look.unrecorded[address]) == 0
}

// isRead is IsRead of the worker's wallet.
func (d *walletWorker) isRead(ctx context.Context) (bool, error) {
	return d.IsRead(ctx, d.network.Slug, d.party.Address)
}

// compared is IsRead, whoever asks.
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

	// A node below the records has not seen what they may lack, nor has one that no second node is with.
	if fresh && followed && (look.height < c.At.Height || look.alone) {
		return false, nil
	}

	if unread {
		// A height above the tip that was shown, and is no more, was none. That tip stands: a node may lag since.
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

// of returns the look at a network; known is false before there was one.
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

// pass takes a look whose height is reached anew, and returns it as read when the blocks that follow go on from what
// was read: a fork may have returned to the pool, or taken to a later block, what was in a block at first.
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

// comparedAhead is compared for one request, which does not wait until the follower has come to the tip: nothing of
// a wallet that is not on record is in the pool now, or in the few blocks that are not read.
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

// look returns what a network shows now. The pool comes first: what leaves it for a block meanwhile is below the
// tip.
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

// givesUpPool reports whether a pool has not answered for poolPatience: wallets go on without it.
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

// refusedFor returns how long ago something did not answer for the first time.
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
