package failover

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// maxRetryAfter bounds the time that a node may ask to be left alone for.
const maxRetryAfter = time.Hour

// laterOf reports whether a response means that the same request may be answered later, and when: 0 where the node
// does not say. The body can be read all the same. Statuses 403 and 503 need the node's word that it is about time.
//
// The forms are Retry-After in seconds or as a date (RFC 9110, section 10.2.3), RateLimit-Reset in seconds,
// X-RateLimit-Reset also in Unix seconds, and a sentence such as TronGrid's "suspended for 5s".
func laterOf(
	answer *http.Response,
	now time.Time,
	isLater func(body []byte) bool,
) (wait time.Duration, later bool) {
	switch answer.StatusCode {
	case http.StatusOK:
		return 0, isLater != nil && isLater(peek(answer))
	case http.StatusTooManyRequests, http.StatusForbidden, http.StatusServiceUnavailable:
	default:
		return 0, false
	}

	wait, said := laterByHeader(answer.Header, now)
	if !said {
		wait, said = laterByText(answer)
	}

	return min(max(wait, 0), maxRetryAfter), said || answer.StatusCode == http.StatusTooManyRequests
}

// laterByHeader returns when a response's headers say that a request may be repeated.
func laterByHeader(header http.Header, now time.Time) (wait time.Duration, said bool) {
	if date, err := http.ParseTime(header.Get("Retry-After")); err == nil {
		return date.Sub(now), true
	}

	for _, name := range []string{"Retry-After", "RateLimit-Reset", "X-RateLimit-Reset"} {
		seconds, err := strconv.ParseFloat(header.Get(name), 64)
		if err != nil || seconds <= 0 || math.IsInf(seconds, 0) {
			continue
		}

		if unix := float64(now.Unix()); seconds > unix/2 {
			seconds -= unix
		}

		return secondsOf(seconds), true
	}

	return 0, false
}

func secondsOf(seconds float64) time.Duration {
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}

// laterText finds a time in a sentence about later.
var laterText = regexp.MustCompile(
	`(?i)(?:suspended|retry|try again|wait|available)[^0-9{}]{0,40}?([0-9]+(?:\.[0-9]+)?) ?(ms|milli|s|m)`,
)

// maxLaterText bounds the part of a body in which a time is searched, in bytes.
const maxLaterText = 4096

// laterByText returns when a response's body says that a request may be repeated.
func laterByText(answer *http.Response) (wait time.Duration, said bool) {
	found := laterText.FindSubmatch(peek(answer))
	if found == nil {
		return 0, false
	}

	number, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return 0, false
	}

	switch string(bytes.ToLower(found[2])) {
	case "ms", "milli":
		number /= 1000
	case "m":
		number *= 60
	}

	return secondsOf(number), true
}

// peek returns the beginning of a body, which can be read all the same.
func peek(answer *http.Response) []byte {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxLaterText))
	answer.Body = readCloser{io.MultiReader(bytes.NewReader(text), answer.Body), answer.Body}

	return text
}

// readCloser reads from one and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}
