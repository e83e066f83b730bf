package sqlstore

import (
	"testing"
	"time"
)

func TestDatedIDs(t *testing.T) {
	at := time.UnixMilli(0x01a0_0000_0000).UTC()

	for id, want := range map[string]bool{
		"01a000000000aabbccddeeff": true,
		"01a0000007d0aabbccddeeff": true,  // 2 s later
		"01a0000007d1aabbccddeeff": false, // and 1 ms
		"019ffffff82faabbccddeeff": false,
		"01A000000000AABBCCDDEEFF": false, // ids are lower case
		"inv_1":                    false,
		"":                         false,
	} {
		if got := dated(id, at); got != want {
			t.Errorf("dated(%q) is %t", id, got)
		}
	}

	if got := idAt(at); got != "01a000000000" {
		t.Errorf("the least id is %s", got)
	}

	if got := idAt(time.Time{}); got != "000000000000" {
		t.Errorf("the least id before 1970 is %s", got)
	}
}
