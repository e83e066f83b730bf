// Package paging holds the one rule for the size of a page, which every list follows.
package paging

// The bounds of a page's limit, in entries (specification 4.1).
const (
	Default = 50 // spec 4.1.3
	Least   = 1
	Most    = 100
)

// Limit returns the page size for a Go caller's limit: Default when n is 0, else the nearest bound (decisions
// part 11). Over HTTP, limits outside the bounds are refused earlier.
func Limit(n int) int { // spec D11.29
	if n == 0 {
		return Default
	}

	return min(max(n, Least), Most)
}

// Page returns the first limit of the read entries, and whether there are more.
func Page[T any](read []T, limit int, err error) (page []T, more bool, _ error) {
	if err != nil {
		return nil, false, err
	}

	return read[:min(len(read), limit)], len(read) > limit, nil
}
