package failover

import "net/http"

// Client returns a copy of the configured HTTP client, or a default one without a timeout. Both
// follow no redirects, which could carry a request and its API key to another host.
func Client(configured *http.Client) *http.Client {
	var client http.Client
	if configured != nil {
		client = *configured
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 16
		client.Transport = transport
	}

	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	return &client
}

// Positive returns value if it is above zero, else fallback.
func Positive[T ~int | ~int64](value, fallback T) T {
	if value > 0 {
		return value
	}

	return fallback
}
