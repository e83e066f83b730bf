package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/seed-8ee7f392/payments/fault"
)

// take is the generic cell rate algorithm (ITU-T I.371, annex A) in one step. A bucket is kept as
// the time at which it is full again, in whole microseconds of Redis' own clock, rounded down in
// the caller's favour; a full bucket is no key. A time further ahead than an empty bucket's, from a
// clock that was set back or a larger burst that was taken away, becomes that of an empty one. The
// answer is 0, or the seconds until there is a token, rounded up. What is reckoned with is the
// distance to the present, because a whole time in microseconds leaves a Lua number no room for
// fractions.
var take = goredis.NewScript(`
local token = 1e6 / tonumber(ARGV[1])
local most = token * tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1e6 + tonumber(time[2])
local function keep(ahead)
	local at = string.format('%.0f', now + math.floor(ahead))
	redis.call('SET', KEYS[1], at, 'PX', math.max(1, math.ceil(ahead / 1e3)))
end
local ahead = math.max(0, tonumber(redis.call('GET', KEYS[1]) or now) - now)
if ahead > most then
	ahead = most
	keep(ahead)
end
local after = ahead + token
if after >= most + 1 then
	return math.max(1, math.ceil((after - most) / 1e6))
end
keep(after)
return 0
`)

// Allow takes one token; see store.Limiter.
func (s *Shared) Allow(
	ctx context.Context,
	key string,
	perSecond, burst int,
) (ok bool, retryAfterSeconds int, err error) {
	if perSecond < 1 || burst < 1 {
		return false, 0, fault.New(
			fault.Invalid, "rate_invalid",
			"a bucket of %d refilled at %d a second cannot be kept: both are at least 1",
			burst, perSecond,
		)
	}

	err = s.call(ctx, "take a token from the shared rate limiter", func(ctx context.Context) (err error) {
		retryAfterSeconds, err = take.Run(ctx, s.client, []string{s.options.Prefix + "limit:" + key}, perSecond, burst).
			Int()

		return err
	})

	return err == nil && retryAfterSeconds == 0, retryAfterSeconds, err
}
