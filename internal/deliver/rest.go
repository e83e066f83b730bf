package deliver

import "time"

// After a look-up of due work in the store that found none, wake-ups are ignored for restShare times as long
// as it took. Nothing polls for pollShare times as long, at most maxPoll. So when look-ups are slow, as over
// many database servers, idle workers do not take capacity from busy ones.
const (
	restShare = 4
	pollShare = 50
	maxPoll   = 5 * time.Second
)

// Rest returns two durations after a look-up that found nothing and lasted took. For rest, at most pace, the
// worker ignores wake-ups; after again it looks again.
func Rest(took, pace time.Duration) (rest, again time.Duration) {
	return min(restShare*took, pace), max(pace, min(pollShare*took, maxPoll))
}
