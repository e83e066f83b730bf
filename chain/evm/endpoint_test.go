package evm

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A body of exactly the limit is read whole; one more byte is too large.
func TestResponseLimit(t *testing.T) {
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"at once":            func(r io.Reader) io.Reader { return r },
		"byte by byte":       iotest.OneByteReader,
		"its end with bytes": iotest.DataErrReader,
	} {
		for length, tooLarge := range map[int]bool{0: false, 99: false, 100: false, 101: true, 5000: true} {
			text := strings.Repeat("x", length)
			body := &boundedBody{ReadCloser: io.NopCloser(wrap(strings.NewReader(text))), remaining: 100}

			got, err := io.ReadAll(body)
			if errors.Is(err, errBodyTooLarge) != tooLarge ||
				!tooLarge && (err != nil || string(got) != text) {
				t.Errorf("%s, %d bytes: %d bytes, %v", name, length, len(got), err)
			}
		}
	}
}

// Numbers that a provider pads are those that go-ethereum reads.
func TestPaddedSignaturesAreRead(t *testing.T) {
	raw := []byte(`{"v":"0x00","r":"0x01d8","s":"0x0","yParity":null,"value":"0x5"}`)
	if got := canonicalNumbers(
		raw,
	); !bytes.Equal(
		got,
		[]byte(`{"r":"0x1d8","s":"0x0","v":"0x0","value":"0x5"}`),
	) {
		t.Errorf("%s", got)
	}

	if got := canonicalNumbers([]byte(`[]`)); string(got) != "[]" {
		t.Errorf("%s", got)
	}
}
