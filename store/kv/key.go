package kv

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
)

// key is encoded so that bytes.Compare orders keys by their parts, one after the other.
type key = []byte

// A text ends with textEnd, which is below every byte that a longer text can have there: zero bytes in a text
// are escaped.
const (
	textEnd    = "\x00\x01"
	zeroEscape = "\x00\xff"
)

// keyOf returns the key of some parts: texts, numbers, booleans, times and hashes. Its capacity also suffices
// for a prefix and the key of a record.
func keyOf(parts ...any) key { return appendKey(make(key, 0, 96), parts...) }

// when returns the key of some parts if indexed is true, else nil: an index then leaves the record out.
func when(indexed bool, parts ...any) key {
	if !indexed {
		return nil
	}

	return keyOf(parts...)
}

func appendKey(k key, parts ...any) key {
	for _, part := range parts {
		switch v := part.(type) {
		case string:
			k = appendText(k, v)
		case chain.Address:
			k = appendText(k, string(v))
		case event.Owner:
			k = appendBool(appendText(k, v.AccountID), v.Livemode)
		case chain.Space:
			k = appendText(k, v.String())
		case bool:
			k = appendBool(k, v)
		case uint32:
			k = binary.BigEndian.AppendUint32(k, v)
		case uint64:
			k = binary.BigEndian.AppendUint64(k, v)
		case time.Time:
			k = appendTime(k, v)
		case [32]byte:
			k = append(k, v[:]...)
		default:
			panic("kv: a part of a key has a type that is not encoded")
		}
	}

	return k
}

func appendText(k key, text string) key {
	for i := range len(text) {
		if text[i] == 0 {
			k = append(k, zeroEscape...)
			continue
		}

		k = append(k, text[i])
	}

	return append(k, textEnd...)
}

func appendBool(k key, b bool) key {
	if b {
		return append(k, 1)
	}

	return append(k, 0)
}

// appendTime appends microseconds; the zero time is before all others.
func appendTime(k key, t time.Time) key {
	if t.IsZero() {
		return binary.BigEndian.AppendUint64(k, 0)
	}

	return binary.BigEndian.AppendUint64(k, uint64(t.UnixMicro())+1<<63)
}

// after returns the lowest key above all keys that start with prefix.
func after(prefix key) key {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}

	panic("kv: no key is above a prefix of 0xff alone")
}
