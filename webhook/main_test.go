//go:build unix

package webhook_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// a process that TestKilledAtAnyMoment started
	if variable := os.Getenv(processVariable); variable != "" {
		if err := deliverUntilKilled(variable); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}

		return
	}

	goleak.VerifyTestMain(m)
}
