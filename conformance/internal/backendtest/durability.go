package backendtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/store/kv"
)

// Durability tests what outlives Close and the process.
func Durability(t *testing.T, open Open) {
	t.Helper()

	name := t.Name()

	t.Run("Reopen", func(t *testing.T) { testReopen(t, open) })
	t.Run("Crash", func(t *testing.T) { testCrash(t, open, name) })
}

func testReopen(t *testing.T, open Open) {
	dir := t.TempDir()

	for round := range 3 {
		b := mustOpen(t, open, dir)
		for n := range round {
			expect(t, b, fmt.Sprint("round/", n), "done")
		}

		put(t, b, fmt.Sprint("round/", round), "done")

		err := b.Update(t.Context(), func(w kv.Writer) error {
			if err := putPairs(w, "refused", "yes"); err != nil {
				return err
			}

			return errRefused
		})
		if err == nil {
			t.Error("an Update ignored the error of its closure")
		}

		expect(t, b, "refused", "")
		mustClose(t, b)
	}
}

const (
	// childVariable names the directory in the environment of the process that is killed.
	childVariable = "PAYMENTS_BACKEND_CRASH"
	// acknowledged begins the lines in which that process says what it committed.
	acknowledged = "committed "
	// crashAfter is how many commits it has acknowledged when it is killed.
	crashAfter = 25
	// lastCommit ends a process that nobody killed.
	lastCommit = 100_000
)

// Child runs the process that is killed, if this is it.
func Child(t *testing.T, open Open) bool {
	t.Helper()

	dir := os.Getenv(childVariable)
	if dir == "" {
		return false
	}

	b := mustOpen(t, open, dir)

	for n := range lastCommit {
		err := b.Update(context.Background(), func(w kv.Writer) error {
			return putPairs(w, fmt.Sprint("first/", n), "written", fmt.Sprint("second/", n), "written")
		})
		if err != nil {
			t.Fatal(err)
		}

		fmt.Printf("\n%s%d\n", acknowledged, n)
	}

	return true
}

// testCrash kills a process amid its transactions: what it acknowledged is there, and no half of the rest.
func testCrash(t *testing.T, open Open, name string) {
	dir := t.TempDir()
	last := killChild(t, dir, name)

	b := mustOpen(t, open, dir)
	defer mustClose(t, b)

	for n := range last + 10*crashAfter {
		first, second := read(t, b, fmt.Sprint("first/", n)), read(t, b, fmt.Sprint("second/", n))
		if first != second {
			t.Errorf("half of transaction %d is there: %q and %q", n, first, second)
		}

		if n <= last && first == "" {
			t.Errorf("transaction %d of %d, which was committed, is lost", n, last)
		}
	}

	put(t, b, "after", "the crash")
}

// killChild starts this test in a process of its own, kills it, and returns its last acknowledged commit.
func killChild(t *testing.T, dir, name string) (last int) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}

	child := exec.CommandContext(ctx, os.Args[0], "-test.run="+strings.Join(parts, "/"), "-test.v")

	child.Env = append(os.Environ(), childVariable+"="+dir)

	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := child.Start(); err != nil {
		t.Fatal(err)
	}

	last = -1

	for lines := bufio.NewScanner(output); lines.Scan(); {
		number, found := strings.CutPrefix(lines.Text(), acknowledged)
		if !found {
			continue
		}

		if last, err = strconv.Atoi(number); err != nil {
			t.Fatal(err)
		}

		if last == crashAfter {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}

	_ = child.Wait() // it was killed

	if last < crashAfter {
		t.Fatalf("the process that was to be killed committed %d transactions and ended", last+1)
	}

	return last
}
