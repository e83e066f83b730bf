//go:build unix

package engine

import (
	"os"
	"testing"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
