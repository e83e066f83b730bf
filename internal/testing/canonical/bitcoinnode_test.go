//go:build unix

package canonical_test

// This file is bitcoind as the parent sees it: payers, miners, and the market that says what fees it asks for.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// bitcoinNode is bitcoind, whose own wallet belongs to payers, beside every proxy.
type bitcoinNode struct {
	*testenv.BitcoindNode
	t *testing.T
}

func newBitcoinNode(t *testing.T) bitcoinNode {
	t.Helper()

	n := bitcoinNode{testenv.Bitcoind(t, testenv.BitcoindOptions{Args: []string{"-keypool=10"}}), t}
	n.call(nil, "createwallet", "payers")
	n.mine(120)

	return n
}

func (n bitcoinNode) try(result any, method string, params ...any) error {
	return n.Call(n.t.Context(), result, method, params...)
}

func (n bitcoinNode) call(result any, method string, params ...any) {
	n.t.Helper()

	if err := n.try(result, method, params...); err != nil {
		n.t.Fatalf("%s: %v", method, err)
	}
}

func (n bitcoinNode) address() (address string) {
	n.t.Helper()
	n.call(&address, "getnewaddress", "", "bech32")

	return address
}

// mine makes blocks of the pool, to fresh addresses: none is the same as one that a fork took away.
func (n bitcoinNode) mine(blocks int) {
	n.t.Helper()
	n.call(nil, "generatetoaddress", blocks, n.address())
}

// mineThese makes a block of transactions, by hash or in hex; false where they are none of a block.
func (n bitcoinNode) mineThese(txs ...string) bool {
	n.t.Helper()

	return n.try(nil, "generateblock", n.address(), append([]string{}, txs...)) == nil
}

func (n bitcoinNode) height() (height uint64) {
	n.t.Helper()
	n.call(&height, "getblockcount")

	return height
}

func (n bitcoinNode) hashAt(height uint64) (hash string) {
	n.t.Helper()
	n.call(&hash, "getblockhash", height)

	return hash
}

// pool returns the hashes of what waits, in order.
func (n bitcoinNode) pool() (hashes []string) {
	n.t.Helper()
	n.call(&hashes, "getrawmempool")
	slices.Sort(hashes)

	return hashes
}

func (n bitcoinNode) pay(to string, satoshi int64) (hash string) {
	n.t.Helper()
	n.call(&hash, "sendtoaddress", to, json.Number(fmt.Sprintf("%d.%08d", satoshi/1e8, satoshi%1e8)))

	return hash
}

// market is a proxy of a node that answers fee estimates itself.
type market struct {
	*httptest.Server
	rate atomic.Int64 // satoshi per 1000 vB
	node string
}

func newMarket(t *testing.T, n bitcoinNode) *market {
	t.Helper()

	m := &market{node: "http://" + n.Addr}
	m.rate.Store(5_000)
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)

	return m
}

// url is the endpoint with the node's credentials.
func (m *market) url(n bitcoinNode) string {
	return "http://" + n.User + ":" + n.Password + "@" + m.Listener.Addr().String()
}

func (m *market) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the process is gone
	}

	req, _ := http.NewRequestWithContext(r.Context(), r.Method, m.node, bytes.NewReader(body))
	req.Header = r.Header.Clone()

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err == nil && bytes.Contains(body, []byte("estimatesmartfee")) {
		text, err = m.quote(body, text)
	}

	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}

	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(text)
}

// quote puts the market's rate into the answers of a batch.
func (m *market) quote(request, response []byte) ([]byte, error) {
	var (
		calls []struct {
			ID     int
			Method string
		}
		answers []map[string]any
	)

	if err := json.Unmarshal(request, &calls); err != nil {
		return nil, err
	}

	if err := json.Unmarshal(response, &answers); err != nil {
		return nil, err
	}

	for _, call := range calls {
		for i, answer := range answers {
			if call.Method == "estimatesmartfee" && answer["id"] == float64(call.ID) {
				rate := json.Number(fmt.Sprintf("0.%08d", m.rate.Load()))
				answers[i]["result"], answers[i]["error"] = map[string]any{"feerate": rate, "blocks": 3}, nil
			}
		}
	}

	return json.Marshal(answers)
}
