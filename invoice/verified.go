package invoice

import (
	"sync"
	"time"
)

// verifiedFor is how long the row of a shown address counts as verified. Changing the row meanwhile gains
// nothing: the payer has already seen the address, and another address is not remembered as this object's.
const verifiedFor = time.Minute

// maxVerified bounds the remembered addresses of one generation.
const maxVerified = 1 << 13

// verifiedAddresses remembers which shown addresses were verified, in two generations of half of verifiedFor.
// An address is forgotten when the generation after its own ends. The zero value is empty.
type verifiedAddresses struct {
	mu       sync.Mutex
	began    time.Time // when the newer generation began
	newer    map[shownAddress]struct{}
	previous map[shownAddress]struct{}
}

// without returns the shown addresses that are not remembered.
func (v *verifiedAddresses) without(shown []shownAddress, now time.Time) (unknown []shownAddress) {
	v.mu.Lock()
	defer v.mu.Unlock()

	v.age(now)

	for _, x := range shown {
		_, newer := v.newer[x]
		if _, previous := v.previous[x]; !newer && !previous {
			unknown = append(unknown, x)
		}
	}

	return unknown
}

// add remembers addresses.
func (v *verifiedAddresses) add(shown []shownAddress, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()

	v.age(now)

	for _, x := range shown {
		if len(v.newer) >= maxVerified {
			v.begin(now)
		}

		v.newer[x] = struct{}{}
	}
}

// age begins a new generation if the newer one has lasted half of verifiedFor, or if the clock went back.
func (v *verifiedAddresses) age(now time.Time) {
	switch lasted := now.Sub(v.began); {
	case lasted >= verifiedFor || lasted < 0:
		v.begin(now)
		v.previous = nil
	case lasted >= verifiedFor/2:
		v.begin(now)
	}
}

// begin makes the newer generation the previous one.
func (v *verifiedAddresses) begin(now time.Time) {
	v.began, v.previous, v.newer = now, v.newer, map[shownAddress]struct{}{}
}
