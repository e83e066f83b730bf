package simulation

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"
)

// epoch is when every run begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is the true time, which the networks stamp their blocks with. A process reads it with an offset.
// A slow store advances it in whichever goroutine waits for the store.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.at = c.at.Add(d)
}

// entropy is the seeded source of everything that the engines draw. It is safe for concurrent use, as
// payments.Config asks.
type entropy struct {
	mu     sync.Mutex
	random *rand.ChaCha8
}

func newEntropy(seed uint64) *entropy {
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)

	return &entropy{random: rand.NewChaCha8(key)}
}

// Read fills b.
func (e *entropy) Read(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()

	return e.random.Read(b)
}
