package deliver

import "time"

// A look into the store for due work that found none took some time. For restShare times as long wake-ups are ignored,
// and for pollShare times as long, at most maxPoll, nothing polls: where looking is dear, as over many database
// servers, idle workers do not take what those with work need.
const (
	restShare = 4
	pollShare = 50
	maxPoll   = 5 * time.Second
)

// Rest returns for how long a worker ignores wake-ups after a look that found nothing and took so long, at most its
// pace, and after which time it looks again.
func Rest(took, pace time.Duration) (rest, again time.Duration) {
	return min(restShare*took, pace), max(pace, min(pollShare*took, maxPoll))
}
