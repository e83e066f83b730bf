package redaction_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

const hiddenText = "hunter2-hunter2-hunter2-hunter2!" // 32 bytes, as a SecretKey has

// secretField matches the names of fields that hold secrets, in any package.
var secretField = regexp.MustCompile(
	`(?i)^(secret|secrets|secretkey|oldsecretkeys|password|apikey|header|token|` +
		`url|urls|rpc|solidityurl|solidityurls|user|auth|key|seed|mnemonic|dsn|secret\w*)$`,
)

// notSecret are fields of such a name that are none: what anybody may see, or sees in the API.
var notSecret = []string{
	"chain.KeyRef",
	"webhook.EndpointResource.Secret",
	"webhook.Endpoint.URL",
	"webhook.EndpointParams.URL",
	"webhook.EndpointUpdate.URL",
	"webhook.EndpointResource.URL",
	"webhook.Endpoint.SecretLast4",
	"webhook.EndpointResource.SecretLast4",
	"idempotency.Key.Key",
	"idempotency.Record.Key",
	"wallet.Outgoing.Key",
	"paymentstest.Service.Key",
	"sqlstore.Types.Key",
}

// Every exported struct and every one behind a constructor, its secrets filled in at any depth, prints none
// of them: with no verb, as a value, a pointer, a field, an element, or in a log.
func TestNoPrintedValueShowsASecret(t *testing.T) {
	filled := 0

	for _, typ := range slices.Concat(exportedTypes, hiddenTypes(t)) {
		v := reflect.New(typ)

		n := fillSecrets(v.Elem(), typ.String(), 0)
		filled += n

		for how, text := range printed(v.Interface()) {
			if at := findSecret(text); at != "" {
				t.Errorf("%s printed by %s shows a secret as %s: %.300s", typ, how, at, text)
			}
		}
	}

	if filled < 15 {
		t.Errorf("only %d secrets were filled in", filled)
	}

	checkListed(t)
}

// checkListed compares exportedTypes with the public surface.
func checkListed(t *testing.T) {
	t.Helper()

	raw, err := os.ReadFile("../../../docs/api.txt")
	if err != nil {
		t.Fatal(err)
	}

	var want []string
	for _, m := range regexp.MustCompile(`(?m)^pkg (\S+), type (\w+)(?:\[.*\])? struct$`).
		FindAllStringSubmatch(string(raw), -1) {
		want = append(want, m[1][strings.LastIndexByte(m[1], '/')+1:]+"."+m[2])
	}

	have := make([]string, len(exportedTypes))
	for i, typ := range exportedTypes {
		have[i], _, _ = strings.Cut(typ.String(), "[")
	}

	for _, name := range want {
		if !slices.Contains(have, name) {
			t.Errorf("%s is exported and not in exportedTypes", name)
		}
	}

	if len(want) < 150 {
		t.Errorf("docs/api.txt lists only %d structs", len(want))
	}
}

// fillSecrets sets the fields that hold secrets, unexported ones too, and returns their number.
func fillSecrets(v reflect.Value, path string, depth int) (n int) {
	if depth > 5 || v.Kind() != reflect.Struct {
		return 0
	}

	for i := range v.NumField() {
		f := v.Type().Field(i)

		at := reflect.NewAt(f.Type, unsafe.Pointer(v.Field(i).UnsafeAddr())).Elem()
		if name := v.Type().String() + "." + f.Name; slices.Contains(notSecret, name) ||
			slices.Contains(notSecret, v.Type().String()) {
			continue
		}

		if secretField.MatchString(f.Name) && setSecret(at) {
			n++
			continue
		}

		n += fillInside(at, path+"."+f.Name, depth)
	}

	return n
}

// fillInside fills what a field holds: a struct, what a pointer leads to, the elements of a list.
func fillInside(at reflect.Value, path string, depth int) int {
	switch at.Kind() {
	case reflect.Struct:
		return fillSecrets(at, path, depth+1)
	case reflect.Pointer:
		if at.Type().Elem().Kind() == reflect.Struct &&
			strings.Contains(at.Type().Elem().PkgPath(), "/payments") {
			at.Set(reflect.New(at.Type().Elem()))
			return fillSecrets(at.Elem(), path, depth+1)
		}
	case reflect.Slice:
		if at.Type().Elem().Kind() == reflect.Struct {
			at.Set(reflect.MakeSlice(at.Type(), 1, 1))
			return fillSecrets(at.Index(0), path, depth+1)
		}
	}

	return 0
}

// setSecret sets a text, bytes, a list of either or headers; false for another type.
func setSecret(at reflect.Value) bool {
	switch at.Interface().(type) {
	case string:
		at.SetString("https://user:" + hiddenText + "@node.example/" + hiddenText)
	case []byte:
		at.SetBytes([]byte(hiddenText))
	case [][]byte:
		at.Set(reflect.ValueOf([][]byte{[]byte(hiddenText)}))
	case []string:
		at.Set(reflect.ValueOf([]string{hiddenText}))
	default:
		if at.Kind() != reflect.Map || at.Type().Elem() != reflect.TypeFor[[]string]() {
			return false
		}

		at.Set(reflect.MakeMap(at.Type()))
		at.SetMapIndex(
			reflect.ValueOf("X-Key").Convert(at.Type().Key()), reflect.ValueOf([]string{hiddenText}),
		)
	}

	return true
}

// printed returns what a pointer to a value looks like in every way to print it.
func printed(pointer any) map[string]string {
	all := map[string]string{}

	// What is redacted by its pointer alone is used by its pointer alone: drivers, engines, services.
	value := reflect.ValueOf(pointer).Elem().Interface()
	if _, redacted := pointer.(fmt.Formatter); redacted {
		if _, byValue := value.(fmt.Formatter); !byValue {
			value = pointer
		}
	}

	for name, v := range map[string]any{
		"pointer": pointer,
		"value":   value,
		"field":   struct{ Of any }{value},
		"element": []any{value, pointer},
		"map":     map[string]any{"of": value},
	} {
		for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %d %o %b %c %U %t %e") {
			all[verb+" of "+name] = fmt.Sprintf(verb, v)
		}

		all["Sprint of "+name] = fmt.Sprint(v)
		all["Errorf of "+name] = fmt.Errorf("failed: %v", v).Error()

		if b, err := json.Marshal(v); err == nil {
			all["JSON of "+name] = string(b)
		}

		var text, asJSON bytes.Buffer

		slog.New(slog.NewTextHandler(&text, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&asJSON, nil)).Info("x", "v", v)
		all["slog text of "+name], all["slog JSON of "+name] = text.String(), asJSON.String()
	}

	return all
}

// findSecret returns the notation in which a text holds the secret, "" when it does not.
func findSecret(text string) string {
	secret := []byte(hiddenText)

	numbers := func(format string) string {
		var all []string
		for _, b := range secret[:8] {
			all = append(all, fmt.Sprintf(format, b))
		}

		return strings.Join(all, " ")
	}

	for name, written := range map[string]string{
		"text":        hiddenText,
		"hex":         hex.EncodeToString(secret),
		"HEX":         strings.ToUpper(hex.EncodeToString(secret)),
		"base64":      base64.StdEncoding.EncodeToString(secret),
		"decimals":    numbers("%d"),
		"octal":       numbers("%o"),
		"binary":      numbers("%b"),
		"characters":  numbers("%c"),
		"code points": numbers("%U"),
		"Go syntax":   strings.ReplaceAll(numbers("%#x"), " ", ", "),
	} {
		if strings.Contains(text, written) {
			return name
		}
	}

	return ""
}
