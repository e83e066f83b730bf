package failover

import "net/http"

// Client returns the HTTP client for nodes: the configured one, or one without a time limit of its
// own, that follows no redirects, which could carry a request and the key in it to anybody.
func Client(configured *http.Client) *http.Client {
	var client http.Client
	if configured != nil {
		client = *configured
	} else {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 16
		client.Transport = t
	}

	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	return &client
}

// Positive returns v if it is above zero, else the default.
func Positive[T ~int | ~int64](v, otherwise T) T {
	if v > 0 {
		return v
	}

	return otherwise
}
