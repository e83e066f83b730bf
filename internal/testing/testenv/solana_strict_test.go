//go:build unix

package testenv

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

var (
	confirmed = map[string]any{"commitment": "confirmed"}
	processed = map[string]any{"commitment": "processed"}
)

// wantCode fails the test unless the node refuses a call with a JSON-RPC error code.
func wantCode(t *testing.T, n *SolanaNode, what string, code int, method string, params ...any) {
	t.Helper()

	err := n.Call(nil, method, params...)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(code)) {
		t.Errorf("%s: %s answered %v, want %d", what, method, err, code)
	}
}

// TestSolanaRefusesBlocks asks for blocks that nodes do not have, each for another reason.
func TestSolanaRefusesBlocks(t *testing.T) {
	n := Solana(t, SolanaOptions{Finality: 3})
	do(t, n.Mine(5))

	_, old := height(t, n, "confirmed")
	do(t, n.Skip(1))
	do(t, n.Mine(6))

	first, _ := height(t, n, "finalized")
	_, slot := height(t, n, "confirmed")
	do(t, n.Skip(1))
	do(t, n.Mine(1))

	wantCode(t, n, "a skipped slot above the final ones", -32004, "getBlock", slot+1, confirmed)
	do(t, n.Mine(3))
	wantCode(t, n, "a skipped slot", -32007, "getBlock", slot+1, confirmed)
	wantCode(t, n, "a slot to come", -32004, "getBlock", slot+100, confirmed)
	wantCode(t, n, "a block that is not final", -32004, "getBlock", slot+5)

	do(t, n.Prune(first))
	wantCode(t, n, "a pruned block", -32001, "getBlock", old, confirmed)
	do(t, n.LongTerm(true))
	wantCode(t, n, "a slot skipped in long-term storage", -32009, "getBlock", old+1, confirmed)
	do(t, n.Call(nil, "getBlock", old, confirmed))

	do(t, n.Late(1))
	do(t, n.Mine(1))

	_, slot = height(t, n, "confirmed")
	wantCode(t, n, "a block without status", -32014, "getBlock", slot, confirmed)
	do(t, n.Call(nil, "getBlock", slot, confirmed))
}

// TestSolanaRefusesCalls makes calls beyond what nodes serve.
func TestSolanaRefusesCalls(t *testing.T) {
	n := Solana(t, SolanaOptions{})
	do(t, n.Mine(2))
	do(t, n.Airdrop(fresh(4), 5_000_000))
	do(t, n.Mine(1))

	var history []struct{ Signature string }
	do(t, n.Call(&history, "getSignaturesForAddress", fresh(4), confirmed))

	many := func(count int) (list []string) {
		for range count {
			list = append(list, fresh(4))
		}

		return list
	}
	large := base64.StdEncoding.EncodeToString(append([]byte{1}, make([]byte, 1232)...))
	base64Encoded := map[string]any{"encoding": "base64"}

	for _, c := range []struct {
		name   string
		code   int
		method string
		params []any
	}{
		{"a block at processed", -32602, "getBlock", []any{1, processed}},
		{"slots at processed", -32602, "getBlocks", []any{1, 2, processed}},
		{"so many slots at processed", -32602, "getBlocksWithLimit", []any{1, 2, processed}},
		{"a transaction at processed", -32602, "getTransaction", []any{history[0].Signature, processed}},
		{"a history at processed", -32602, "getSignaturesForAddress", []any{fresh(4), processed}},
		{"an unknown commitment", -32602, "getSlot", []any{map[string]any{"commitment": "recent"}}},
		{"101 accounts", -32602, "getMultipleAccounts", []any{many(101)}},
		{"257 statuses", -32602, "getSignatureStatuses", []any{many(257)}},
		{"129 accounts of fees", -32602, "getRecentPrioritizationFees", []any{many(129)}},
		{"500,001 slots", -32602, "getBlocks", []any{0, 500_001, confirmed}},
		{"a limit of 500,001 slots", -32602, "getBlocksWithLimit", []any{0, 500_001, confirmed}},
		{
			"1,001 signatures",
			-32602,
			"getSignaturesForAddress",
			[]any{fresh(4), map[string]any{"commitment": "confirmed", "limit": 1_001}},
		},
		{
			"a history before an unknown transaction",
			-32020,
			"getSignaturesForAddress",
			[]any{fresh(4), map[string]any{"commitment": "confirmed", "before": fresh(5)}},
		},
		{"a slot to come", -32016, "getSlot", []any{map[string]any{"minContextSlot": 1 << 40}}},
		{"a transaction of 1,233 bytes", -32602, "sendTransaction", []any{large, base64Encoded}},
	} {
		wantCode(t, n, c.name, c.code, c.method, c.params...)
	}

	do(t, n.History(false))

	search := map[string]any{"searchTransactionHistory": true}

	wantCode(t, n, "a history that is not kept", -32011, "getSignaturesForAddress", fresh(4), confirmed)
	wantCode(t, n, "a status that is not kept", -32011, "getSignatureStatuses", many(1), search)
	wantCode(t, n, "a transaction that is not kept", -32011, "getTransaction", history[0].Signature)
	wantCode(t, n, "a block that is not kept", -32011, "getBlock", 1)
}

// TestSolanaStatusCacheForgets finds the status of an old transaction in the history alone.
func TestSolanaStatusCacheForgets(t *testing.T) {
	n := Solana(t, SolanaOptions{Finality: 2})
	do(t, n.Mine(3))
	do(t, n.Airdrop(fresh(4), 5_000_000))
	do(t, n.Mine(1))

	var history []struct{ Signature string }
	do(t, n.Call(&history, "getSignaturesForAddress", fresh(4), confirmed))

	known := func(options map[string]any) bool {
		var answer struct{ Value []*struct{ Slot uint64 } }
		do(t, n.Call(&answer, "getSignatureStatuses", []string{history[0].Signature}, options))

		return answer.Value[0] != nil
	}

	if !known(nil) {
		t.Error("a recent transaction has no status")
	}

	do(t, n.Mine(310))

	if known(nil) || !known(map[string]any{"searchTransactionHistory": true}) {
		t.Error("an old transaction is not in the history alone")
	}
}

// TestSolanaLimitsCalls calls more often than the node serves, alone and in a batch.
func TestSolanaLimitsCalls(t *testing.T) {
	n := Solana(t, SolanaOptions{})
	do(t, n.Limit("getVersion", 0))

	call := `{"jsonrpc":"2.0","id":1,"method":"getVersion"}`
	for _, body := range []string{call, "[" + call + "]"} {
		answer, err := http.Post(n.URL, "application/json", strings.NewReader(body))
		do(t, err)

		_, err = io.Copy(io.Discard, answer.Body)
		do(t, err)
		do(t, answer.Body.Close())

		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
			t.Errorf(
				"%s: HTTP status %d, Retry-After %q",
				body,
				answer.StatusCode,
				answer.Header.Get("Retry-After"),
			)
		}
	}
}
