package backendtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
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
	// crashes is how many processes are killed, one after the other, in one directory.
	crashes = 5
	// crashAfter is how many commits each of them has acknowledged when it is killed.
	crashAfter = 25
	// lastCommit ends a process that nobody killed.
	lastCommit = 100_000
)

// crashParts begin the keys of one transaction of the process that is killed: apart, so that an engine that
// commits in parts is seen to.
var crashParts = []string{"a/", "d/", "g/", "j/", "m/", "p/", "s/", "v/", "y/"}

// Child runs the process that is killed, if this is it.
func Child(t *testing.T, open Open) bool {
	t.Helper()

	dir := os.Getenv(childVariable)
	if dir == "" {
		return false
	}

	b := mustOpen(t, open, dir)
	first := committedIn(t, b)

	for n := range lastCommit {
		number := first + n

		err := b.Update(context.Background(), func(w kv.Writer) error {
			for _, part := range crashParts {
				if err := putPairs(w, part+crashKey(number), "written"); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		fmt.Printf("\n%s%d\n", acknowledged, number)
	}

	return true
}

func crashKey(n int) string { return fmt.Sprintf("%08d", n) }

// committedIn returns how many transactions of killed processes are there.
func committedIn(t *testing.T, b kv.Backend) (count int) {
	t.Helper()

	err := view(b, func(r kv.Reader) error {
		return r.Scan([]byte("a/"), []byte("a0"), false, func(_, _ []byte) bool { count++; return true })
	})
	if err != nil {
		t.Fatalf("View: %v", err)
	}

	return count
}

// testCrash kills processes amid their transactions: what they acknowledged is there, and no part of the rest.
func testCrash(t *testing.T, open Open, name string) {
	dir := t.TempDir()

	for range crashes {
		last := killChild(t, dir, name)
		if !expectWhole(t, open, dir, last) {
			return
		}
	}
}

// expectWhole opens what a killed process left, whose last acknowledged transaction is known.
func expectWhole(t *testing.T, open Open, dir string, last int) bool {
	t.Helper()

	b := mustOpen(t, open, dir)
	defer mustClose(t, b)

	var lost []int

	for n := range last + 10*crashAfter {
		var found []string

		for _, part := range crashParts {
			if read(t, b, part+crashKey(n)) != "" {
				found = append(found, part+crashKey(n))
			}
		}

		if n <= last && len(found) == 0 {
			lost = append(lost, n)
		}

		if len(found) != 0 && len(found) != len(crashParts) {
			t.Errorf(
				"of a transaction of %d keys a killed process left only %q: all are committed at once, or none",
				len(crashParts), found,
			)
		}
	}

	if len(lost) > 0 {
		t.Errorf(
			"Update returned, the process was killed, and %d of %d transactions are lost (the first is %d): "+
				"Update returns when the engine has synced its log", len(lost), last+1, lost[0],
		)
	}

	return !t.Failed()
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

	last, acknowledgements := readUntilKilled(t, child, output)

	_ = child.Wait() // it was killed

	if acknowledgements <= crashAfter {
		t.Fatalf("the process that was to be killed committed %d transactions and ended", acknowledgements)
	}

	return last
}

// readUntilKilled kills the process at some moment of a commit, and returns the last that it acknowledged.
func readUntilKilled(t *testing.T, child *exec.Cmd, output io.Reader) (last, acknowledgements int) {
	t.Helper()

	var (
		err   error
		began = time.Now()
	)

	for lines := bufio.NewScanner(output); lines.Scan(); {
		number, found := strings.CutPrefix(lines.Text(), acknowledged)
		if !found {
			continue
		}

		if last, err = strconv.Atoi(number); err != nil {
			t.Fatal(err)
		}

		switch acknowledgements++; acknowledgements {
		case 1:
			began = time.Now()
		case crashAfter + 1:
			commit := time.Since(began) / crashAfter
			kill := time.AfterFunc(rand.N(commit+1), func() { _ = child.Process.Kill() })

			defer kill.Stop()
		}
	}

	return last, acknowledgements
}
