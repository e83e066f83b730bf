package deliver

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/seed-8ee7f392/payments/internal/ssrf"
)

// This file holds the HTTP client that posts to endpoints. Merchants choose the URLs, so the client
// must not give access to our own network (SSRF). It connects to public addresses only, and checks
// them when it connects, not when the name is looked up. It follows no redirect, uses no proxy and
// never decompresses a response.

// HTTP configures how endpoints are connected to. The zero value is right for the internet.
type HTTP struct {
	// Allow opens address ranges that are otherwise forbidden for webhooks: for tests and intranets.
	Allow []netip.Prefix
	// RootCAs verify an endpoint's certificate. Defaults to the system's.
	RootCAs *x509.CertPool
	// Resolver looks up names. Defaults to net.DefaultResolver.
	Resolver *net.Resolver
	// Timeout limits an attempt, from looking up the name to the last byte read. Defaults to 15 s, and is at
	// most that.
	Timeout time.Duration
}

// DefaultTimeout is the time limit of one attempt.
const DefaultTimeout = 15 * time.Second // spec D8.23

func newClient(g ssrf.Guard, h HTTP) *http.Client {
	dialer := &net.Dialer{Control: g.Control, Resolver: h.Resolver, KeepAlive: 30 * time.Second}

	return &http.Client{
		// spec D8.22
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                  nil, // the address check would see only the proxy
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: h.RootCAs, MinVersion: tls.VersionTLS12},
			DisableCompression:     true, // the answer is kept as received: a small one cannot become a big one
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConns:           256,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        30 * time.Second,
			// HTTP/1.1 only: over HTTP/2 all retries would share a dead connection until it is detected.
			Protocols: http1(),
		},
	}
}

func http1() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)

	return &p
}
