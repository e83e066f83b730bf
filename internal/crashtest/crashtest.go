// Package crashtest ends a process of a test in the middle of what it does: at its n-th effect on the
// world outside, which is an update of its store or a call of its node, before it happened or
// after.
//
// A process in these tests is what one engine does over a store and a network that outlive it. A
// dead one gets no answer any more, and another takes its place over what is stored.
package crashtest

import (
	"errors"
	"sync"
)

// ErrKilled is what every effect of a dead process answers.
var ErrKilled = errors.New("the process was killed")

// Process counts the effects of one process at a time and ends it at one of them. The zero value
// lives for ever and counts nothing. It is safe for concurrent use.
type Process struct {
	// End ends the process in earnest: it does not return. Defaults to having every effect answer ErrKilled.
	End func()

	mu      sync.Mutex
	counts  bool
	effects []string
	at      int
	after   bool
	dead    bool
}

// Arm counts from here on, and has the process die at the effect with a number, from 1, before it
// or after it happened. At 0 it only counts.
func (p *Process) Arm(at int, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.counts, p.effects, p.at, p.after = true, nil, at, after
}

// Disarm stops counting and returns what was counted since Arm, each by its name.
func (p *Process) Disarm() []string {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.counts = false

	return p.effects
}

// Aside does something that is not counted, and cannot be died of.
func (p *Process) Aside(do func()) {
	before := p.count(false)
	defer p.count(before)

	do()
}

func (p *Process) count(on bool) (before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	before, p.counts = p.counts, on

	return before
}

// Dead reports whether the process died.
func (p *Process) Dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.dead
}

// Next puts another process in the place of the dead one.
func (p *Process) Next() {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.dead = false
}

// Do has an effect, which has a name for people. A process that is to die after it hears nothing of
// what came of it.
func (p *Process) Do(name string, effect func() error) error {
	alive, last := p.begin(name)
	if !alive {
		return p.end()
	}

	err := effect()

	if last {
		return p.end()
	}

	return err
}

// Call counts an effect that the caller has when it returns nil. A process that is to die after it
// hears what came of it, and dies before its next.
func (p *Process) Call(name string) error {
	if alive, _ := p.begin(name); !alive {
		return p.end()
	}

	return nil
}

// begin counts an effect. last says that the process dies after it.
func (p *Process) begin(name string) (alive, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.dead || !p.counts {
		return !p.dead, false
	}

	p.effects = append(p.effects, name)
	if len(p.effects) != p.at {
		return true, false
	}

	p.dead = true

	return p.after, p.after
}

func (p *Process) end() error {
	if p.End != nil {
		p.End()
	}

	return ErrKilled
}
