package limits_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/limits"
)

func TestTheTableIsDocumentedWithItsDefaults(t *testing.T) {
	page, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}

	defaults := reflect.ValueOf(limit.Defaults())
	for i := range defaults.NumField() {
		row := fmt.Sprintf("| `%s` | %v |", defaults.Type().Field(i).Name, defaults.Field(i).Interface())
		if defaults.Field(i).IsZero() || !strings.Contains(string(page), row) {
			t.Errorf("docs/limits.md has no row %s", row)
		}
	}
}

func TestATableIsCompletedFieldByField(t *testing.T) {
	if got := limit.Complete((limits.Table{})); got != limit.Defaults() {
		t.Errorf("an empty table is completed to %+v", got)
	}

	own := limit.Complete(limits.Table{Body: 1, BodyTimeout: time.Second, Streams: -1})
	if own.Body != 1 || own.BodyTimeout != time.Second || own.Streams != limit.Defaults().Streams {
		t.Errorf("%+v", own)
	}
}

func TestTheServerHasATimeForEverything(t *testing.T) {
	s := limits.Server(t.Context(), nil)

	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("%+v", s)
	}

	if s.WriteTimeout != 0 {
		t.Error("event streams are written for longer than any WriteTimeout")
	}

	if s.BaseContext(nil) != t.Context() {
		t.Error("requests do not end with the service")
	}
}
