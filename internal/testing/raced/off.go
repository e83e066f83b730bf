//go:build !race

package raced

// On reports whether the race detector watches this program.
const On = false
