package follow

import "time"

// longStore is the time for storing a batch beyond which the next one holds fewer blocks.
const longStore = 2 * time.Second

// firstBatch is the number of blocks in the first batch of a process, which does not know yet how busy they
// are.
const firstBatch = 8

// batchSize is the largest number of blocks in a batch. Busy blocks are stored a few at a time: their
// contents are published soon, and no transaction of the store becomes too long. The size grows only after a
// full batch that was stored quickly, since a process that follows the tip block by block may fall behind
// later.
type batchSize struct{ most, now uint64 }

// stored adapts the size after a batch was stored, or could not be.
func (s *batchSize) stored(blocks int, took time.Duration, err error) {
	switch {
	case blocks == 0:
	case err != nil || took > longStore:
		s.now = max(min(s.now, uint64(blocks))/2, 1)
	case took < longStore/4 && uint64(blocks) >= s.now:
		s.now = min(2*s.now, s.most)
	}
}
