//go:build unix

package moneyout_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	internal "github.com/seed-8ee7f392/payments/internal/engine"
)

// inventor is a Solana node that shows a transaction that nobody made, in the first block with another one of a wallet:
// the wallet signed it.
type inventor struct {
	url string // of the node behind it

	mu     sync.Mutex
	wallet string // empty while the node is honest
	slot   uint64
	held   json.Number // by the wallet after that block, in lamports
}

var inventedHash = solanago.Signature{9}.String()

// pretend has the node show the transaction for a wallet, or none for "".
func (f *inventor) pretend(wallet string) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.wallet = wallet
}

// ServeHTTP forwards a call.
func (f *inventor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)

	var call struct {
		Method string
		Params []json.RawMessage
	}

	_ = json.Unmarshal(body, &call)

	resp, err := http.Post(f.url, "application/json", bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()

	var answer map[string]any

	d := json.NewDecoder(resp.Body)
	d.UseNumber()

	_ = d.Decode(&answer)

	f.mu.Lock()
	if f.wallet != "" && len(call.Params) > 0 {
		answer["result"] = f.forge(call.Method, strings.Trim(string(call.Params[0]), `"[]`), answer["result"])
	}
	f.mu.Unlock()

	_ = json.NewEncoder(w).Encode(answer)
}

func (f *inventor) forge(method, subject string, result any) any {
	switch shown := result.(type) {
	case []any:
		if method == "getSignaturesForAddress" && subject == f.wallet {
			return f.listed(shown)
		}
	case map[string]any:
		transactions, _ := shown["transactions"].([]any)

		if method == "getBlock" && len(transactions) > 0 && f.foundIn(subject, transactions) {
			shown["transactions"] = append(transactions, f.transaction(true))
		}

		if method == "getSignatureStatuses" && subject == inventedHash {
			shown["value"] = []any{map[string]any{"slot": f.slot, "confirmationStatus": "finalized"}}
		}
	}

	if method == "getTransaction" && subject == inventedHash && f.slot != 0 {
		return f.transaction(false)
	}

	return result
}

// listed adds the transaction to the wallet's history.
func (f *inventor) listed(history []any) []any {
	if f.slot == 0 && len(history) > 0 {
		slot, _ := history[0].(map[string]any)["slot"].(json.Number).Int64()
		f.slot, f.held = uint64(slot), f.balance()
	}

	at := slices.IndexFunc(history, func(entry any) bool {
		slot, _ := entry.(map[string]any)["slot"].(json.Number).Int64()
		return uint64(slot) <= f.slot
	})
	if at < 0 {
		return history
	}

	return slices.Insert(
		history,
		at,
		any(map[string]any{"signature": inventedHash, "slot": f.slot, "err": nil}),
	)
}

// balance returns what the wallet holds, in lamports.
func (f *inventor) balance() json.Number {
	call, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0",
		"id":      1,
		"method":  "getBalance",
		"params":  []any{f.wallet, map[string]string{"commitment": "confirmed"}},
	})

	resp, err := http.Post(f.url, "application/json", bytes.NewReader(call))
	if err != nil {
		return "0"
	}
	defer resp.Body.Close()

	var answer struct{ Result struct{ Value json.Number } }

	_ = json.NewDecoder(resp.Body).Decode(&answer)

	return answer.Result.Value
}

// foundIn reports whether a block is the one that shows the transaction. The first one that names the wallet is.
func (f *inventor) foundIn(slot string, transactions []any) bool {
	named, _ := json.Marshal(transactions)
	if f.slot == 0 && bytes.Contains(named, []byte(f.wallet)) {
		_ = json.Unmarshal([]byte(slot), &f.slot)
		f.held = f.balance()
	}

	number, _ := json.Marshal(f.slot)

	return string(number) == slot
}

// transaction returns the transaction as in a block, or as by its hash.
func (f *inventor) transaction(inBlock bool) map[string]any {
	payer := solanago.PublicKey{3}.String()
	accounts := []any{payer, f.wallet}

	shown := map[string]any{
		"signatures": []any{inventedHash, solanago.Signature{8}.String()},
		"message":    map[string]any{"accountKeys": accounts},
	}

	if inBlock {
		shown["accountKeys"] = []any{
			map[string]any{"pubkey": payer, "signer": true, "writable": true, "source": "transaction"},
			map[string]any{"pubkey": f.wallet, "signer": true, "writable": true, "source": "transaction"},
		}
	}

	return map[string]any{
		"slot":        f.slot,
		"transaction": shown,
		"meta": map[string]any{
			"err":               nil,
			"fee":               5000,
			"preBalances":       []any{1_000_000, f.held},
			"postBalances":      []any{995_000, f.held},
			"preTokenBalances":  []any{},
			"postTokenBalances": []any{},
		},
	}
}

// A transaction of a wallet that one node of two made up freezes it until that node shows it no more: what two nodes
// do not show is on no record. The wallet pays again by itself.
func TestAnInventedTransactionOfAWalletIsWithdrawn(t *testing.T) {
	for name, whole := range map[string]bool{"by block": true, "by address": false} {
		t.Run(name, func(t *testing.T) {
			f := new(inventor)
			w := behindLiar(t, f, &f.url, whole)

			master, err := internal.Of(
				w.engine,
			).Transactions.MasterWallet(
				t.Context(),
				w.slug,
				w.account.Index,
			)
			w.must(err)

			frozen := func() bool {
				h, err := w.engine.Health(t.Context())
				w.must(err)

				return len(frozenOf(h)) > 0
			}

			f.pretend(string(master.Address))
			w.fund(t, master.Address)
			w.until("the wallet is frozen", frozen)

			for range 10 { // blocks
				w.turn()
			}

			if !frozen() {
				t.Error("the freeze ended while a node shows the transaction")
			}

			f.pretend("")
			w.until("the freeze is over", func() bool { return !frozen() })

			rows, err := w.store.UnrecordedOutgoing(t.Context(), w.slug, "", time.Time{})
			w.must(err)

			if len(rows) > 0 {
				t.Errorf("on record are %+v", rows)
			}

			w.confirmed(w.pay(w.stranger(t)).ID)
		})
	}
}
