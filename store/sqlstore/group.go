package sqlstore

// This file holds the group commit: transactions that only write, and end at the same time, are sent and
// committed as one. They then share much of a commit's cost, above all the wait for the disk. It hardly adds
// latency: a lone transaction is committed at once, and one that ends while others are being committed joins
// the next group.
//
// Each transaction has its own result. When a row of the group is refused, each transaction is sent again by
// itself and gets its own error. When the database fails, the outcome of the group is unknown, and all of its
// transactions get that error.

import (
	"cmp"
	"context"
	"errors"
	"maps"
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
	// patience bounds how long a free writer waits for a group of the size of others: the others may be
	// delayed, for example by a locked row.
	patience = 5 * time.Millisecond
	// groupWait bounds how long a group waits for the competitor of one member's claim. After that each
	// member is sent by itself.
	groupWait = 50 * time.Millisecond
)

// group is the queue of transactions that wait to be committed, and the count of groups in flight, at most
// Dialect.Writers. The first group goes as soon as one transaction waits. While others are in flight, the
// next one goes when it has their average size, or when patience has run out: groups of equal size cost the
// database the least.
type group struct {
	store *sqlStore

	mu      sync.Mutex
	waiting []*member
	leader  *member // appointed, and has not taken its group yet
	groups  int     // in flight
	members int     // transactions in those groups
	watched bool    // a timer will call retryAppoint
}

// member is a transaction in the queue.
type member struct {
	tx    *transaction
	since time.Time
	turn  chan bool // true: lead the next group; false: committed by another, with the result in err
	err   error
}

// commit commits a transaction that has not begun, with others or alone. A context that ends before its turn
// takes it out of the queue. Once it is sent, commit waits for it.
func (g *group) commit(ctx context.Context, tx *transaction) error {
	m := g.enqueue(tx)
	select {
	case lead := <-m.turn:
		if !lead {
			return m.err
		}
	case <-ctx.Done():
		if g.quit(m) {
			return ctx.Err()
		}

		<-m.turn

		return m.err
	}

	c, err := g.store.acquireSession(ctx)
	if err != nil {
		g.quit(m)
		return err
	}

	runtime.Gosched() // lets transactions that are about to end join the group

	members := g.takeGroup()

	life, end := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer end()

	g.store.commitAll(life, c, members)
	g.store.releaseSession(c)
	g.finished(len(members))

	for _, other := range members[1:] {
		other.turn <- false
	}

	return m.err
}

// enqueue appends a transaction to the queue.
func (g *group) enqueue(tx *transaction) *member {
	m := &member{tx: tx, since: time.Now(), turn: make(chan bool, 1)}

	g.mu.Lock()
	defer g.mu.Unlock()

	g.waiting = append(g.waiting, m)
	g.appointLeader()

	return m
}

// quit removes a member from the queue, and reports false when its group is already in flight.
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
		g.appointLeader()
	}

	return true
}

// takeGroup removes the next group from the queue, longest waiting first, and counts it as in flight. Each
// free writer gets an equal share.
func (g *group) takeGroup() (members []*member) {
	g.mu.Lock()
	defer g.mu.Unlock()

	free := g.store.dialect.Writers - g.groups
	n := min((len(g.waiting)+free-1)/free, maxGroup)
	members = slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.leader = nil
	g.groups++
	g.members += n
	g.appointLeader()

	return members
}

// finished counts out a group of n transactions that is no longer in flight.
func (g *group) finished(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.groups--
	g.members -= n
	g.appointLeader()
}

// appointLeader appoints the member that waits longest, when the next group is due. The caller holds
// g.mu.
func (g *group) appointLeader() {
	if len(g.waiting) == 0 || g.leader != nil || g.groups == g.store.dialect.Writers {
		return
	}

	first := g.waiting[0]
	if waited := time.Since(first.since); len(g.waiting)*g.groups < g.members && waited < patience {
		if !g.watched {
			g.watched = true
			time.AfterFunc(patience-waited, g.retryAppoint)
		}

		return
	}

	g.leader = first
	first.turn <- true
}

// retryAppoint appoints a leader when patience has run out.
func (g *group) retryAppoint() {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.watched = false
	g.appointLeader()
}

// commitAll commits the transactions of a group and sets each member's err.
func (s *sqlStore) commitAll(ctx context.Context, c *session, members []*member) {
	if len(members) > 1 {
		_, err := s.send(ctx, c, s.merged(members))
		if err == nil {
			return
		}

		c.rollBack()

		err = s.explain(ctx, err, "commit")
		c.retire(err)

		down := errors.Is(err, fault.Unavailable) && fault.Code(err) != rowLocked

		if ctx.Err() != nil || down || c.broken {
			for _, m := range members {
				m.err = err
			}

			return
		}
	}

	// Transactions that may wait for a competing claim come last.
	alone := slices.Clone(members)
	slices.SortStableFunc(
		alone,
		func(a, b *member) int { return cmp.Compare(a.tx.claimWait(), b.tx.claimWait()) },
	)

	for _, m := range alone {
		m.tx.session = c
		if m.err = m.tx.sendBuffered(ctx, true); m.err != nil {
			c.rollBack()
			c.retire(m.err)
		}

		m.tx.session, m.tx.begun = nil, false
	}
}

// merged returns one batch for all members. Rows inserted into one table go together; everything else follows
// in the members' order. Inserts of new rows are independent of each other, or fail.
func (s *sqlStore) merged(members []*member) Batch {
	b := Batch{Begin: true, Commit: true}

	var (
		others []*transaction
		order  []*insertion
	)

	byTable := map[*into]*insertion{}
	add := func(t *into, rows ...[]any) *insertion {
		all := byTable[t]
		if all == nil {
			all = &insertion{into: t}
			byTable[t] = all
			order = append(order, all)
		}

		all.rows = append(all.rows, rows...)

		return all
	}

	for _, m := range members {
		if !m.tx.inserts() {
			others = append(others, m.tx)
			continue
		}

		for _, w := range m.tx.writes {
			add(w.fresh, w.values).wait = w.wait

			for _, i := range w.also {
				add(i.into, i.rows...)
			}
		}
	}

	b.grow(2 * len(order)) // a number of rows that is not a power of two takes more than one statement

	for _, i := range order {
		from := len(b.Texts)
		s.insert(&b, *i)
		s.bound(&b, from, min(i.wait, groupWait))
	}

	for _, tx := range others {
		tx.statements(&b)
	}

	premises := map[premise]func(){}
	for _, m := range members {
		maps.Copy(premises, m.tx.premises)
	}

	s.validate(&b, premises)

	return b
}

// inserts reports whether the transaction writes only new rows.
func (tx *transaction) inserts() bool {
	return !slices.ContainsFunc(tx.writes, func(w *write) bool { return w.fresh == nil })
}

// insertion holds rows to insert into one table.
type insertion struct {
	into *into
	rows [][]any
	wait time.Duration // as in write
}

// into holds the two parts of a table's insert statement: "INSERT INTO … VALUES " and "(?, …)".
type into struct{ head, marks string }

// insert adds statements with up to Dialect.Rows rows each. Their numbers of rows are powers of two, so that
// few different statements are ever prepared.
func (s *sqlStore) insert(b *Batch, i insertion) {
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

// rowsText returns the statement that inserts n rows, cached.
func (s *sqlStore) rowsText(t *into, n int) string {
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
