package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// round holds the reads and writes of one beat.
type round struct {
	*Heartbeat
	now     time.Time
	note    string
	session string
	row     string
	seen    map[string]reading
}

// errLost means that another process has our heartbeat, or that we have none yet.
var errLost = errors.New("the heartbeat is lost")

// readAll reads the rows from the first to the first missing one. It reads the rows of the last beat and one
// more in one query, and then each further row.
func (r *round) readAll(ctx context.Context, tx lease.Tx) error {
	if r.session == "" {
		return errLost
	}

	held, found := false, true

	for n, some := 1, len(r.Heartbeat.seen)+1; found; n, some = n+some, 1 {
		names := make([]string, some)
		for i := range names {
			names[i] = leases.HeartbeatName(n + i)
		}

		rows, err := tx.Leases(ctx, names)
		if err != nil {
			return err
		}

		for i := 0; i < some && found; i++ {
			var row lease.Lease

			row, found = rows[names[i]]
			if err := r.read(ctx, tx, names[i], row, found); err != nil {
				return err
			}

			held = held || names[i] == r.row
		}
	}

	if !held {
		return errLost
	}

	return nil
}

// read beats in our row, or in the first free one if we have none yet. It observes rows of other processes.
func (r *round) read(ctx context.Context, tx lease.Tx, name string, row lease.Lease, found bool) (err error) {
	if name == r.row && row.Owner != r.session {
		return errLost
	}

	if r.row == "" && row.Owner == "" {
		r.row = name
	}

	if name == r.row {
		row = lease.Lease{
			Name:      name,
			Owner:     r.session,
			Fence:     row.Fence + 1,
			UpdatedAt: r.now,
			Note:      r.note,
		}
		err = tx.PutLease(ctx, row)
	} else if found {
		row, err = r.observe(ctx, tx, row)
	}

	if err == nil && found {
		r.seen[name] = reading{row: row, at: r.now, still: r.still(row)}
	}

	return err
}

// observe ends another process's heartbeat that has stood still for LeaseFor.
func (r *round) observe(ctx context.Context, tx lease.Tx, row lease.Lease) (lease.Lease, error) {
	if row.Owner == "" || r.still(row) < LeaseFor {
		return row, nil
	}

	row.Owner, row.Note = "", ""

	return row, tx.PutLease(ctx, row)
}

// still returns how long a row has stood still, this reading included.
func (r *round) still(row lease.Lease) time.Duration {
	before, ok := r.Heartbeat.seen[row.Name]
	if !ok || before.row.Owner != row.Owner || before.row.Fence != row.Fence {
		return 0
	}

	return before.still + min(max(r.now.Sub(before.at), 0), longestReading)
}

// noteNames is the largest number of names in a note.
const noteNames = 20

// noteOf returns names as the note of a heartbeat, one per line; names beyond noteNames are only counted.
func noteOf(names []string) string {
	if more := len(names) - noteNames; more > 0 {
		names = append(slices.Clone(names[:noteNames]), fmt.Sprintf("and %d more", more))
	}

	return strings.Join(names, "\n")
}

// namesIn returns the names of a note.
func namesIn(note string) []string {
	if note == "" {
		return nil
	}

	return strings.Split(note, "\n")
}

// sessionParts separates a session's id from its process's name.
const sessionParts = " "

// processOf returns the name of the process in a session.
func processOf(session string) string {
	_, process, _ := strings.Cut(session, sessionParts)
	return process
}
