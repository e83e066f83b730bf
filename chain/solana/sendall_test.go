//go:build unix

package solana_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
)

// A transaction that the first node takes and drops is included all the same: every node is sent it.
func TestANodeThatDropsTransactionsHoldsUpNothing(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, sol, 0)

	behind, err := url.Parse(n.URL)
	must(t, err)

	honest := httputil.NewSingleHostReverseProxy(behind)
	drops := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"sendTransaction"`)) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":""}`)
			return
		}

		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		honest.ServeHTTP(w, r)
	}))
	t.Cleanup(drops.Close)

	d := n.driver(t, func(config *solana.Config) { config.RPC, config.RPCs = drops.URL, []string{n.URL} })
	tx := s.sign(s.paying(from, 1_000_000, nil))

	must(t, d.Broadcast(t.Context(), tx))
	must(t, n.SolanaNode.Mine(5))

	if st := s.wantState("sent to every node", tx, chain.TxIncluded); st.Reverted {
		t.Errorf("it failed: %+v", st)
	}
}
