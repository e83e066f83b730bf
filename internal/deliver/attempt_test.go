package deliver

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/wire"
	"github.com/seed-8ee7f392/payments/webhook"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func serve(t testing.TB, f http.HandlerFunc) *httptest.Server {
	t.Helper()

	s := httptest.NewUnstartedServer(f)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)

	return s
}

func serveTLS(t testing.TB, f http.HandlerFunc) *httptest.Server {
	t.Helper()

	s := httptest.NewUnstartedServer(f)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)

	return s
}

// raw answers every connection with bytes of our own, once the request was read, and closes it: by
// a reset if reset is set.
func raw(t testing.TB, answer string, reset bool) string {
	t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	done := make(chan struct{})
	go func() {
		defer close(done)

		for {
			c, err := l.Accept()
			if err != nil {
				return
			}

			_, _ = c.Read(make([]byte, 64<<10))

			_, _ = io.WriteString(c, answer)
			if reset {
				_ = c.(*net.TCPConn).SetLinger(0)
			}

			c.Close()
		}
	}()

	t.Cleanup(func() { l.Close(); <-done })

	return "http://" + l.Addr().String()
}

// golden is what a case leaves behind.
type golden struct {
	Case       string                    `json:"case"`
	Status     webhook.DeliveryStatus    `json:"status"`
	RetryIn    string                    `json:"retry_in,omitempty"`
	Endpoint   webhook.EndpointStatus    `json:"endpoint"`
	AttemptLog []webhook.AttemptResource `json:"attempt_log"`
}

