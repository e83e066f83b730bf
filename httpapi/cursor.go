package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
)

// hashFilters returns the first bytes of SHA-256 over operation, path and filters. A cursor carries
// them, so that it continues this list only.
func (c *call) hashFilters(filters url.Values) [hashSize]byte {
	if !c.op.paged {
		return [hashSize]byte{}
	}

	h := sha256.Sum256([]byte(c.op.id + "\x00" + c.path + "\x00" + filters.Encode()))

	return [hashSize]byte(h[:hashSize])
}

// cursor returns the opaque text that continues the list after the row with the sort key last.
func (c *call) cursor(last string) string {
	return base64.RawURLEncoding.EncodeToString(append(c.filters[:], last...))
}

// readCursor sets c.after from a cursor of this list; another cursor is fault.Invalid.
func (c *call) readCursor(s string) error { // spec D1.9
	if s == "" {
		return nil
	}

	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(s) > maxParam || len(raw) <= hashSize || !printable(raw[hashSize:]) {
		return invalid(
			"starting_after",
			"starting_after is not a cursor: pass the next_cursor of the page before, unchanged",
		)
	}

	if [hashSize]byte(raw) != c.filters {
		return invalid(
			"starting_after",
			"starting_after belongs to another list: send the same filters with every page",
		)
	}

	c.after = string(raw[hashSize:])

	return nil
}

// printable reports whether all bytes are visible ASCII, without spaces.
func printable(text []byte) bool {
	for _, c := range text {
		if c < '!' || c > '~' {
			return false
		}
	}

	return true
}
