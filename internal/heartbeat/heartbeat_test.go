package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/heartbeat"
	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// db is a store of leases; it is down while err is set.
type db struct {
	rows map[string]lease.Lease
	err  error
}

func (d *db) Update(ctx context.Context, f func(ctx context.Context, tx lease.Tx) error) error {
	if d.err != nil {
		return d.err
	}

	before := maps.Clone(d.rows)

	err := f(ctx, d)
	if err != nil {
		d.rows = before
	}

	return err
}

func (d *db) Leases(_ context.Context, names []string) (map[string]lease.Lease, error) {
	found := map[string]lease.Lease{}

	for _, name := range names {
		if l, ok := d.rows[name]; ok {
			found[name] = l
		}
	}

	return found, nil
}

func (d *db) ReadLeases(ctx context.Context, names []string) (map[string]lease.Lease, error) {
	return d.Leases(ctx, names)
}

func (d *db) ReplaceLease(ctx context.Context, _, l lease.Lease) error { return d.PutLease(ctx, l) }

func (d *db) PutLease(_ context.Context, l lease.Lease) error { d.rows[l.Name] = l; return nil }

// service is processes over one store, each with a clock that may be wrong.
type service struct {
	t      *testing.T
	db     *db
	now    time.Time
	ids    int
	fail   map[int][]string // what a process cannot do
	beats  []*heartbeat.Heartbeat
	offset []time.Duration
}

func newService(t *testing.T, processes int) *service {
	t.Helper()

	s := &service{t: t, db: &db{rows: map[string]lease.Lease{}}, now: time.Unix(1e9, 0)}
	s.offset = make([]time.Duration, processes)

	for i := range processes {
		s.beats = append(s.beats, heartbeat.New(heartbeat.Config{
			DB:      s.db,
			Process: fmt.Sprint("p", i),
			Failing: func() []string { return s.fail[i] },
			NewID:   func() string { s.ids++; return fmt.Sprint(s.ids) },
			Now:     func() time.Time { return s.now.Add(s.offset[i]) },
		}))
	}

	return s
}

