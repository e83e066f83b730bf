package httpapi

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// bucketsKept bounds the memory of buckets: about twice as many are kept.
const bucketsKept = 10_000

// buckets is a store.Limiter of this process: token buckets, the least used of which are forgotten. To forget
// one fills it up, so a forgotten key may have one burst more.
type buckets struct {
	now func() time.Time

	mu          sync.Mutex
	young, aged map[string]*rate.Limiter
}

// Allow takes one token; see store.Limiter.
func (b *buckets) Allow(_ context.Context, key string, perSecond, burst int) (ok bool, retryAfterSeconds int, err error) {
	now := b.now()
	limiter := b.of(key, perSecond, burst, now)
	r := limiter.ReserveN(now, 1)
	if !r.OK() {
		return false, 1, nil
	}
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return false, int(math.Ceil(wait.Seconds())), nil
	}
	return true, 0, nil
}

func (b *buckets) of(key string, perSecond, burst int, now time.Time) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	limiter, ok := b.young[key]
	if !ok {
		if limiter, ok = b.aged[key]; !ok {
			limiter = rate.NewLimiter(rate.Limit(perSecond), burst)
		}
		if b.young == nil || len(b.young) >= bucketsKept {
			b.young, b.aged = make(map[string]*rate.Limiter), b.young
		}
		b.young[key] = limiter
	}
	if limiter.Limit() != rate.Limit(perSecond) || limiter.Burst() != burst { // the account's settings changed
		limiter.SetLimitAt(now, rate.Limit(perSecond))
		limiter.SetBurstAt(now, burst)
	}
	return limiter
}
