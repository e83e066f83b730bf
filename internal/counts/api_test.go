package main

import "testing"

// The listing shows in review what a change does to the public surface.
func TestListedSurfaceIsThatOfTheCode(t *testing.T) {
	got := apiLines(mustLoad(t, "../.."))

	want := readLines(t, "../../docs/api.txt")
	if diff := firstDifference(got, want); diff != "" {
		t.Errorf("docs/api.txt is out of date: run make api and look at what changed (%s)", diff)
	}

	if len(got) != len(want) {
		t.Errorf("docs/api.txt has %d lines, and the code %d: run make api", len(want), len(got))
	}
}

// What crosses domains is a parameter of its real type.
func TestNoCodeAssertsAWiderView(t *testing.T) {
	for _, cast := range viewCasts(mustLoad(t, "../..")) {
		t.Error(cast)
	}
}