// TestAttemptLog posts to real servers that behave badly, and compares what is kept with testdata,
// one file per case. Run it with -update to write the files anew, and read what changed.
func TestAttemptLog(t *testing.T) {
	plain := func(f http.HandlerFunc) func(testing.TB) string {
		return func(t testing.TB) string { return serve(t, f).URL }
	}
	answer := func(status int, header map[string]string, body string) func(testing.TB) string {
		return plain(func(w http.ResponseWriter, _ *http.Request) {
			for name, value := range header {
				w.Header().Set(name, value)
			}

			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}

	var bomb bytes.Buffer

	z := gzip.NewWriter(&bomb)
	for range 64 {
		_, _ = z.Write(make([]byte, 1<<20))
	}

	_ = z.Close()

	for _, c := range []struct {
		name, about string
		url         func(testing.TB) string
		change      func(*Config)
	}{
		{"delivered", "a good answer", answer(200, map[string]string{"Content-Type": "text/plain"}, "ok"), nil},
		{"no_content", "the shortest good answer", answer(204, nil, ""), nil},
		{"server_error", "an answer of 500", answer(500, nil, "Internal Server Error\n"), nil},
		{
			"secrets",
			"an answer full of credentials",
			answer(200, map[string]string{
				"Content-Type":     "application/json",
				"Set-Cookie":       "session=abcdef",
				"Authorization":    "Bearer abcdef",
				"X-Api-Key":        "abcdef",
				"X-Debug":          "signed with " + secretA,
				"Www-Authenticate": "Basic realm=inside",
			}, `{"received":true,"api_key":"abcdef","nested":{`+
				`"Password":"abcdef","tokens":["abcdef"]},"note":"`+secretA+`","signature":12}`),
			nil,
		},
		{
			"long_answer",
			"an answer of 4,097 characters of two bytes",
			answer(
				200, map[string]string{"Content-Type": "text/plain; charset=utf-8"},
				strings.Repeat("é", maxBody+1),
			),
			nil,
		},
		{
			"binary_answer",
			"an answer that is not text",
			answer(200, map[string]string{"Content-Type": "application/octet-stream"}, "a\x00b\xff\xfec"),
			nil,
		},
		{
			"endless_answer",
			"an answer of 10 MB",
			plain(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")

				for range 10 {
					if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
						return
					}
				}
			}),
			nil,
		},
		{
			"gzip_bomb",
			"64 MB of zeros in 64 kB of gzip, unasked for",
			plain(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "text/plain")
				_, _ = w.Write(bomb.Bytes())
			}),
			nil,
		},
		{
			"redirect",
			"a redirect, which is not followed",
			answer(302, map[string]string{"Location": "http://169.254.169.254/latest/meta-data"}, ""),
			nil,
		},
		{
			"permanent_redirect",
			"a redirect that keeps the method, which is not followed either",
			answer(308, map[string]string{"Location": "https://example.com/"}, ""),
			nil,
		},
		{"gone", "410 Gone", answer(410, nil, ""), nil},
		{
			"too_many",
			"429 that asks to wait for an hour",
			answer(429, map[string]string{"Retry-After": "3600"}, "slow down"),
			nil,
		},
		{
			"unavailable_until",
			"503 that asks to wait until a date",
			answer(503, map[string]string{"Retry-After": start.Add(2 * time.Hour).Format(http.TimeFormat)}, ""),
			nil,
		},
		{
			"unavailable_forever",
			"503 that asks to wait for a month",
			answer(503, map[string]string{"Retry-After": "2592000"}, ""),
			nil,
		},
		{
			"too_many_short",
			"429 that asks for less than we wait anyway",
			answer(429, map[string]string{"Retry-After": "1"}, ""),
			nil,
		},
		{
			"slow",
			"no answer within the time limit",
			plain(func(_ http.ResponseWriter, q *http.Request) {
				_, _ = io.ReadAll(q.Body) // the server notices that the client left only after that
				<-q.Context().Done()
			}),
			func(c *Config) { c.HTTP.Timeout = 100 * time.Millisecond },
		},
		{
			"slow_body",
			"an answer whose body does not end within the time limit",
			plain(func(w http.ResponseWriter, q *http.Request) {
				_, _ = io.ReadAll(q.Body)
				_, _ = io.WriteString(w, "thinking")
				_ = http.NewResponseController(w).Flush()

				<-q.Context().Done()
			}),
			func(c *Config) { c.HTTP.Timeout = 200 * time.Millisecond },
		},
		{
			"dead",
			"nobody listens",
			func(t testing.TB) string {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}

				l.Close()

				return "http://" + l.Addr().String()
			},
			nil,
		},
		{
			"reset",
			"the connection is reset before an answer",
			func(t testing.TB) string { return raw(t, "", true) },
			nil,
		},
		{
			"closed",
			"the connection is closed before an answer",
			func(t testing.TB) string { return raw(t, "", false) },
			nil,
		},
		{
			"closed_in_body",
			"an error whose body breaks off",
			func(t testing.TB) string {
				return raw(t, "HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nhalf an ans", false)
			},
			nil,
		},
		{
			"closed_in_good_body",
			"a success whose body breaks off",
			func(t testing.TB) string {
				return raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf an ans", false)
			},
			nil,
		},
		{
			"closed_in_header",
			"the connection is closed in the middle of the headers",
			func(t testing.TB) string { return raw(t, "HTTP/1.1 200 OK\r\nContent-", false) },
			nil,
		},
		{
			"not_http",
			"something that is not HTTP answers",
			func(t testing.TB) string { return raw(t, "220 mail.example ESMTP\r\n", false) },
			nil,
		},
		{
			"huge_headers",
			"more headers than are read",
			func(t testing.TB) string {
				return raw(
					t,
					"HTTP/1.1 200 OK\r\n"+strings.Repeat("X-Filler: "+strings.Repeat("y", 1000)+"\r\n", 80)+"\r\n",
					false,
				)
			},
			nil,
		},
		{
			"untrusted_tls",
			"a certificate that nobody vouches for",
			func(t testing.TB) string {
				return serveTLS(t, func(http.ResponseWriter, *http.Request) {}).URL
			},
			nil,
		},
		{
			"wrong_name_tls",
			"a certificate for another name",
			func(t testing.TB) string {
				s := serveTLS(t, func(http.ResponseWriter, *http.Request) {})
				return strings.Replace(s.URL, "127.0.0.1", "wrong.test", 1)
			},
			func(c *Config) {
				c.HTTP.RootCAs, c.HTTP.Resolver = testRoots(t), resolver(netip.MustParseAddr("127.0.0.1"))
			},
		},
		{
			"unknown_name",
			"a name that does not exist",
			func(testing.TB) string { return "https://unknown.test/" },
			func(c *Config) {
				c.HTTP.Resolver = resolver()
			},
		},
		{
			"old_tls",
			"a server that knows only TLS 1.1",
			func(t testing.TB) string {
				s := httptest.NewUnstartedServer(http.NotFoundHandler())
				s.Config.ErrorLog = log.New(io.Discard, "", 0)
				s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
				s.StartTLS()
				t.Cleanup(s.Close)

				return s.URL
			},
			func(c *Config) { c.HTTP.RootCAs = testRoots(t) },
		},
		{
			"plain_behind_https",
			"a server without TLS behind https",
			func(t testing.TB) string {
				return strings.Replace(serve(t, func(http.ResponseWriter, *http.Request) {}).URL, "http:", "https:", 1)
			},
			nil,
		},
		{
			"trusted_tls",
			"a good answer over TLS",
			func(t testing.TB) string {
				return serveTLS(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }).URL
			},
			func(c *Config) { c.HTTP.RootCAs = testRoots(t) },
		},
		{
			"inside",
			"an address inside the network",
			func(t testing.TB) string {
				return serve(
					t,
					func(http.ResponseWriter, *http.Request) { t.Error("a loopback address was connected to") },
				).URL
			},
			func(c *Config) { c.HTTP.Allow = nil },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, func(cfg *Config) {
				cfg.Entropy = steady{}
				if c.change != nil {
					c.change(cfg)
				}
			})
			e := h.at(c.url(t))
			h.postOnce()
			d := h.deliveries(e.ID)[0]

			got := golden{
				Case:       c.about,
				Status:     d.Status,
				Endpoint:   h.reread(e).Status,
				AttemptLog: d.Resource(true).AttemptLog,
			}
			if !d.NextAttemptAt.IsZero() {
				got.RetryIn = d.NextAttemptAt.Sub(start).String()
			}

			compare(t, c.name, got)

			if d.Attempts != 1 || d.LastAttemptAt != start {
				t.Errorf("%d attempts, last at %s", d.Attempts, wire.Time(d.LastAttemptAt))
			}
		})
	}
}

