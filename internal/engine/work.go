package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/health"
)

// overdueAfter is how long, beyond twice its pace, a kind of work may lack a success in a running engine.
const overdueAfter = time.Minute

// workLog stores the last result of each kind of work. It is safe for concurrent use.
type workLog struct {
	mu      sync.Mutex
	running bool
	entries map[string]workEntry
}

type workEntry struct {
	health.Check
	pace time.Duration
	// more reports that the last step left some work.
	more bool
}

// run marks the engine as running until the returned function is called: meanwhile work must be done in time.
func (l *workLog) run() (end func()) {
	l.set(true)
	return func() { l.set(false) }
}

func (l *workLog) set(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.running = running
}

// done records the outcome of one step of work; more reports that there may be more of it.
func (l *workLog) done(name string, pace time.Duration, at time.Time, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.entries == nil {
		l.entries = map[string]workEntry{}
	}

	entry := l.entries[name]
	entry.Name, entry.pace, entry.more = name, pace, more

	if err == nil {
		entry.DoneAt, entry.Error, entry.FailingSince = at, "", time.Time{}
	} else {
		if entry.Error == "" {
			entry.FailingSince = at
		}

		entry.Error = err.Error()
	}

	l.entries[name] = entry
}

// isRecent reports whether a kind of work was completed less than its pace ago.
func (l *workLog) isRecent(name string, pace time.Duration, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	entry := l.entries[name]
	since := now.Sub(entry.DoneAt)

	return entry.Error == "" && !entry.more && since >= 0 && since < pace
}

// failing reports whether the last step of a kind of work failed.
func (l *workLog) failing(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.entries[name].Error != ""
}

// failures returns the names of the failing checks.
func (l *workLog) failures(now time.Time) (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	for _, entry := range l.entries {
		if c := l.check(entry, now); c.Error != "" {
			names = append(names, c.Name)
		}
	}

	slices.Sort(names)

	return names
}

// checks returns the last results by name. Work that was not done in time has an error.
func (l *workLog) checks(now time.Time) []health.Check {
	l.mu.Lock()
	defer l.mu.Unlock()

	all := make([]health.Check, 0, len(l.entries))

	for _, entry := range l.entries {
		all = append(all, l.check(entry, now))
	}

	slices.SortFunc(all, func(a, b health.Check) int { return cmp.Compare(a.Name, b.Name) })

	return all
}

// check returns the last result of one kind of work. The caller holds l.mu.
func (l *workLog) check(entry workEntry, now time.Time) health.Check {
	c := entry.Check
	if !c.DoneAt.IsZero() {
		c.Age = now.Sub(c.DoneAt)
	}

	if l.running && c.Error == "" && c.Age > 2*entry.pace+overdueAfter {
		c.Error, c.FailingSince = "it was not done in time", c.DoneAt.Add(2*entry.pace)
	}

	return c
}
