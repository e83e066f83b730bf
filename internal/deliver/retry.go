package deliver

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryDelays are the delays after the first failed attempt, the second, and so on: ten attempts over about
// three days. It is a table, so that no arithmetic can overflow.
var retryDelays = [...]time.Duration{ // spec D8.15
	5 * time.Second,
	5 * time.Minute,
	30 * time.Minute,
	2 * time.Hour,
	5 * time.Hour,
	10 * time.Hour,
	10 * time.Hour,
	24 * time.Hour,
	24 * time.Hour,
}

// maxRetryAfter is the longest wait that an endpoint may ask for.
const maxRetryAfter = 24 * time.Hour // spec D8.16

// retryDelay returns the delay after a number of failed attempts, ±10 % by jitter, 64 random bits. asked is
// the endpoint's Retry-After; it is used if it is longer, up to 24 h. ok is false when no attempts remain.
func retryDelay(tries int, asked time.Duration, jitter uint64) (delay time.Duration, ok bool) {
	if tries < 1 || tries > len(retryDelays) {
		return 0, false
	}

	delay = retryDelays[tries-1]
	delay += time.Duration(jitter%uint64(delay/5+1)) - delay/10

	return max(delay, min(asked, maxRetryAfter)), true
}

// ParseRetryAfter returns the delay from now, 0 to 24 h, of a Retry-After header: seconds or an HTTP date
// (RFC 9110, section 10.2.3). Anything else is 0.
func ParseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter // digits that do not fit mean very many seconds
		}

		return time.Duration(seconds) * time.Second
	}

	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}

	return min(max(at.Sub(now), 0), maxRetryAfter)
}