// pass lets time pass, while the named processes beat every second.
func (s *service) pass(d time.Duration, beating ...int) {
	s.t.Helper()

	for range d / time.Second {
		s.now = s.now.Add(time.Second)

		for _, i := range beating {
			if err := s.beats[i].Beat(s.t.Context()); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// take reports whether a process gets the lease of the work.
func (s *service) take(i int) (lease.Lease, bool) {
	s.t.Helper()

	owner, err := s.beats[i].Owner(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}

	taken, ok, err := leases.Take(s.t.Context(), s.db, "work", owner, s.now)
	if err != nil {
		s.t.Fatal(err)
	}

	return taken, ok
}

// Whatever the clock of its owner or of its observer says, a lease of a process that beats is held, and one of
// a process that stands still is free after a lease's length, and within two.
func TestLeaseIsObserved(t *testing.T) {
	for _, step := range []time.Duration{0, time.Hour, -time.Hour, 24 * time.Hour} {
		for _, wrong := range []int{0, 1} {
			t.Run(fmt.Sprint(step, " at ", wrong), func(t *testing.T) {
				s := newService(t, 2)
				s.pass(20*time.Second, 0, 1)
				s.offset[wrong] = step

				if _, ok := s.take(0); !ok {
					t.Fatal("the first take")
				}

				for range 100 {
					s.pass(time.Second, 0, 1)

					if _, ok := s.take(1); ok {
						t.Fatal("a lease of a process that beats was taken")
					}
				}

				s.offset[wrong] = 0 // the clock is set right
				s.pass(heartbeat.LeaseFor/2, 1)

				if _, ok := s.take(1); ok {
					t.Fatal("taken after half a lease")
				}

				s.pass(heartbeat.LeaseFor*3/2, 1)

				if taken, ok := s.take(1); !ok || taken.Fence != 2 {
					t.Fatalf("after two leases: %+v %v", taken, ok)
				}
			})
		}
	}
}

// One reading of a row after a pause of the observer ends nothing: the owner may have paused with it.
func TestOneLongPauseEndsNoLease(t *testing.T) {
	s := newService(t, 2)
	s.pass(20*time.Second, 0, 1)
	s.take(0)

	s.now = s.now.Add(time.Hour)
	s.pass(time.Second, 1)

	if _, ok := s.take(1); ok {
		t.Error("a lease was taken after one reading")
	}
}

func TestStopFreesAtOnce(t *testing.T) {
	s := newService(t, 2)
	s.pass(10*time.Second, 0, 1)
	s.take(0)

	if err := s.beats[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	if _, ok := s.take(1); !ok {
		t.Error("the lease of a process that stopped is held")
	}
}

// A process that was stopped for long finds its heartbeat lost, begins a session, and holds nothing.
func TestStoppedProcessBeginsAnew(t *testing.T) {
	s := newService(t, 2)
	s.pass(10*time.Second, 0, 1)
	held, _ := s.take(0)
	s.pass(2*heartbeat.LeaseFor, 1)

	if _, ok := s.take(1); !ok {
		t.Fatal("nobody took over")
	}

	s.pass(time.Second, 0)

	if s.beats[0].Holds(held.Owner) {
		t.Error("its owner is of the session that was lost")
	}

	if err := leases.Check(t.Context(), s.db, held); err == nil {
		t.Error("it still writes")
	}

	if _, ok := s.take(0); ok {
		t.Error("it took the lease of a process that beats")
	}
}

// Processes that crash again and again leave as many rows as live at once.
func TestHeartbeatRowsAreUsedAgain(t *testing.T) {
	s := newService(t, 40)

	for i := range 40 {
		s.pass(2*heartbeat.LeaseFor, i, (i+1)%40)
	}

	if len(s.db.rows) > 6 {
		t.Errorf("%d rows of two processes at a time", len(s.db.rows))
	}
}

// What could not be released is released by a later beat: the process lives, so nobody else would free it.
func TestReleaseThatFailedIsRepeated(t *testing.T) {
	s := newService(t, 2)
	s.pass(10*time.Second, 0, 1)
	held, _ := s.take(0)

	s.db.err = errors.New("down")
	if err := s.beats[0].Release(t.Context(), held); err == nil {
		t.Fatal("released while the store is down")
	}

	s.db.err = nil
	s.pass(heartbeat.Pace, 0)

	if _, ok := s.take(1); !ok {
		t.Error("the lease of a turn that ended is held")
	}
}

func TestPeers(t *testing.T) {
	s := newService(t, 3)
	s.offset[1] = time.Hour
	s.pass(12*time.Second, 0, 1, 2)
	s.pass(20*time.Second, 0, 1)

	peers := s.beats[0].Peers()
	if len(peers) != 2 || peers[0].Process != "p1" || peers[1].Process != "p2" {
		t.Fatalf("%+v", peers)
	}

	if ahead := peers[0].Ahead; ahead < time.Hour-2*heartbeat.Pace || ahead > time.Hour+time.Second {
		t.Errorf("a clock one hour ahead is %s ahead", ahead)
	}

	if peers[0].Still > 2*heartbeat.Pace || peers[1].Still < 10*time.Second {
		t.Errorf("still for %s and %s", peers[0].Still, peers[1].Still)
	}

	s.pass(heartbeat.LeaseFor, 0, 1)

	if peers := s.beats[0].Peers(); len(peers) != 1 {
		t.Errorf("a process whose leases are free is reported: %+v", peers)
	}
}

// What a process cannot do is in its heartbeat: the others know it a beat later, and that it is well again.
func TestPeersShowWhatFails(t *testing.T) {
	s := newService(t, 3)
	s.fail = map[int][]string{}
	shown := func() []string {
		for _, peer := range s.beats[1].Peers() {
			if peer.Process == "p0" {
				return peer.Failing
			}
		}

		t.Fatal("there is no such process")

		return nil
	}

	s.pass(2*heartbeat.Pace, 0, 1, 2)

	if got := shown(); got != nil {
		t.Errorf("while it is well: %q", got)
	}

	many := make([]string, 25)
	for i := range many {
		many[i] = fmt.Sprint("check ", i)
	}

	for _, test := range []struct{ fails, want []string }{
		{[]string{"outbox of a", "store"}, []string{"outbox of a", "store"}},
		{many, append(slices.Clone(many[:20]), "and 5 more")},
		{nil, nil},
	} {
		for !s.beats[0].BeatAt().Equal(s.now) { // it has just beaten
			s.pass(time.Second, 0)
		}

		s.fail[0] = test.fails

		// News do not wait for the pace of the heartbeat, only for that of the reader.
		s.pass(heartbeat.NewsPace, 0)
		s.pass(heartbeat.Pace, 1)

		if got := shown(); !slices.Equal(got, test.want) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}

	// A process that stopped fails at nothing.
	s.fail[0] = []string{"store"}
	s.pass(heartbeat.Pace, 0, 1, 2)

	if err := s.beats[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, row := range s.db.rows {
		if row.Owner == "" && row.Note != "" {
			t.Errorf("its row says %q", row.Note)
		}
	}
}
