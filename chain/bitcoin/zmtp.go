package bitcoin

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// This file is the subscriber's side of ZMTP 3.0 (https://rfc.zeromq.org/spec/23/). A node's notifications
// need only a part of it: the NULL mechanism, one subscription, and short frames.

// Bits of a frame's flags.
const (
	frameMore    = 1 << 0 // another frame of the message follows
	frameLong    = 1 << 1 // the size has 8 bytes
	frameCommand = 1 << 2
)

const (
	// maxFrame bounds a frame, in bytes. A block's hash has 32.
	maxFrame = 4 << 10
	// maxBefore bounds the commands before a peer is ready.
	maxBefore = 8

	greetingSize = 64
	frameReady   = "\x05READY"
	frameError   = "\x05ERROR"
)

var (
	errNotZMTP  = errors.New("it does not speak ZMTP 3")
	errTooLarge = errors.New("it sent a frame larger than a notification")
)

// subscribeZMTP greets a publisher and subscribes to a topic.
func subscribeZMTP(conn io.Writer, from *bufio.Reader, topic string) error {
	if _, err := conn.Write(zmtpOpening()); err != nil {
		return err
	}

	var greeting [greetingSize]byte
	if _, err := io.ReadFull(from, greeting[:]); err != nil {
		return err
	}

	// The signature, and a major version of 3 or above.
	if greeting[0] != 0xFF || greeting[9] != 0x7F || greeting[10] < 3 ||
		string(greeting[12:17]) != "NULL\x00" {
		return errNotZMTP
	}

	for range maxBefore {
		flags, body, err := readFrame(from)

		switch {
		case err != nil:
			return err
		case flags&frameCommand == 0:
			return errNotZMTP
		case hasPrefix(body, frameReady):
			// The publisher accepts no message before it is ready.
			_, err := conn.Write(zmtpSubscription(topic))
			return err
		case hasPrefix(body, frameError):
			return errors.New("it refused the connection")
		}
	}

	return errNotZMTP
}

// zmtpOpening returns the first bytes of a subscriber: its greeting, and READY.
func zmtpOpening() []byte {
	out := make([]byte, greetingSize, 2*greetingSize)
	out[0], out[9], out[10] = 0xFF, 0x7F, 3
	copy(out[12:], "NULL")

	const property = "Socket-Type"

	ready := frameReady + string(rune(len(property))) + property
	ready += string(binary.BigEndian.AppendUint32(nil, 3)) + "SUB"

	out = append(out, frameCommand, byte(len(ready)))

	return append(out, ready...)
}

// zmtpSubscription returns a subscription message, which begins with 1.
func zmtpSubscription(topic string) []byte {
	return append([]byte{0, byte(1 + len(topic)), 1}, topic...)
}

// readNotification reads one message and returns its topic.
func readNotification(from *bufio.Reader) (topic string, err error) {
	for first := true; ; {
		flags, body, err := readFrame(from)
		if err != nil {
			return "", err
		}

		if flags&frameCommand != 0 {
			continue
		}

		if first {
			topic, first = string(body), false
		}

		if flags&frameMore == 0 {
			return topic, nil
		}
	}
}

// readFrame reads one frame of at most maxFrame bytes.
func readFrame(from *bufio.Reader) (flags byte, body []byte, err error) {
	if flags, err = from.ReadByte(); err != nil {
		return 0, nil, err
	}

	if flags&^(frameMore|frameLong|frameCommand) != 0 {
		return 0, nil, errNotZMTP
	}

	size := make([]byte, 1, 8)
	if flags&frameLong != 0 {
		size = size[:8]
	}

	if _, err := io.ReadFull(from, size); err != nil {
		return 0, nil, err
	}

	n := uint64(size[0])
	if flags&frameLong != 0 {
		n = binary.BigEndian.Uint64(size)
	}

	if n > maxFrame {
		return 0, nil, fmt.Errorf("%w (%d bytes)", errTooLarge, n)
	}

	body = make([]byte, n)
	if _, err := io.ReadFull(from, body); err != nil {
		return 0, nil, err
	}

	return flags, body, nil
}

func hasPrefix(body []byte, prefix string) bool {
	return len(body) >= len(prefix) && string(body[:len(prefix)]) == prefix
}
