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
	// got counts the receipts of each event, by host and event id.
	got map[string]map[string]int
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

	host := request.URL.Host
	state := r.state[host]

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
	if err := json.Unmarshal(body, &envelope); err != nil ||
		envelope.ID != request.Header.Get(webhook.EventIDHeader) {
		r.harness.oracle.violate("webhook", "%s got a delivery that is no event: %s", host, body)
	}

	if r.got[host] == nil {
		r.got[host] = map[string]int{}
	}

	r.got[host][envelope.ID]++

	switch state {
	case lies:
		return answer(request, http.StatusInternalServerError, nil), nil
	case drips:
		return answer(request, http.StatusOK, errReader{}), nil
	case receives, refuses, hangs:
	}

	return answer(request, http.StatusOK, nil), nil
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
