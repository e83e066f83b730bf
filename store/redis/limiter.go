package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/seed-8ee7f392/payments/fault"
)

// takeToken takes one token by the generic cell rate algorithm (ITU-T I.371, annex A) in one step. It returns
// 0, or the seconds until there is a token, rounded up.
//
// A bucket is stored as the time at which it is full, in whole microseconds of Redis' clock, rounded down in
// the caller's favour. A full bucket has no key. If the stored time is later than that of an empty bucket,
// the clock was set back or the burst was reduced: the bucket then counts as empty. The script calculates
// with the distance to the present, because a Lua number has no digits left for fractions of an absolute time
// in microseconds.
var takeToken = goredis.NewScript(`
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

// Allow implements store.Limiter. Its errors are fault.Invalid for a rate below 1, and fault.Unavailable.
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
		keys := []string{s.options.Prefix + "limit:" + key}
		retryAfterSeconds, err = takeToken.Run(ctx, s.client, keys, perSecond, burst).Int()

		return err
	})

	return err == nil && retryAfterSeconds == 0, retryAfterSeconds, err
}
