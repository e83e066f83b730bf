package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/seed-8ee7f392/payments/webhook"
)

// receiverState is how a merchant's webhook receiver answers.
type receiverState int

const (
	receives receiverState = iota
	refuses                // answers 500
	hangs                  // does not answer within the time limit
	lies                   // takes an event and answers 500; or loses it and answers 200
	drips                  // sends its answer so slowly that it is cut off
)

// receivers are the merchants' webhook receivers: the transport of all engines.
type receivers struct {
	harness *harness
	state   map[string]receiverState // by host
	// got counts the receipts of each event, and saw the requests with it, by host and event id.
	got, saw map[string]map[string]int
	// asked counts the requests.
	asked int
}

// RoundTrip delivers a webhook.
func (r *receivers) RoundTrip(request *http.Request) (*http.Response, error) {
	r.asked++

	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}

	host, id := request.URL.Host, request.Header.Get(webhook.EventIDHeader)
	state := r.state[host]
	count(r.saw, host, id)

	switch state {
	case hangs:
		return nil, context.DeadlineExceeded
	case refuses:
		return answer(request, http.StatusInternalServerError, nil), nil
	case receives, lies, drips:
	}

	var envelope struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil || envelope.ID != id {
		r.harness.oracle.violate("webhook", "%s got a delivery that is no event: %s", host, body)
	}

	count(r.got, host, id)

	switch state {
	case lies:
		return answer(request, http.StatusInternalServerError, nil), nil
	case drips:
		return answer(request, http.StatusOK, errReader{}), nil
	case receives, refuses, hangs:
	}

	return answer(request, http.StatusOK, nil), nil
}

// count counts one more of an event at a host.
func count(of map[string]map[string]int, host, id string) {
	if of[host] == nil {
		of[host] = map[string]int{}
	}

	of[host][id]++
}

// checkAttempts checks that the delivery log has each request that a receiver saw, of the deliveries that ended.
func (w *harness) checkAttempts() {
	if w.oracle.lost {
		return
	}

	for _, m := range w.merchants {
		all, err := w.store.Deliveries(w.ctx, webhook.DeliveryFilter{Owner: m.owner})
		must(err)

		attempts, pending := map[string]int{}, map[string]bool{}
		for _, d := range all {
			attempts[d.EventID] += len(d.Log)
			pending[d.EventID] = pending[d.EventID] || d.Status == webhook.DeliveryPending
		}

		for id, n := range w.receivers.saw[m.host] {
			if !pending[id] && attempts[id] < n {
				w.oracle.violate(
					ruleLog,
					"%s saw %d requests with event %s, and %d are in the log",
					m.host,
					n,
					id,
					attempts[id],
				)
			}
		}
	}
}

func answer(request *http.Request, status int, body io.Reader) *http.Response {
	if body == nil {
		body = bytes.NewReader(nil)
	}

	return &http.Response{
		StatusCode: status,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{},
		Body:       io.NopCloser(body),
		Request:    request,
	}
}

// errReader is a body that never ends in time.
type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("the answer was cut off") }
