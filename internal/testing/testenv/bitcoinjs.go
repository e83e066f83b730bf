//go:build unix

// This file runs bitcoinjs, the second opinion on Bitcoin.

package testenv

import "testing"

// Bitcoinjs runs a script of internal/testing/testenv/bitcoinjs with the pinned bitcoinjs-lib: request goes in as
// JSON, and what it writes is decoded into answer.
func Bitcoinjs(t testing.TB, script string, request, answer any) {
	t.Helper()
	skipShort(t, "Node and bitcoinjs")

	if err := runScript("bitcoinjs", script, request, answer); err != nil {
		t.Fatalf("testenv: %s: %v", script, err)
	}
}
