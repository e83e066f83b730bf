package bitcoin_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// A refusal counts with whatever HTTP status it comes, for its call alone or for all calls of a request.
func TestRefusalsCountWithTheirHTTPStatus(t *testing.T) {
	for _, status := range []int{200, 400, 403, 404, 405, 500, 501} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("status %d, for all calls: %t", status, whole), func(t *testing.T) {
				f := newFake(t) // without estimatesmartfee
				f.on("getmempoolinfo", func(params) any {
					return map[string]json.Number{
						"mempoolminfee":       "0.00001",
						"minrelaytxfee":       "0.00001",
						"incrementalrelayfee": "0.00001",
					}
				})

				f.raw = func(w http.ResponseWriter, r *http.Request) { f.refuse(w, r, status, whole) }
				d := newDriver(t, f.config())

				fee, err := d.EstimateFee(t.Context(), chain.Order{
					From: chain.Party{Address: payee},
					Outputs: []chain.Output{
						{To: payee, AssetID: d.Network().Assets[0].ID, Amount: chain.Units(50_000)},
					},
					Coins: []chain.Coin{{
						Outpoint: chain.Outpoint{TxHash: strings.Repeat("1", 64)},
						Owner:    chain.Party{Address: payee},
						Amount:   chain.Units(100_000_000),
						Height:   1,
					}},
				})
				if want := chain.Units(10 * 141 * 3); err != nil || fee != want {
					t.Errorf("%s, %v, want %s", fee, err, want)
				}
			})
		}
	}
}

// A provider that refuses a whole batch for its rate is not asked for its parts.
func TestThrottledBatchIsNotSplit(t *testing.T) {
	for _, code := range []int{429, -32005} {
		f := newFake(t)

		asked := 0
		f.raw = func(w http.ResponseWriter, _ *http.Request) {
			asked++

			_, _ = fmt.Fprintf(w, `{"error":{"code":%d,"message":"daily limit"}}`, code)
		}

		_, err := newDriver(t, f.config()).Head(t.Context())
		mustCode(t, "Head", err, fault.Unavailable, "node_unavailable")

		if asked != 1 {
			t.Errorf("code %d: asked %d times", code, asked)
		}
	}
}

// refuse answers a request; where the node refuses a call of it, with a status, and with that refusal alone where whole
// is set.
func (f *fakeNode) refuse(w http.ResponseWriter, r *http.Request, status int, whole bool) {
	body, _ := io.ReadAll(r.Body)
	rec := httptest.NewRecorder()
	f.answer(rec, body)

	var answers []struct {
		Error *rpcError `json:"error"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &answers); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}

	for _, a := range answers {
		if a.Error == nil {
			continue
		}

		w.WriteHeader(status)

		if whole {
			_ = json.NewEncoder(w).Encode(a)
			return
		}

		break
	}

	_, _ = w.Write(rec.Body.Bytes())
}
