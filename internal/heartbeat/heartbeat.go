// Package heartbeat shows the other processes in one row that a process is alive, and finds processes that no
// longer beat. Package lease explains what a heartbeat means for leases.
//
// No process trusts another one's clock. At each beat, a process reads the rows of all others. It adds up how
// long each stood still between its own readings. A process that stood still for a lease's length loses its
// heartbeat, and its leases with it.
package heartbeat

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// LeaseFor is how long a heartbeat may stand still before its process loses its leases.
const LeaseFor = 30 * time.Second

// Pace is how often a process beats.
const Pace = LeaseFor / 6

// longestReading is the longest interval between two readings that counts. So a step of the observer's clock
// never ends a lease alone.
const longestReading = LeaseFor / 2

// Config configures a Heartbeat. DB and Now are required.
type Config struct {
	DB leases.DB

	// Process is the process's name in the result of Peers.
	Process string

	// Failing returns the names of the work that the process cannot do, for the others to report; may be nil.
	Failing func() []string

	// NewID returns a unique id without "#". Defaults to crypto/rand.Text.
	NewID func() string

	// Now returns the time. Only differences between its results matter.
	Now func() time.Time
}

// Heartbeat is a process's heartbeat, and its observations of others. It is safe for concurrent use.
type Heartbeat struct {
	config Config

	mu      sync.Mutex
	session string
	row     string // the name of the heartbeat row; empty without one
	beatAt  time.Time
	note    string             // of the last beat
	seen    map[string]reading // by name of the heartbeat row
	// abandoned are leases of ended turns that could not be released.
	abandoned []lease.Lease
}

// reading is the last reading of a heartbeat row.
type reading struct {
	row   lease.Lease
	at    time.Time
	still time.Duration
}

// Peer is another process's heartbeat.
type Peer struct {
	// Process names the process.
	Process string
	// Still is how long this process has seen its heartbeat stand still.
	Still time.Duration
	// Ahead is how far its clock was ahead of this process's when its row was read, accurate to a few
	// seconds.
	Ahead time.Duration
	// Failing are the names of the work that it could not do at its last beat.
	Failing []string
}

// New returns a Heartbeat that has not started.
func New(c Config) *Heartbeat {
	if c.NewID == nil {
		c.NewID = rand.Text
	}

	if c.Failing == nil {
		c.Failing = func() []string { return nil }
	}

	return &Heartbeat{config: c}
}

// Over returns a view of an update function with a wider transaction.
func Over[T lease.Tx](
	update func(ctx context.Context, f func(ctx context.Context, tx T) error) error,
) leases.DB {
	return over[T](update)
}

type over[T lease.Tx] func(ctx context.Context, f func(ctx context.Context, tx T) error) error

func (o over[T]) Update(ctx context.Context, f func(ctx context.Context, tx lease.Tx) error) error {
	return o(ctx, func(ctx context.Context, tx T) error { return f(ctx, tx) })
}

// Owner beats if it is time, and returns the owner of a new turn of work.
func (h *Heartbeat) Owner(ctx context.Context) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if err := h.beatAndRelease(ctx); err != nil {
		return "", err
	}

	return leases.Owner(h.row, h.session, h.config.NewID()), nil
}

// Holds reports whether an owner belongs to this process's present session.
func (h *Heartbeat) Holds(owner string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	return h.row != "" && strings.HasPrefix(owner, leases.Owner(h.row, h.session, ""))
}

// Beat beats if it is time, and retries releases that failed.
func (h *Heartbeat) Beat(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()

	return h.beatAndRelease(ctx)
}

func (h *Heartbeat) beatAndRelease(ctx context.Context) error {
	if err := h.beatIfDue(ctx); err != nil {
		return err
	}

	if len(h.abandoned) == 0 {
		return nil
	}

	if err := h.release(ctx, h.abandoned...); err != nil {
		return err
	}

	h.abandoned = nil

	return nil
}

// Abandon frees, at the next beats, the lease that a turn may have taken in a transaction whose outcome is
// unknown.
func (h *Heartbeat) Abandon(name, owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.abandoned = append(h.abandoned, lease.Lease{Name: name, Owner: owner})
}

