// Package id makes and reads the ids of all stored objects: 24 lowercase hex characters for 12 bytes. These
// are 48 bits of Unix milliseconds, big endian, and 48 bits of randomness.
//
// Ids sort by the time they were made, as text and as bytes, so that every list pages by id alone. Within one
// Source they strictly grow. Between processes they sort by millisecond. They cannot be guessed: two ids of
// one millisecond are a random step of 32 bits apart.
package id

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

const (
	size        = 24 // characters
	eventPrefix = "evt_"
	maxMillis   = 1<<48 - 1 // in the year 10889
	maxRandom   = 1<<48 - 1
)

// Source makes ids. It is safe for concurrent use.
type Source struct {
	now func() time.Time

	mu      sync.Mutex
	entropy *bufio.Reader
	begun   bool
	millis  uint64 // the last id's time, 48 bits
	random  uint64 // the last id's randomness, 48 bits
}

// New returns a Source. A nil now is time.Now, a nil entropy crypto/rand.
func New(now func() time.Time, entropy io.Reader) *Source {
	if now == nil {
		now = time.Now
	}

	if entropy == nil {
		entropy = rand.Reader
	}

	return &Source{now: now, entropy: bufio.NewReaderSize(entropy, 1024)}
}

// Next returns an id greater than all that the Source returned before. In a new millisecond it is the time
// and fresh randomness. In the same millisecond, or if the clock went back, it is the last id plus a random
// step of 1 to 2^32; a sum beyond 48 bits carries into the time.
//
// Next panics when the entropy fails, which crypto/rand does not, and at the end of ids in the year 10889.
func (s *Source) Next() string { // spec D1.1
	var text [size]byte
	s.put(&text)

	return string(text[:])
}

// Event returns the id of an event: "evt_" and an id.
func (s *Source) Event() string { // spec 2.1.2
	var text [size]byte
	s.put(&text)

	return eventPrefix + string(text[:])
}

func (s *Source) put(text *[size]byte) { // spec 2.1.1
	millis, random := s.advance()

	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], millis<<16)
	binary.BigEndian.PutUint64(raw[6:14], random<<16)
	hex.Encode(text[:], raw[:size/2])
}

// advance returns the time and randomness of the next id, 48 bits each.
func (s *Source) advance() (millis, random uint64) {
	at := s.now().UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	// Clocks before 1970 or after the last millisecond are clamped; order and uniqueness still hold.
	fresh := uint64(min(max(at, 0), maxMillis))
	if !s.begun || fresh > s.millis {
		s.begun, s.millis, s.random = true, fresh, s.draw(6)
		return s.millis, s.random
	}

	s.random += s.draw(4) + 1
	if s.random > maxRandom {
		s.random &= maxRandom

		s.millis++
		if s.millis > maxMillis {
			panic("id: no ids are left: the clock is at the end of the year 10889")
		}
	}

	return s.millis, s.random
}

// draw reads n bytes of entropy, at most 8.
func (s *Source) draw(n int) uint64 {
	b, err := s.entropy.Peek(n)
	if err != nil {
		panic("id: cannot read entropy: " + err.Error())
	}

	var v uint64
	for _, x := range b {
		v = v<<8 | uint64(x)
	}

	_, _ = s.entropy.Discard(n) // it was peeked, so it is there

	return v
}

// Valid reports whether id has the form of Next: 24 lowercase hex characters.
func Valid(id string) bool {
	if len(id) != size {
		return false
	}

	for i := range len(id) {
		if c := id[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}

	return true
}

// Time returns when an id was made, to the millisecond, in UTC. It accepts ids of Next and Event; anything
// else is fault.Invalid with code id_invalid.
func Time(id string) (time.Time, error) {
	bare := strings.TrimPrefix(id, eventPrefix)
	if !Valid(bare) {
		return time.Time{}, fault.New(
			fault.Invalid, "id_invalid", "%s is not an id: 24 lowercase hex characters",
			quoted(id),
		)
	}

	var raw [8]byte
	if _, err := hex.Decode(raw[2:], []byte(bare[:12])); err != nil {
		return time.Time{}, fault.Wrap(err, fault.Invalid, "id_invalid", "%s is not an id", quoted(id))
	}

	return time.UnixMilli(int64(binary.BigEndian.Uint64(raw[:]))).UTC(), nil
}

// CreatedAt returns the time of an id that a Source made, which is when its object was created. It panics for
// any other text.
func CreatedAt(id string) time.Time {
	at, err := Time(id)
	if err != nil {
		panic("id: " + err.Error())
	}

	return at
}

// Bound returns the text that splits ids by time: ids made before at are less, all others are not. The ids of
// events have a bound of their own: [EventBound].
func Bound(at time.Time) string {
	millis := at.UnixMilli()
	if time.UnixMilli(millis).Before(at) {
		millis++ // ids have whole milliseconds
	}

	return fmt.Sprintf("%012x", min(max(millis, 0), maxMillis))
}

// EventBound is Bound for the ids of events.
func EventBound(at time.Time) string { return eventPrefix + Bound(at) }

// quoted quotes a caller's text for a message, and shortens it.
func quoted(s string) string {
	if len(s) > 64 {
		s = s[:64] + "…"
	}

	return fmt.Sprintf("%q", s)
}
