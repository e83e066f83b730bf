package drivertest

import (
	"strings"
	"testing"
)

// A hash of base58 may hold none of the digits, and one of hex none of the letters.
func TestAnotherHashIsAnother(t *testing.T) {
	for name, c := range map[string]struct{ hash, want string }{
		"base58 without a digit": {"YbEmkWpGzLqT", "YbEmkWpGzLTq"},
		"hex without a letter":   {"0x" + strings.Repeat("1", 62) + "20", "0x" + strings.Repeat("1", 62) + "02"},
		"equal at its end":       {"7ab000", "7a0b00"},
	} {
		if got := otherHash(c.hash); got != c.want {
			t.Errorf("%s: %s is %s, want %s", name, c.hash, got, c.want)
		}
	}
}