// Take takes the leases of some names for a new turn of work, and returns by name those that no other turn
// holds. The owner is the turn, not the process: two turns of one process exclude each other too.
func (h *Heartbeat) Take(ctx context.Context, names ...string) (taken []lease.Lease, err error) {
	owner, err := h.Owner(ctx)
	if err != nil {
		return nil, err
	}

	err = h.config.DB.Update(ctx, func(ctx context.Context, tx lease.Tx) (err error) {
		taken, err = leases.TakeAll(ctx, tx, names, owner, h.config.Now())
		return err
	})
	if err != nil {
		for _, name := range names {
			h.Abandon(name, owner)
		}

		return nil, fmt.Errorf("taking the leases of a turn: %w", err)
	}

	return taken, nil
}

// Release frees the leases of an ended turn. Later beats repeat it if it fails.
func (h *Heartbeat) Release(ctx context.Context, held ...lease.Lease) error {
	if len(held) == 0 {
		return nil
	}

	// The leases of a turn are released even if it ends because its process stops.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()

	err := h.release(ctx, held...)
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()

		h.abandoned = append(h.abandoned, held...)
	}

	return err
}

// releaseLimit bounds the release of a turn's leases.
const releaseLimit = 5 * time.Second

func (h *Heartbeat) release(ctx context.Context, held ...lease.Lease) error {
	err := h.config.DB.Update(ctx, func(ctx context.Context, tx lease.Tx) error {
		return leases.Release(ctx, tx, held...)
	})
	if err != nil {
		return fmt.Errorf("releasing the lease of %s: %w", held[0].Name, err)
	}

	return nil
}

// Stop gives up the heartbeat, and with it every lease of the process.
func (h *Heartbeat) Stop(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()

	row, session := h.row, h.session
	if row == "" {
		return nil
	}

	err := h.config.DB.Update(ctx, func(ctx context.Context, tx lease.Tx) error {
		rows, err := tx.Leases(ctx, []string{row})
		if err != nil {
			return err
		}

		beat, ok := rows[row]
		if !ok || beat.Owner != session {
			return nil
		}

		beat.Owner, beat.Note = "", ""

		return tx.PutLease(ctx, beat)
	})
	if err != nil {
		return fmt.Errorf("giving the heartbeat up: %w", err)
	}

	h.row, h.session, h.beatAt = "", "", time.Time{}

	return nil
}

// BeatAt returns when the process last beat; zero before its first beat.
func (h *Heartbeat) BeatAt() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()

	return h.beatAt
}

// Peers returns the other processes whose heartbeats existed at the last beat.
func (h *Heartbeat) Peers() []Peer {
	h.mu.Lock()
	defer h.mu.Unlock()

	var peers []Peer

	for name, r := range h.seen {
		if name == h.row || r.row.Owner == "" {
			continue
		}

		peers = append(peers, Peer{
			Process: processOf(r.row.Owner),
			Still:   r.still,
			Ahead:   r.row.UpdatedAt.Sub(r.at),
			Failing: namesIn(r.row.Note),
		})
	}

	slices.SortFunc(peers, func(a, b Peer) int { return strings.Compare(a.Process, b.Process) })

	return peers
}

// NewsPace is how often a process beats while the list of its failing work changes.
const NewsPace = time.Second

// beatIfDue beats when Pace is over, sooner if there is news for the others, and when the clock was set back.
func (h *Heartbeat) beatIfDue(ctx context.Context) error {
	now, note, pace := h.config.Now(), noteOf(h.config.Failing()), Pace
	if note != h.note {
		pace = NewsPace
	}

	if since := now.Sub(h.beatAt); h.row != "" && since >= 0 && since < pace {
		return nil
	}

	if err := h.beat(ctx, now, note); err != nil {
		return fmt.Errorf("writing the heartbeat: %w", err)
	}

	return nil
}

// beat reads the heartbeats in the order of their numbers, moves ours, and ends those that stood still. A
// process that has none, or lost it, takes the first free one.
func (h *Heartbeat) beat(ctx context.Context, now time.Time, note string) error {
	var r round

	fresh := h.config.NewID() + sessionParts + strings.ReplaceAll(h.config.Process, "#", "_")

	err := h.config.DB.Update(ctx, func(ctx context.Context, tx lease.Tx) error {
		r = round{
			Heartbeat: h,
			now:       now,
			note:      note,
			session:   h.session,
			row:       h.row,
			seen:      map[string]reading{},
		}

		// Only the first beat that finds our row lost begins a session: then earlier rows may be free.
		if err := r.readAll(ctx, tx); !errors.Is(err, errLost) {
			return err
		}

		r.session, r.row, r.seen = fresh, "", map[string]reading{}

		return r.readAll(ctx, tx)
	})
	if err != nil {
		return err
	}

	h.session, h.row, h.seen, h.beatAt, h.note = r.session, r.row, r.seen, now, note

	return nil
}
