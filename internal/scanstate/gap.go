package scanstate

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain/scan"
)

// gapPrefix begins the ids of gaps; the network's slug follows.
const gapPrefix = "gap-"

// NewGap returns the row of blocks that no node had when a person resumed the network above them. It is read, for all
// addresses, once a node has them.
func NewGap(network string, from, to uint64, now time.Time) *scan.Range {
	return &scan.Range{
		ID:        fmt.Sprint(gapPrefix, network, "-", from),
		Network:   network,
		Next:      from,
		To:        to,
		CreatedAt: now,
	}
}

// IsGap reports whether a range is a gap, or the part of a gap that is still to be read.
func IsGap(r scan.Range) bool { return strings.HasPrefix(r.ID, gapPrefix) }
