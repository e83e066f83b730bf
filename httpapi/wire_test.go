package httpapi_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/limits"
)

// listen serves the shop as limits.Server does, and returns its address.
func (s *shop) listen(t *testing.T) string {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	server := limits.Server(t.Context(), s.handler)
	ended := make(chan error, 1)

	go func() { ended <- server.Serve(listener) }()

	t.Cleanup(func() {
		_ = server.Close()

		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})

	return listener.Addr().String()
}

// exchange writes bytes to a new connection and returns the statuses of all answers until the server closes it.
func exchange(t *testing.T, address, text string) (statuses []int) {
	t.Helper()

	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}

	defer func() { _ = conn.Close() }()

	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}

	if _, err := io.WriteString(conn, text); err != nil {
		return nil
	}

	reader := bufio.NewReader(conn)

	for {
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			return statuses
		}

		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()

		statuses = append(statuses, answer.StatusCode)
		if answer.Close {
			return statuses
		}
	}
}

// TestRequestsThatTwoServersReadDifferently: of bytes that a proxy in front may read as one request and this server as
// another, no second request is carried out.
func TestRequestsThatTwoServersReadDifferently(t *testing.T) {
	s := open(t, nil)
	address := s.listen(t)

	head := func(lines ...string) string {
		return "POST /v1/invoices HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key +
			"\r\nContent-Type: application/json\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
	}
	smuggled := "GET /v1/invoices HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key +
		"\r\nConnection: close\r\n\r\n"
	length := fmt.Sprintf("Content-Length: %d", len(invoiceBody))
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(invoiceBody), invoiceBody)

	const (
		chunked = "Transfer-Encoding: chunked"
		ends    = "Connection: close"
		nothing = "0\r\n\r\n"
	)

	for name, c := range map[string]struct {
		text string
		want []int
	}{
		"one length":               {head(length, ends) + invoiceBody, []int{200}},
		"chunks":                   {head(chunked, ends) + chunk + nothing, []int{200}},
		"two lengths":              {head(length, "Content-Length: 0") + invoiceBody + smuggled, []int{400}},
		"two encodings":            {head("Transfer-Encoding: gzip, chunked") + nothing + smuggled, []int{501}},
		"one encoding twice":       {head(chunked, "Transfer-Encoding: Chunked") + nothing + smuggled, []int{501}},
		"a negative length":        {head("Content-Length: -1") + smuggled, []int{400}},
		"a length with a sign":     {head("Content-Length: +5") + smuggled, []int{400}},
		"a chunk without a length": {head(chunked) + "x\r\n" + smuggled, []int{400}},
		"a huge chunk":             {head(chunked) + "ffffffffffffffffff\r\n" + smuggled, []int{400}},
		"a space before the colon": {head("Content-Length : 5") + smuggled, []int{400}},
		"two keys":                 {head("Authorization: Bearer x", "Content-Length: 0", ends), []int{401}},
		"two hosts":                {head("Host: y", "Content-Length: 0") + smuggled, []int{400}},
		"headers without an end":   {head("X-A: " + strings.Repeat("a", 64<<10)), []int{431}},
		"the preface of HTTP/2":    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + smuggled, []int{404}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exchange(t, address, c.text); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("answered %v, want %v", got, c.want)
			}
		})
	}
}
