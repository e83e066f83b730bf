package mysql

import (
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/seed-8ee7f392/payments/fault"
)

// A server that takes no writes is named with the code that has its session replaced, however it says so.
func TestReadOnlyServerIsNamed(t *testing.T) {
	for _, number := range []uint16{1290, 1792, 1836} {
		got := explain(&mysql.MySQLError{Number: number})
		if !errors.Is(got.Word, fault.Unavailable) || got.Code != "database_read_only" {
			t.Errorf("%d is %v, %q: %q", number, got.Word, got.Code, got.Sentence)
		}
	}
}
