package follow

import "time"

// longStore is how long the storing of a batch may take before the next one holds fewer blocks.
const longStore = 2 * time.Second

// firstBatch is how many blocks the first batch of a process holds, which does not know yet how busy they are.
const firstBatch = 8

// batchSize is how many blocks a batch holds at most. Busy blocks are stored a few at a time: what they hold is
// published soon, and no transaction grows beyond what the store ends in time. Only a full batch that was stored
// quickly shows that there may be more: a process that follows the tip block by block may fall behind later.
type batchSize struct{ most, now uint64 }

// stored counts a batch that was stored, or could not be.
func (s *batchSize) stored(blocks int, took time.Duration, err error) {
	switch {
	case blocks == 0:
	case err != nil || took > longStore:
		s.now = max(min(s.now, uint64(blocks))/2, 1)
	case took < longStore/4 && uint64(blocks) >= s.now:
		s.now = min(2*s.now, s.most)
	}
}
