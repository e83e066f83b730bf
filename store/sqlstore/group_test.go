package sqlstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestGroups checks when a member is appointed leader, and how large its group is, while no time passes.
func TestGroups(t *testing.T) { synctest.Test(t, testGroups) }

func testGroups(t *testing.T) {
	g := &group{store: &sqlStore{dialect: &Dialect{Writers: 2}}}

	var all []*member

	join := func(n int) {
		for range n {
			all = append(all, g.enqueue(nil))
		}
	}
	// led returns the index of the appointed leader that has not received its turn yet.
	led := func() int {
		return slices.IndexFunc(all, func(m *member) bool { return len(m.turn) > 0 })
	}
	leads := func(why string, want int) {
		t.Helper()

		if got := led(); got != want {
			t.Fatalf("%s: %d leads, want %d", why, got, want)
		}
	}
	leaves := func(why string, want int) {
		t.Helper()

		i := led()
		if i < 0 {
			t.Fatalf("%s: nobody leads", why)
		}

		<-all[i].turn

		if members := g.takeGroup(); len(members) != want || members[0] != all[i] {
			t.Fatalf("%s: %d left, want %d and the leader first", why, len(members), want)
		}
	}

	leads("nobody waits", -1)
	join(1)
	leaves("who comes alone", 1)
	join(1)
	leaves("the same beside a group of one", 1)
	join(8)
	leads("both writers are on their way", -1)
	g.finished(1)
	leaves("one is back", 8)
	g.finished(1)
	join(7)
	leads("fewer wait than are on their way", -1)
	join(1)
	leaves("as many wait", 8)
	join(9)
	g.finished(8)
	leaves("more wait than are on their way", 9)
	g.finished(8)
	g.finished(9)
	join(1)
	leads("the first", 27)
	join(7)
	leaves("both writers are free: half", 4)
	leaves("the other half, at once", 4)
	g.finished(4)
	g.finished(4)

	join(3)

	if !g.quit(all[35]) || led() != 35 {
		// The turn of all[35] stays in its channel unread.
		t.Fatal("the leader cannot quit")
	}

	<-all[35].turn
	leads("the next after a leader that quit", 36)

	if !g.quit(all[37]) || g.quit(all[37]) {
		t.Fatal("who waits can quit, once")
	}

	leaves("who is left", 1)

	if g.quit(all[36]) {
		t.Fatal("who is on the way cannot quit")
	}

	g.finished(1)
	join(2*maxGroup + 6)
	leaves("a group has a bound", maxGroup)
	leaves("the other one too", maxGroup)

	if len(g.waiting) != 6 {
		t.Fatalf("%d wait on, want 6", len(g.waiting))
	}
}

// TestPatience has a few wait beside a large group that does not come back.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{store: &sqlStore{dialect: &Dialect{Writers: 2}}, groups: 1, members: 10}
		early := g.enqueue(nil)

		time.Sleep(patience - time.Nanosecond)

		late := g.enqueue(nil)

		if len(early.turn) > 0 {
			t.Fatal("a small group went at once")
		}

		time.Sleep(time.Nanosecond)
		synctest.Wait()

		if len(early.turn) != 1 || len(g.takeGroup()) != 2 {
			t.Fatal("who had waited enough did not go, and the other with it")
		}

		if len(late.turn) > 0 {
			t.Fatal("two lead")
		}

		g.finished(2)
		next := g.enqueue(nil)

		time.Sleep(patience)
		synctest.Wait()

		if len(next.turn) != 1 {
			t.Fatal("the next did not go")
		}
	})
}

// TestQuitInTime ends a context while its transaction waits behind groups on their way.
func TestQuitInTime(t *testing.T) {
	g := &group{store: &sqlStore{dialect: &Dialect{Writers: 1}}, groups: 1, members: 1}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if err := g.commit(ctx, &transaction{}); !errors.Is(err, context.Canceled) || len(g.waiting) > 0 {
		t.Fatal(err, len(g.waiting))
	}
}
