package checkout

import (
	"sync"
	"time"
)

// cache keeps values for a short time. It is safe for concurrent use.
type cache[T any] struct {
	now func() time.Time
	ttl time.Duration

	mu      sync.Mutex
	entries map[string]cacheEntry[T]
}

type cacheEntry[T any] struct {
	value   T
	expires time.Time
}

// maxCached is the number of entries at which a cache is cleared.
const maxCached = 1000

// get returns the value of a key, or calls fetch when it is absent or expired. Errors are not cached.
func (c *cache[T]) get(key string, fetch func() (T, error)) (T, error) {
	now := c.now()

	c.mu.Lock()
	hit, ok := c.entries[key]
	c.mu.Unlock()

	if ok && now.Before(hit.expires) {
		return hit.value, nil
	}

	value, err := fetch()
	if err != nil {
		return value, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.entries == nil || len(c.entries) >= maxCached {
		c.entries = map[string]cacheEntry[T]{}
	}

	c.entries[key] = cacheEntry[T]{value, now.Add(c.ttl)}

	return value, nil
}
