package bitcoin

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// ready is what a publisher answers: its greeting and READY, with a property of its own.
func ready() []byte {
	greeting := zmtpOpening()

	return slices.Concat(
		greeting[:greetingSize],
		[]byte{frameCommand, byte(len(frameReady))},
		[]byte(frameReady),
	)
}

// frame is a frame of less than 256 bytes.
func frame(flags byte, body string) []byte {
	return append([]byte{flags, byte(len(body))}, body...)
}

func TestZMTPRefuses(t *testing.T) {
	other := func(at int, b byte) []byte {
		changed := ready()
		changed[at] = b

		return changed
	}

	pings := bytes.Repeat(frame(frameCommand, "\x04PING"), 99)

	for name, c := range map[string]struct {
		answer []byte
		want   error
	}{
		"a publisher that is ready":       {ready(), nil},
		"one of a later version":          {other(10, 4), nil},
		"one of ZMTP 2":                   {other(10, 2), errNotZMTP},
		"one with a password":             {other(12, 'C'), errNotZMTP},
		"another protocol":                {[]byte(strings.Repeat("HTTP/1.1 400 ", 8)), errNotZMTP},
		"a message before it is ready":    {append(ready()[:greetingSize], frame(0, "x")...), errNotZMTP},
		"unknown flags":                   {append(ready()[:greetingSize], frame(0x80, "x")...), errNotZMTP},
		"nothing":                         {nil, io.EOF},
		"half a greeting":                 {ready()[:20], io.ErrUnexpectedEOF},
		"a frame of 2^63 bytes":           {append(ready()[:greetingSize], 6, 0x80, 0, 0, 0, 0, 0, 0, 0), errTooLarge},
		"commands without end":            {append(ready()[:greetingSize], pings...), errNotZMTP},
		"a command, then it is ready":     {slices.Insert(ready(), greetingSize, frame(4, "\x04PING")...), nil},
		"an error instead of being ready": {append(ready()[:greetingSize], frame(4, frameError+"\x00")...), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var sent bytes.Buffer

			err := subscribeZMTP(&sent, bufio.NewReader(bytes.NewReader(c.answer)), blockTopic)
			if strings.HasPrefix(name, "an error") {
				if err == nil {
					t.Error("it was accepted")
				}

				return
			}

			if !errors.Is(err, c.want) {
				t.Errorf("it was answered %v, not %v", err, c.want)
			}
		})
	}
}

func TestZMTPNotifications(t *testing.T) {
	stream := slices.Concat(
		frame(frameMore, "hashblock"),
		frame(frameMore, strings.Repeat("h", 32)),
		frame(0, "\x00\x00\x00\x00"),
		frame(frameCommand, "\x04PING"),
		frame(frameMore, "hashtx"),
		frame(frameCommand, "\x04PING"),
		frame(0, "hashblock"),
		frame(0, "hashblock"),
		[]byte{frameLong, 0, 0, 0, 0, 0, 0, 0, 2, 'o', 'k'},
	)
	from := bufio.NewReader(bytes.NewReader(stream))

	for _, want := range []string{"hashblock", "hashtx", "hashblock", "ok"} {
		if topic, err := readNotification(from); topic != want || err != nil {
			t.Errorf("the topic is %q (%v), not %q", topic, err, want)
		}
	}

	if _, err := readNotification(from); !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %v", err)
	}
}

// FuzzZMTP reads what any publisher may send: it ends, and takes no more memory than a frame may have.
func FuzzZMTP(f *testing.F) {
	f.Add(ready())
	f.Add(append(ready(), frame(0, "hashblock")...))
	f.Add(append(ready(), 6, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF))

	f.Fuzz(func(t *testing.T, stream []byte) {
		from := bufio.NewReader(bytes.NewReader(stream))
		if err := subscribeZMTP(io.Discard, from, blockTopic); err != nil {
			return
		}

		for {
			topic, err := readNotification(from)
			if len(topic) > maxFrame {
				t.Fatalf("a topic of %d bytes", len(topic))
			}

			if err != nil {
				return
			}
		}
	})
}
