// Package crashtest crashes the process under test at its n-th external effect, before or after it. An
// effect is an update of the store or a call of a node.
//
// A process in these tests is one engine over a store and a network that outlive it. After the crash all
// its effects fail, and another process continues from what is stored.
package crashtest

import (
	"errors"
	"sync"
)

// ErrKilled is returned by every effect of a killed process.
var ErrKilled = errors.New("the process was killed")

// Process counts the effects of one process at a time and kills it at one of them. The zero value
// counts nothing and is never killed. It is safe for concurrent use.
type Process struct {
	// End exits the operating system's process and does not return. Defaults to every effect returning
	// ErrKilled.
	End func()

	mu      sync.Mutex
	counts  bool
	effects []string
	at      int
	after   bool
	dead    bool
}

// Arm starts counting, and kills the process at effect number at (from 1), before or after it. At 0 it
// only counts.
func (p *Process) Arm(at int, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.counts, p.effects, p.at, p.after = true, nil, at, after
}

// Disarm stops counting and returns the names of the effects since Arm.
func (p *Process) Disarm() []string {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.counts = false

	return p.effects
}

// Aside calls do without counting its effects.
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

// Dead reports whether the process was killed.
func (p *Process) Dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.dead
}

// Next starts another process in place of the killed one.
func (p *Process) Next() {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.dead = false
}

// Do runs an effect and counts it under a name. A process killed after the effect gets ErrKilled instead
// of its result.
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

// Call counts an effect that the caller runs if Call returns nil. A process killed after it gets its
// result, and fails at its next effect.
func (p *Process) Call(name string) error {
	if alive, _ := p.begin(name); !alive {
		return p.end()
	}

	return nil
}

// begin counts an effect. last reports that the process is killed after it.
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
