package httpapi

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
)

// tagSize is the size in bytes of a cursor's tag: the rest of maxParam beside the longest sort key.
const tagSize = 9

// nameList returns the message that binds a cursor to its list: the operation, its path, the filters, and the
// owner.
func (c *call) nameList(filters url.Values) []byte {
	return []byte(strings.Join([]string{
		"cursors", c.op.id, c.path, filters.Encode(), c.owner.AccountID, strconv.FormatBool(c.owner.Livemode),
	}, "\x00"))
}

// cursor returns the opaque text that continues the list after the row with the sort key last. It begins with a tag
// under payments.Config.SecretKey.
func (c *call) cursor(last string) string {
	tag := c.seal.ShortMAC([]byte(last), c.list, tagSize)

	return base64.RawURLEncoding.EncodeToString(append(tag, last...))
}

// readCursor sets c.after from a cursor of this list. Any other text, such as an altered cursor, is
// fault.Invalid.
func (c *call) readCursor(s string) error { // spec D1.9
	if s == "" {
		return nil
	}

	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(s) > maxParam || len(raw) <= tagSize ||
		!c.seal.VerifyShortMAC(raw[tagSize:], c.list, raw[:tagSize]) {
		return invalid(
			"starting_after",
			"starting_after is no cursor of this list: pass the next_cursor of the page before, unchanged, and send "+
				"the same filters with every page",
		)
	}

	c.after = string(raw[tagSize:])

	return nil
}
