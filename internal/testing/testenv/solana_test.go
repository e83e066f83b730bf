//go:build unix

package testenv

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// fresh is an address without history: any 32 bytes are one.
func fresh(n byte) string {
	const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	return strings.Repeat(string(alphabet[10+n]), 43)
}

func lamports(t *testing.T, n *SolanaNode, address, commitment string) uint64 {
	t.Helper()

	var answer struct{ Value uint64 }
	if err := n.Call(
		&answer, "getBalance", address, map[string]string{"commitment": commitment},
	); err != nil {
		t.Fatal(err)
	}

	return answer.Value
}

func height(t *testing.T, n *SolanaNode, commitment string) (height, slot uint64) {
	t.Helper()

	for method, into := range map[string]*uint64{"getBlockHeight": &height, "getSlot": &slot} {
		if err := n.Call(into, method, map[string]string{"commitment": commitment}); err != nil {
			t.Fatal(err)
		}
	}

	return height, slot
}

func do(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// TestSolanaCommitments follows coin from the open bank to finality, and takes it back with a fork.
func TestSolanaCommitments(t *testing.T) {
	n := Solana(t, SolanaOptions{Finality: 2})
	do(t, n.Mine(3))

	one, two := fresh(1), fresh(2)
	want := func(what, address string, processed, confirmed, finalized uint64) {
		t.Helper()

		for commitment, want := range map[string]uint64{
			"processed": processed,
			"confirmed": confirmed,
			"finalized": finalized,
		} {
			if got := lamports(t, n, address, commitment); got != want {
				t.Errorf("%s: %d lamports at %s, want %d", what, got, commitment, want)
			}
		}
	}

	do(t, n.Airdrop(one, 5_000_000))
	want("in the open bank", one, 5_000_000, 0, 0)
	do(t, n.Mine(1))
	want("in a block", one, 5_000_000, 5_000_000, 0)
	do(t, n.Mine(2))
	want("two blocks later", one, 5_000_000, 5_000_000, 5_000_000)

	do(t, n.Airdrop(two, 7_000_000))
	do(t, n.Mine(1))

	var history []struct{ Signature string }
	do(t, n.Call(&history, "getSignaturesForAddress", two, map[string]string{"commitment": "confirmed"}))

	if len(history) != 1 {
		t.Fatalf("history %+v", history)
	}

	before, slot := height(t, n, "confirmed")
	do(t, n.Fork(1))
	want("after a fork without it", two, 0, 0, 0)

	after, slotAfter := height(t, n, "confirmed")
	if after != before+1 || slotAfter <= slot {
		t.Errorf("a fork of one block led from height %d, slot %d to %d, %d", before, slot, after, slotAfter)
	}

	wantCode(t, n, "the slot of a block that left the chain", -32004, "getBlock", slot, confirmed)

	do(t, n.Airdrop(two, 9_000_000))
	do(t, n.Mine(1))
	do(t, n.Call(&history, "getSignaturesForAddress", two, map[string]string{"commitment": "confirmed"}))
	do(t, n.Fork(1, history[0].Signature))
	want("after a fork that kept it", two, 9_000_000, 9_000_000, 0)
}

// TestSolanaSkipsSlots leaves slots without blocks, which heights do not count.
func TestSolanaSkipsSlots(t *testing.T) {
	n := Solana(t, SolanaOptions{})
	do(t, n.Mine(2))
	before, slot := height(t, n, "confirmed")
	do(t, n.Airdrop(fresh(3), 5_000_000))
	do(t, n.Skip(10))
	do(t, n.Mine(2))

	after, slotAfter := height(t, n, "confirmed")
	if after != before+2 || slotAfter != slot+12 {
		t.Errorf("from height %d, slot %d to %d, %d", before, slot, after, slotAfter)
	}

	var slots []uint64
	do(t, n.Call(&slots, "getBlocks", slot, slotAfter, map[string]string{"commitment": "confirmed"}))

	if want := fmt.Sprint([]uint64{slot, slot + 11, slot + 12}); fmt.Sprint(slots) != want {
		t.Errorf("slots with blocks %v, want %s", slots, want)
	}

	if got := lamports(t, n, fresh(3), "confirmed"); got != 5_000_000 {
		t.Errorf("what waited while slots were skipped is worth %d", got)
	}

	do(t, n.Prune(after))
	do(t, n.Mine(32)) // what is above is final
	wantCode(t, n, "a pruned block", -32001, "getBlock", slot, confirmed)
}

// TestSolanaSurvivesGarbage sends bytes that would end the machine's process if they reached it.
func TestSolanaSurvivesGarbage(t *testing.T) {
	n := Solana(t, SolanaOptions{})
	do(t, n.Mine(1))

	for _, raw := range [][]byte{
		nil,
		{0},
		{1},
		{0x80},
		make([]byte, 65),
		make([]byte, 200),
		[]byte(strings.Repeat("\xff", 300)),
		append([]byte{1}, make([]byte, 1231)...),
	} {
		for _, method := range []string{"sendTransaction", "simulateTransaction"} {
			err := n.Call(
				nil, method, base64.StdEncoding.EncodeToString(raw),
				map[string]any{"encoding": "base64", "skipPreflight": true},
			)
			if err == nil || !strings.Contains(err.Error(), "-32602") {
				t.Errorf("%s of %d bytes: %v", method, len(raw), err)
			}
		}
	}

	if err := n.Call(nil, "getBalance", "nobody"); err == nil || !strings.Contains(err.Error(), "-32602") {
		t.Errorf("a malformed address: %v", err)
	}

	if err := n.Call(nil, "noSuchMethod"); err == nil || !strings.Contains(err.Error(), "-32601") {
		t.Errorf("an unknown method: %v", err)
	}

	var health string
	if do(t, n.Call(&health, "getHealth")); health != "ok" {
		t.Errorf("health %q", health)
	}
}
