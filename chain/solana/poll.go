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
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// TransfersTo reads the histories of the addresses and of their token accounts. Nodes leave
// signatures out without saying so, so every history has to add up: what the account holds now is
// what its newest transaction left, what each found is what the one before left, and the first
// found nothing. One that does not add up is fault.Unavailable unless another node has it whole.
//
// An account that holds what it held when its history was last read up to here has received nothing
// since: what arrives at an address of ours leaves it only by a release, which follows the
// crediting. So accounts at rest cost no call of their own.
func (d *Driver) TransfersTo(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	if to < from {
		return nil, fault.New(
			fault.Invalid, "range_invalid", "the range of blocks from %d to %d is empty",
			from, to,
		)
	}

	p := poll{driver: d, from: from, to: to, wanted: map[chain.Address]bool{}}

	for _, a := range addresses {
		owner, err := parseKey(string(a))
		if err != nil {
			return nil, err
		}

		if p.wanted[a] {
			continue
		}

		p.wanted[a] = true

		p.places = append(p.places, place{key: owner})
		for _, m := range d.mints {
			account, err := m.accountOf(owner)
			if err != nil {
				return nil, err
			}

			p.places = append(p.places, place{key: account, mint: &m})
		}
	}

	var blocks []chain.Block

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		blocks, err = p.read(ctx, e)
		return err
	})
	if err != nil {
		return nil, aboveTip(err, to)
	}

	return blocks, nil
}

// poll is one call of TransfersTo.
type poll struct {
	driver   *Driver
	from, to uint64
	wanted   map[chain.Address]bool
	places   []place
}

func (p *poll) read(ctx context.Context, e *endpoint) ([]chain.Block, error) {
	d := p.driver

	first, err := d.headerAt(ctx, e, p.from)
	if err != nil {
		return nil, err
	}

	last, err := d.headerAt(ctx, e, p.to)
	if err != nil {
		return nil, err
	}

	keys := make([]solanago.PublicKey, len(p.places))
	for i, place := range p.places {
		keys[i] = place.key
	}

	now, slot, err := e.accounts(ctx, keys, last.slot)
	if err != nil {
		return nil, err
	}

	var mu sync.Mutex

	seen := map[string]found{}

	err = e.each(ctx, len(p.places), func(ctx context.Context, i int) error {
		amount := p.places[i].amount(now[i])
		if d.rests.holds(keys[i], amount, p.from) {
			d.rests.put(keys[i], amount, p.to)
			return nil
		}

		history, err := p.history(ctx, e, p.places[i], first.slot, slot, amount)
		if err != nil {
			return err
		}

		beyond := false

		mu.Lock()
		defer mu.Unlock()

		for _, f := range history {
			seen[f.hash] = f
			beyond = beyond || f.block.slot > last.slot
		}
		// else the amount is that of a later time, and what came until then has not been asked for
		if !beyond {
			d.rests.put(keys[i], amount, p.to)
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	return p.blocks(e, seen)
}

// history reads the transactions of an account from a slot on, and makes sure that they explain
// what it holds at the slot now.
func (p *poll) history(
	ctx context.Context,
	e *endpoint,
	account place,
	from, now, amount uint64,
) ([]found, error) {
	list, older, err := e.signatures(ctx, account.key.String(), from, now)
	if err != nil {
		return nil, err
	}

	if older != nil {
		list = append(list, *older)
	}

	read := make([]found, len(list))
	for i, s := range list { // one by one: whoever runs this for many accounts does so beside each other
		f, err := p.driver.lookUp(ctx, e, s.Signature)
		if errors.Is(err, failover.ErrMissing) {
			return nil, e.Garbled("it lists transaction %s and does not have it", s.Signature)
		}

		if err != nil {
			return nil, err
		}

		read[i] = f
	}

	expected := amount // after the transaction at hand, going back in time

	for i, f := range read {
		before, after, named := account.change(f.executed)

		if i == 0 && list[i].Slot > now || i > 0 && list[i-1].Slot > now && list[i].Slot <= now {
			expected = amount
		}

		if !named || (list[i].Slot <= now && after != expected) {
			return nil, e.Garbled(
				"its history of %s leaves something out: transaction %s left %d, found later were %d",
				account.key, f.hash, after, expected,
			)
		}

		expected = before
	}

	if older == nil && expected != 0 && (len(list) == 0 || list[len(list)-1].Slot <= now) {
		return nil, e.Garbled(
			"its history of %s leaves something out: it began with %d",
			account.key, expected,
		)
	}

	if older != nil {
		read = read[:len(read)-1]
	}

	return read, nil
}

// blocks puts the wanted transfers into their blocks.
func (p *poll) blocks(e *endpoint, seen map[string]found) ([]chain.Block, error) {
	byHeight := map[uint64]*chain.Block{}

	for _, f := range seen {
		moved, err := p.driver.transfers(f.executed)
		if err != nil {
			return nil, err
		}

		moved = slices.DeleteFunc(moved, func(t chain.Transfer) bool { return !p.wanted[t.To] })
		if len(moved) == 0 || f.block.Height < p.from || f.block.Height > p.to {
			continue
		}

		b := byHeight[f.block.Height]
		if b == nil {
			b = &chain.Block{Ref: f.block.ref(), Parent: f.block.Parent}
			byHeight[f.block.Height] = b
		}

		if b.Hash != f.block.Hash {
			return nil, e.Garbled("block %d changed while it was read", b.Height)
		}

		b.Transfers = append(b.Transfers, moved...)
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

// restMemory remembers what accounts held when their histories were read last. It only saves requests.
type restMemory struct {
	mu   sync.Mutex
	rest map[solanago.PublicKey]rest
}

type rest struct{ amount, height uint64 }

const rememberedRests = 1 << 20

func newRestMemory() *restMemory { return &restMemory{rest: map[solanago.PublicKey]rest{}} }

// holds says that an account held an amount when its history was read up to a height below from.
// What was read already is asked for again because the chain may have forked, and is read again.
func (m *restMemory) holds(key solanago.PublicKey, amount, from uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	r, ok := m.rest[key]

	return ok && r.amount == amount && r.height < from
}

func (m *restMemory) put(key solanago.PublicKey, amount, height uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if len(m.rest) >= rememberedRests {
		clear(m.rest)
	}

	m.rest[key] = rest{amount, height}
}
