// Package tree_test holds what is true of the whole tree: who may import whom, that each rule of the specification has
// one home, and that the pages name tests that are there.
package tree_test

import (
	"log"
	"os"
	"testing"
)

// Paths are those of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		log.Fatal(err)
	}

	os.Exit(m.Run())
}
