package sqlstore

// This file bounds a list by the time of creation. Lists are in the order of ids, and an id begins with the time when
// it was made: a list of a time is a range of ids. Rows whose id says another time, because a clock was set back or the
// id is of another kind, have dated = FALSE and an index of their own, which is nearly empty.

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"
)

// idTimeText is how many characters of an id are its time: 48 bits of milliseconds, in hexadecimal digits.
const idTimeText = 12

// datedWithin is how far the time of an id may be from the time of creation.
const datedWithin = 2 * time.Second

// dated reports whether an id says when its record was created.
func dated(id string, created time.Time) bool {
	if len(id) < idTimeText || strings.ToLower(id) != id {
		return false
	}

	raw, err := hex.DecodeString("0000" + id[:idTimeText])
	if err != nil {
		return false
	}

	made := time.UnixMilli(int64(binary.BigEndian.Uint64(raw)))

	return made.Sub(created).Abs() <= datedWithin
}

// idAt returns the least id of a time. Ids have no time before 1970.
func idAt(t time.Time) string {
	var raw [8]byte

	binary.BigEndian.PutUint64(raw[:], uint64(max(t.UnixMilli(), 0)))

	return hex.EncodeToString(raw[2:])
}

// latestIDTime is the last time that an id can say.
var latestIDTime = time.UnixMilli(1<<48 - 1)

// createdWithin is within for the time of creation, of a table with a column dated. The rows that satisfy it are read
// in two parts, each of which is in the order of ids. few says that another condition already limits the list to few
// rows. prefix is that of the table's columns.
func (q *query) createdWithin(prefix string, after, before time.Time, few bool) {
	q.within(prefix+"created_at", after, before)

	if few || (after.IsZero() && before.IsZero()) {
		return
	}

	in := branch{text: prefix + "dated = TRUE"}

	if from := after.Add(-datedWithin); !after.IsZero() {
		in.text += " AND " + prefix + "id >= ?"
		in.args = append(in.args, idAt(earlier(from, latestIDTime)))
	}

	if to := before.Add(datedWithin + time.Millisecond); !before.IsZero() && to.Before(latestIDTime) {
		in.text += " AND " + prefix + "id < ?"
		in.args = append(in.args, idAt(to))
	}

	q.split(in, branch{text: prefix + "dated = FALSE"})
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}

	return b
}
