package sqlstore

// This file holds the group commit: transactions that only write, and end at the same time, are
// sent and committed as one. Databases share a good part of a commit's cost, the wait for the disk
// above all. It hardly costs waiting: who comes alone goes alone, and who comes while others are
// being committed goes with the next group.
//
// Each keeps its own fate. When the group fails by the fault of one of its rows, each of its
// transactions is sent by itself and hears its own answer. When the database fails, nobody can say
// what became of the group, and all of them hear that.

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

const (
	// maxGroup bounds how many transactions go together.
	maxGroup = 32
	// patience bounds how long a free writer waits for a group of the size of others: those may be
	// held up, by a row that somebody locks for example.
	patience = 5 * time.Millisecond
)

// group is the queue of transactions that wait to be committed, and what is known of the groups on
// their way, of which there are at most Dialect.Writers. The first goes as soon as anybody waits.
// Beside others, one goes when as many wait as they hold on average, or one has waited for so long:
// groups of like sizes cost the database the least.
type group struct {
	store *Store

	mu      sync.Mutex
	waiting []*member
	leader  *member // was told to lead, and has not taken its group yet
	groups  int     // on their way
	members int     // in those
	watched bool    // hurry will be called
}

// member is a transaction in the queue.
type member struct {
	tx    *transaction
	since time.Time
	told  chan bool // true: lead the next group; false: err is what became of the transaction
	err   error
}

// commit commits a transaction that has not begun, with others or alone. A context that ends before
// its turn takes it out of the queue; what was sent is waited for.
func (g *group) commit(ctx context.Context, tx *transaction) error {
	m := g.join(tx)
	select {
	case lead := <-m.told:
		if !lead {
			return m.err
		}
	case <-ctx.Done():
		if g.quit(m) {
			return ctx.Err()
		}

		<-m.told

		return m.err
	}

	c, err := g.store.open(ctx)
	if err != nil {
		g.quit(m)
		return err
	}

	runtime.Gosched() // who is about to join, joins

	members := g.take()

	life, end := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer end()

	g.store.commitAll(life, c, members)
	g.store.leave(c)
	g.back(len(members))

	for _, other := range members[1:] {
		other.told <- false
	}

	return m.err
}

// join puts a transaction into the queue.
func (g *group) join(tx *transaction) *member {
	m := &member{tx: tx, since: time.Now(), told: make(chan bool, 1)}

	g.mu.Lock()
	defer g.mu.Unlock()

	g.waiting = append(g.waiting, m)
	g.appoint()

	return m
}

// quit takes a member out of the queue, unless it is on its way.
func (g *group) quit(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	i := slices.Index(g.waiting, m)
	if i < 0 {
		return false
	}

	g.waiting = slices.Delete(g.waiting, i, i+1)
	if g.leader == m {
		g.leader = nil
		g.appoint()
	}

	return true
}

// take has the leader leave with those that waited longest, itself the first of them. Writers that
// are free get as many.
func (g *group) take() (members []*member) {
	g.mu.Lock()
	defer g.mu.Unlock()

	free := g.store.dialect.Writers - g.groups
	n := min((len(g.waiting)+free-1)/free, maxGroup)
	members = slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.leader = nil
	g.groups++
	g.members += n
	g.appoint()

	return members
}

// back is told that a group of n is no longer on its way.
func (g *group) back(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.groups--
	g.members -= n
	g.appoint()
}

// appoint tells the member that waits longest to lead, when it is time for a group to go. The
// caller holds the lock.
func (g *group) appoint() {
	if len(g.waiting) == 0 || g.leader != nil || g.groups == g.store.dialect.Writers {
		return
	}

	first := g.waiting[0]
	if waited := time.Since(first.since); len(g.waiting)*g.groups < g.members && waited < patience {
		if !g.watched {
			g.watched = true
			time.AfterFunc(patience-waited, g.hurry)
		}

		return
	}

	g.leader = first
	first.told <- true
}

// hurry looks again whether it is time.
func (g *group) hurry() {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.watched = false
	g.appoint()
}

// commitAll commits the transactions of a group and leaves each one's error in its member.
func (s *Store) commitAll(ctx context.Context, c *session, members []*member) {
	if len(members) > 1 {
		_, err := s.send(ctx, c, s.merged(members))
		if err == nil {
			return
		}

		c.rollBack()

		err = s.explain(ctx, err, "commit")
		if ctx.Err() != nil || errors.Is(err, fault.Unavailable) || c.broken {
			for _, m := range members {
				m.err = err
			}

			return
		}
	}

	for _, m := range members {
		m.tx.session = c
		if m.err = m.tx.deliver(ctx, true); m.err != nil {
			c.rollBack()
		}

		m.tx.session, m.tx.begun = nil, false
	}
}

// merged is the batch that does what all the members do: rows that they insert into one table go
// together, everything else follows in the order of the members. Inserts of new rows either do not
// touch each other, or fail.
func (s *Store) merged(members []*member) Batch {
	b := Batch{Begin: true, Commit: true}

	var (
		others []*transaction
		order  []*insertion
	)

	byTable := map[*into]*insertion{}
	add := func(t *into, rows ...[]any) {
		all := byTable[t]
		if all == nil {
			all = &insertion{into: t}
			byTable[t] = all
			order = append(order, all)
		}

		all.rows = append(all.rows, rows...)
	}

	for _, m := range members {
		if !m.tx.inserts() {
			others = append(others, m.tx)
			continue
		}

		for _, w := range m.tx.writes {
			add(w.fresh, w.values)

			for _, i := range w.also {
				add(i.into, i.rows...)
			}
		}
	}

	for _, i := range order {
		s.insert(&b, *i)
	}

	for _, tx := range others {
		tx.statements(&b)
	}

	return b
}

// inserts reports whether the transaction writes nothing but new rows.
func (tx *transaction) inserts() bool {
	return !slices.ContainsFunc(tx.writes, func(w *write) bool { return w.fresh == nil })
}

// insertion is rows for one table.
type insertion struct {
	into *into
	rows [][]any
}

// into is how rows come into a table: "INSERT INTO … VALUES " and "(?, …)", once for each table.
type into struct{ head, marks string }

// insert adds statements with up to Dialect.Rows rows each. Their numbers of rows are powers of
// two, so that few different statements are ever prepared.
func (s *Store) insert(b *Batch, i insertion) {
	for rows := i.rows; len(rows) > 0; {
		n := 1
		for n*2 <= min(len(rows), s.dialect.Rows) {
			n *= 2
		}

		args := rows[0]
		if n > 1 {
			args = slices.Concat(rows[:n]...)
		}

		b.add(s.rowsText(i.into, n), s.dialect.args(args))
		rows = rows[n:]
	}
}

// rowsText is the statement that inserts n rows, made once.
func (s *Store) rowsText(t *into, n int) string {
	type key struct {
		*into
		n int
	}
	if text, ok := s.texts.Load(key{t, n}); ok {
		return text.(string)
	}

	text := s.dialect.text(t.head + t.marks + strings.Repeat(", "+t.marks, n-1))
	s.texts.Store(key{t, n}, text)

	return text
}
