package follow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/health"
)

// What cannot be read is stored as a scan.Range of its own, in the transaction that moves the cursor past it. So
// it holds up nothing, outlives the process, and is read again until it can be.

const (
	firstRetry = 2 * time.Second
	lastRetry  = 2 * time.Minute
)

// withUnread returns the write that moves the cursor and stores what a batch could not read.
func (f *Follower) withUnread(
	advance func(context.Context, scan.Tx) (scan.Cursor, error),
	b *Batch,
) func(context.Context, scan.Tx) (scan.Cursor, error) {
	unread := slices.Clone(b.unread)
	to := map[chain.Address]uint64{}

	for _, block := range b.Blocks {
		for _, u := range block.Unread {
			u.Height, u.Address = block.Height, ""
			unread = append(unread, u)
		}
	}

	if len(unread) == 0 {
		return advance
	}

	f.polling.noteUnread(unread, f.Now())

	for _, u := range unread {
		to[u.Address] = u.Height // of a block
		if u.Address != "" && len(b.Blocks) > 0 {
			to[u.Address] = b.Blocks[len(b.Blocks)-1].Height
		}
	}

	return func(ctx context.Context, tx scan.Tx) (scan.Cursor, error) {
		cursor, err := advance(ctx, tx)
		if err != nil {
			return cursor, err
		}

		for _, u := range unread {
			if err := f.putUnread(ctx, tx, u, max(u.Height, to[u.Address])); err != nil {
				return cursor, err
			}
		}

		return cursor, nil
	}
}

// putUnread stores a range for something unread, or prolongs the address's range of an earlier round.
func (f *Follower) putUnread(ctx context.Context, tx scan.Tx, u chain.Unread, to uint64) error {
	id := "unread-" + f.network.Slug + "-" + string(u.Address)

	var addresses []chain.Address
	if u.Address != "" {
		addresses = []chain.Address{u.Address}
	} else {
		id += fmt.Sprint(u.Height)
	}

	ranges, err := tx.Ranges(ctx, f.network.Slug, maxRanges)
	if err != nil {
		return err
	}

	for _, old := range ranges {
		if old.ID == id {
			old.Next, old.To = min(old.Next, u.Height), max(old.To, to)
			return tx.PutRange(ctx, &old)
		}
	}

	return tx.PutRange(ctx, &scan.Range{
		ID:        id,
		Network:   f.network.Slug,
		Addresses: addresses,
		Next:      u.Height,
		To:        to,
		CreatedAt: f.Now(),
	})
}

// noteUnread adds what cannot be read to the health report; what is merely still to be read is left out.
func (p *polling) noteUnread(unread []chain.Unread, now time.Time) {
	for _, u := range unread {
		if u.Why == "" {
			continue
		}

		key := string(u.Address) + "/" + u.TxHash

		since := now
		if known, ok := p.unread[key]; ok {
			since = known.Since
		}

		p.unread[key] = health.Unread{
			Address: string(u.Address),
			TxHash:  u.TxHash,
			Height:  u.Height,
			Error:   u.Why,
			Since:   since,
		}
	}
}

// isUnread reports whether the health report names something of an address.
func (p *polling) isUnread(address chain.Address) bool {
	for _, u := range p.unread {
		if u.Address == string(address) {
			return true
		}
	}

	return false
}

// clearUnread takes out of the health report what was read after all, within a range of heights.
func (p *polling) clearUnread(addresses []chain.Address, from, to uint64) {
	for key, u := range p.unread {
		ours := len(addresses) == 0 && u.Address == "" ||
			slices.Contains(addresses, chain.Address(u.Address))
		if ours && u.Height >= from && u.Height <= to {
			delete(p.unread, key)
		}
	}
}

// maxUnreadShown bounds the health report.
const maxUnreadShown = 100

func (p *polling) unreadReport(now time.Time) []health.Unread {
	report := p.waiting(now)
	for _, u := range p.unread {
		report = append(report, u)
	}

	slices.SortFunc(report, func(a, b health.Unread) int {
		return cmp.Or(cmp.Compare(a.Height, b.Height), cmp.Compare(a.Address, b.Address))
	})

	return report[:min(len(report), maxUnreadShown)]
}

// putOff lets a range wait before it is tried again, longer each time.
func (p *polling) putOff(id string, now time.Time) {
	wait := min(max(firstRetry, 2*p.tries[id].wait), lastRetry)
	p.tries[id] = attempt{now.Add(wait), wait}
}
