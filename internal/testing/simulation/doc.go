// Package simulation runs the whole library in one process under a seed: several engines with clocks of
// their own over one store and simulated networks, with payers, merchants, webhook receivers and faults.
//
// A Plan is a seed and a list of operations. Everything that is drawn at random comes from the seed, and one
// goroutine does everything, so a plan that fails fails again. Run plays a plan, Shrink makes a failing one
// shorter. The oracle (oracle*.go) follows the canonical chain and the merchants' acts by itself, and states
// after every operation what the library got wrong. It shares no code with the library.
//
// The package is for tests and for make simulate; nothing imports it.
//
// It is one package because plan, run and oracle share one account of what was done.
package simulation
