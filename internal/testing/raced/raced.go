// Package raced says whether the race detector watches a test, which makes some ten times as long.
//
// A play of one goroutine, or one that a seed repeats, shows the detector the same again and again. With the detector
// such a test plays its short form, or is skipped. scripts/test.sh runs each package that imports this one a second
// time, without the detector and whole.
package raced

import "testing"

// Skip skips a test under the race detector.
func Skip(t testing.TB) {
	t.Helper()

	if On {
		t.Skip(
			"raced: runs without the race detector, which has nothing to find in it that others do not show",
		)
	}
}

// Fewer returns how many of n plays are enough under the race detector: a fifth. Without it: all.
func Fewer(n int) int {
	if On {
		return max(1, n/5)
	}

	return n
}