// at makes an endpoint for a URL, past the check of what it names: what it leads to may be known
// only at connect.
func (h *harness) at(url string) webhook.Endpoint {
	h.t.Helper()
	e, _ := h.endpoint(tester, "https://example.com/hook", event.InvoicePaid)
	e.URL = url
	h.db.rows.endpoints[e.ID] = e

	return e
}

// postOnce makes an event and takes its deliveries through one step.
func (h *harness) postOnce() {
	h.t.Helper()
	h.happen(tester, event.InvoicePaid)

	if did, err := h.Step(context.Background()); !did || err != nil {
		h.t.Fatalf("did %v, error %v", did, err)
	}
}

// testRoots returns a pool that trusts the certificate of httptest's servers, which names 127.0.0.1
// and example.com.
func testRoots(t testing.TB) *x509.CertPool {
	t.Helper()
	s := serveTLS(t, func(http.ResponseWriter, *http.Request) {})
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())

	return roots
}

// compare compares with a golden file, in which what differs between runs has been made the same.
func compare(t *testing.T, name string, got golden) {
	t.Helper()

	for i := range got.AttemptLog {
		a := &got.AttemptLog[i]

		a.Request.Headers["service-delivery-id"], a.Request.Headers["service-event-id"] = "<delivery>", "<event>"
		if a.Response != nil {
			if _, there := a.Response.Headers["date"]; there {
				a.Response.Headers["date"] = "<date>"
			}

			if n := len(a.Response.Body); n > 200 {
				a.Response.Body = fmt.Sprintf(
					"%s… (%d characters)", wire.Cut(a.Response.Body, 20), len([]rune(a.Response.Body)),
				)
			}
		}
	}

	var out bytes.Buffer

	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")

	if err := encoder.Encode(got); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join("testdata", "attempt_log", name+".json")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}

		return
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// A bomb or an endless answer costs no memory: what is allocated for a try is bounded, whatever is answered.
func TestAnswersAreReadWithALimit(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range 64 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}).URL
	h := newHarness(t, nil)
	e := h.at(url)
	ev := event.Event{ID: "evt_1", Envelope: []byte("{}")}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)

	a, ok := h.post(t.Context(), webhook.Delivery{ID: "1"}, e, ev, []string{secretA})

	runtime.ReadMemStats(&after)
	h.client.CloseIdleConnections()

	if !ok || a.attempt.HTTPStatus != 200 || !a.attempt.Response.BodyTruncated ||
		len(a.attempt.Response.Body) != maxBody {
		t.Errorf("the try is %v %+v", ok, a.attempt.HTTPStatus)
	}
	// The server in this process allocates its one chunk besides.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

func TestRequestIsWhatReceiversExpect(t *testing.T) {
	var (
		got  *http.Request
		body []byte
	)

	url := serve(t, func(_ http.ResponseWriter, q *http.Request) {
		got = q.Clone(context.Background())
		body, _ = io.ReadAll(q.Body)
	}).URL
	h := newHarness(t, nil)
	e, secret := h.endpoint(tester, url+"/hook?x=1", event.InvoicePaid)
	h.postOnce()
	d := h.deliveries(e.ID)[0]

	ev, err := h.GetEvent(t.Context(), tester, d.EventID)
	if err != nil {
		t.Fatal(err)
	}

	if got.Method != http.MethodPost || got.URL.RequestURI() != "/hook?x=1" ||
		!bytes.Equal(body, ev.Envelope) {
		t.Errorf("%s %s %s", got.Method, got.URL, body)
	}

	want := http.Header{
		"Content-Type":        {"application/json"},
		"User-Agent":          {userAgent},
		"Service-Event-Id":    {ev.ID},
		"Service-Delivery-Id": {d.ID},
		"Service-Signature":   {webhook.Sign(body, start, secret)},
		"Content-Length":      {fmt.Sprint(len(body))},
	}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}

	if err := webhook.VerifyAt(body, got.Header.Get(webhook.SignatureHeader), start, secret); err != nil {
		t.Error(err)
	}
}
