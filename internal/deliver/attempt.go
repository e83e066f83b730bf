package deliver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file holds one attempt of a delivery: the request, and the part of the response that is kept.

// userAgent is the User-Agent header of every request.
const userAgent = "payments-webhooks/1"

// answer is the outcome of one attempt.
type answer struct {
	attempt webhook.Attempt
	ended   time.Time
	// retryAfter is the wait that the endpoint asked for; 0 if it asked for none.
	retryAfter time.Duration
}

// post sends a delivery once. The attempt succeeds when the endpoint answers 2xx, even if reading
// the body fails. ok is false when ctx was canceled before an answer: the attempt has no outcome.
func (s *Deliverer) post(
	ctx context.Context,
	d webhook.Delivery,
	e webhook.Endpoint,
	ev event.Event,
	secrets []string,
) (a answer, ok bool) { // spec D8.11
	started := s.stamp()
	header := http.Header{
		"Content-Type":           {"application/json"},
		"User-Agent":             {userAgent},
		webhook.SignatureHeader:  {webhook.Sign(ev.Envelope, started, secrets...)},
		webhook.EventIDHeader:    {ev.ID},
		webhook.DeliveryIDHeader: {d.ID},
	}
	a.attempt = webhook.Attempt{At: started, Request: webhook.AttemptRequest{Headers: sentHeaders(header)}}

	var seen progress

	limited, cancel := context.WithTimeout(httptrace.WithClientTrace(ctx, seen.trace()), s.timeout)
	defer cancel()

	late := time.AfterFunc(s.headers, cancel)

	response, err := s.send(limited, e.URL, header, ev.Envelope)
	if !late.Stop() && err != nil && ctx.Err() == nil {
		err = context.DeadlineExceeded // the headers were late
	}

	if err == nil {
		raw, readErr := s.readBody(response.Body, cancel)
		response.Body.Close()
		a.attempt.HTTPStatus = response.StatusCode
		kept := &webhook.AttemptResponse{Headers: keptHeaders(response.Header)}
		kept.Body, kept.BodyTruncated = keptBody(
			raw, readErr != nil || len(raw) == readLimit, response.Header,
		)

		a.attempt.Response = kept
		if response.StatusCode < 200 || response.StatusCode > 299 {
			a.attempt.Error = "http_" + strconv.Itoa(response.StatusCode)
		}
	} else {
		a.attempt.Error = failure(err, &seen)
	}

	a.ended = s.stamp()

	a.attempt.DurationMS = max(a.ended.Sub(started).Milliseconds(), 0)
	if response != nil {
		a.retryAfter = ParseRetryAfter(response.Header.Get("Retry-After"), a.ended)
	}

	return a, ctx.Err() == nil || a.attempt.HTTPStatus != 0
}

// readBody reads up to readLimit bytes, until the body takes too long or stops.
func (s *Deliverer) readBody(body io.Reader, cancel context.CancelFunc) ([]byte, error) {
	whole, idle := time.AfterFunc(s.body, cancel), time.AfterFunc(s.idle, cancel)
	defer whole.Stop()
	defer idle.Stop()

	return io.ReadAll(io.LimitReader(moving{body, func() { idle.Reset(s.idle) }}, readLimit))
}

// moving calls moved after every read that returned bytes.
type moving struct {
	io.Reader
	moved func()
}

func (m moving) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	if n > 0 {
		m.moved()
	}

	return n, err
}

func (s *Deliverer) send(
	ctx context.Context,
	url string,
	header http.Header,
	body []byte,
) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}

	request.Header = header

	return s.client.Do(request)
}

// sentHeaders returns the headers of a request with names in lower case, without the signatures.
func sentHeaders(h http.Header) map[string]string { // spec 2.9.4
	sent := make(map[string]string, len(h))
	for name, values := range h {
		sent[strings.ToLower(name)] = redactSecrets(strings.Join(values, ", "))
	}

	return sent
}

// progress records how far an attempt came. A connection may still be made after its attempt has ended.
type progress struct {
	connected, noTLS atomic.Bool
}

func (p *progress) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn:          func(httptrace.GotConnInfo) { p.connected.Store(true) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { p.noTLS.Store(err != nil) },
	}
}

// failure returns a name for the reason why there was no answer. The error's own text is not kept: it may
// reveal our network.
func failure(err error, seen *progress) string {
	timed, timeout := errors.AsType[net.Error](err)

	_, lookup := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP),
		errors.Is(err, ssrf.ErrProhibitedNetwork),
		errors.Is(err, ssrf.ErrInvalidHostPort):
		return "address_not_allowed"
	case errors.Is(err, context.DeadlineExceeded), timeout && timed.Timeout():
		return "timeout"
	case lookup:
		return "dns_error"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE),
		errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF):
		return "connection_reset"
	case seen.noTLS.Load():
		return "tls_error"
	case seen.connected.Load():
		return "invalid_response"
	}

	return "connection_failed"
}
