//go:build unix

package moneyout_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/payout"
)

// forger is a Solana node that shows what pays an address as failed, in its block and alone, while one is set.
type forger struct {
	url    string // of the node behind it
	to     atomic.Pointer[string]
	forged atomic.Int64 // blocks
}

// ServeHTTP forwards a call.
func (f *forger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, _ := io.ReadAll(r.Body)

	answer, err := http.Post(f.url, "application/json", bytes.NewReader(call))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()

	body, _ := io.ReadAll(answer.Body)

	asked := bytes.Contains(call, []byte(`"getBlock"`)) || bytes.Contains(call, []byte(`"getTransaction"`))
	if to := f.to.Load(); to != nil && asked {
		body = f.forge(body, *to)
	}

	_, _ = w.Write(body)
}

func (f *forger) forge(body []byte, to string) []byte {
	var answer map[string]any

	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()

	_ = d.Decode(&answer)
	result, _ := answer["result"].(map[string]any)

	transactions, isBlock := result["transactions"].([]any)
	if !isBlock && result["meta"] != nil {
		transactions = []any{result}
	}

	for _, shown := range transactions {
		accounts, _ := json.Marshal(shown.(map[string]any)["transaction"])
		if !bytes.Contains(accounts, []byte(to)) {
			continue
		}

		meta := shown.(map[string]any)["meta"].(map[string]any)
		after := slices.Clone(meta["preBalances"].([]any))
		held, _ := after[0].(json.Number).Int64()
		fee, _ := meta["fee"].(json.Number).Int64()
		after[0] = held - fee
		meta["err"], meta["postBalances"] = "AccountNotFound", after

		f.forged.Add(1)
	}

	forged, _ := json.Marshal(answer)

	return forged
}

// behindLiar begins over two nodes: a liar, which gets the URL of the other, and that one. Whole blocks are read, or
// addresses.
func behindLiar(t *testing.T, liar http.Handler, url *string, whole bool) *realHarness {
	t.Helper()

	server := httptest.NewServer(liar)
	t.Cleanup(server.Close)

	node := solanaNode(t, func(c solana.Config) (payments.ChainDriver, error) {
		*url = c.RPC
		c.RPC, c.RPCs, c.WholeBlocks = server.URL, []string{c.RPC}, whole

		return solana.New(c)
	})

	w := &realHarness{realNode: node, t: t}

	w.reopen(sqliteAt(filepath.Join(t.TempDir(), "payments.db")))
	t.Cleanup(func() { w.must(w.store.Close()) })

	w.begin()

	return w
}

// A block in which one node showed a paid payout as failed is read again: once that node says what the other one does,
// the payout goes on, although the block was read long ago.
func TestAForgedOutcomeIsReadAgain(t *testing.T) {
	f := new(forger)
	w := behindLiar(t, f, &f.url, true)

	to := w.stranger(t)
	f.to.Store(&to)

	p := w.pay(to)

	for range 30 { // blocks
		w.turn()
	}

	if held := w.held(t, to); held != p.Amount || f.forged.Load() == 0 {
		t.Fatalf("%s arrived, %d blocks were forged", held, f.forged.Load())
	}

	if got := w.get(p.ID); got.Status == payout.Failed || got.Status == payout.Confirmed {
		t.Fatalf("while a node shows it as failed it is %s (%s)", got.Status, got.FailureCode)
	}

	f.to.Store(nil)
	w.confirmed(p.ID)
}
