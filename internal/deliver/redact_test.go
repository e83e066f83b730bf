package deliver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/webhook"
)

func TestRedactJSON(t *testing.T) {
	const gone = `"[redacted]"`
	for given, want := range map[string]string{
		``:                                     ``,
		`ok`:                                   `ok`,
		`{"ok":true}`:                          `{"ok":true}`,
		`{"password":"hunter2"}`:               `{"password":` + gone + `}`,
		`{"password":"hun\"ter2","a":1}`:       `{"password":` + gone + `,"a":1}`,
		`{ "API_Key" : "x" , "b" : 2 }`:        `{ "API_Key" : ` + gone + ` , "b" : 2 }`,
		`{"client-secret":12.5e3,"b":2}`:       `{"client-secret":` + gone + `,"b":2}`,
		`{"token":null}`:                       `{"token":` + gone + `}`,
		`{"credentials":{"a":[1,"}"]},"b":2}`:  `{"credentials":` + gone + `,"b":2}`,
		`{"tokens":["a","]"],"b":2}`:           `{"tokens":` + gone + `,"b":2}`,
		`{"a":{"sessionId":"x"}}`:              `{"a":{"sessionId":` + gone + `}}`,
		`[{"secret":"x"},{"secret":"y"}]`:      `[{"secret":` + gone + `},{"secret":` + gone + `}]`,
		`{"sec\u0072et":"x"}`:                  `{"sec\u0072et":` + gone + `}`,
		`{"note":"my secret"}`:                 `{"note":"my secret"}`,
		`{"note":"secret","b":"c"}`:            `{"note":"secret","b":"c"}`,
		`{"password":"cut he`:                  `{"password":` + gone,
		`{"password":{"a":"cut he`:             `{"password":` + gone,
		`{"password":`:                         `{"password":`,
		`{"passwo`:                             `{"passwo`,
		`{"password":"x\`:                      `{"password":` + gone,
		`he said "hello {"secret":"x"}`:        `he said "hello {"secret":` + gone + `}`,
		`<p class="a">{"jwt":"x"}</p>`:         `<p class="a">{"jwt":` + gone + `}</p>`,
		"{\n\t\"Authorization\":\n\"Bearer\"}": "{\n\t\"Authorization\":\n" + gone + "}",
		`secret: "x"`:                          `secret: "x"`,
	} {
		if got := redactJSON(given); got != want {
			t.Errorf("%s\n became %s\n want   %s", given, got, want)
		}
	}
}

// What receivers wrap into their own answer, such as the error of a service behind them, is JSON in a string.
func TestRedactJSONInStrings(t *testing.T) {
	const gone, gone2 = `\"[redacted]\"`, `\\\"[redacted]\\\"`

	long := strings.Repeat("x", maxBody)
	for given, want := range map[string]string{
		`{"message":"{\"client_secret\":\"abc\"}"}`:         `{"message":"{\"client_secret\":` + gone + `}"}`,
		`{"message":"{\"a\":1,\"pwd\":[\"x\"]}","b":"c"}`:   `{"message":"{\"a\":1,\"pwd\":` + gone + `}","b":"c"}`,
		`{"m":"{\n  \"token\" : \"a\\\"b\"\n}"}`:            `{"m":"{\n  \"token\" : ` + gone + `\n}"}`,
		`{"m":"{\u0022token\u0022:\u0022abc\u0022}"}`:       `{"m":"{\"token\":` + gone + `}"}`,
		`{"m":"{\"x\":\"{\\\"jwt\\\":\\\"abc\\\"}\"}"}`:     `{"m":"{\"x\":\"{\\\"jwt\\\":` + gone2 + `}\"}"}`,
		`{"m":"<b>{\"token\":1}</b>\ud83d\ude00"}`:          `{"m":"<b>{\"token\":` + gone + `}</b>😀"}`,
		`"{\"token\":\"abc\"}"`:                             `"{\"token\":` + gone + `}"`,
		`{\"token\":\"abc\"}`:                               `{\"token\":` + gone + `}`,
		`a "stray {"m":"{\"token\":\"abc\"}"}`:              `a "stray {"m":"{\"token\":` + gone + `}"}`,
		`{"m":"{\"token\":\"cut he`:                         `{"m":"{\"token\":` + gone,
		`{"m":"{\"token\":\"cut\`:                           `{"m":"{\"token\":` + gone + `\`,
		`{"m":"{\"token\":\"cut\u00`:                        `{"m":"{\"token\":` + gone,
		`{"m":"he said \"hi\", \/ \x \ud83d"}`:              `{"m":"he said \"hi\", \/ \x \ud83d"}`,
		`{"m":"a \"secret\" is kept"}`:                      `{"m":"a \"secret\" is kept"}`,
		`{"m":"{\"token\":\"` + long + `\"}","n":"tail"}`:   `{"m":"{\"token\":` + gone + `}","n":"tail"}`,
		`{"password":"{\"a\":\"b\"}","c":"{\"pwd\":null}"}`: `{"password":"[redacted]","c":"{\"pwd\":` + gone + `}"}`,
	} {
		if got := redactJSON(given); got != want {
			t.Errorf("%s\n became %s\n want   %s", given, got, want)
		}
	}
}

func TestLooksSecret(t *testing.T) {
	for _, name := range []string{
		"encryption_key", "encryptionKeys", "hmac_key", "HMAC-Key", "x-auth-key", "x-vault-key", "API Key 2", "key",
		"auth", "basicAuth", "oauth2", "authentication", "X-Auth", "X-CSRF", "access_key_id", "secret_public_key",
		"Www-Authenticate", "Proxy-Authentication-Info",
	} {
		if !looksSecret(name) {
			t.Errorf("%s is kept", name)
		}
	}

	for _, name := range []string{
		"idempotency_key", "Idempotency-Key", "public_key", "publicKeys", "publishable_key", "publishable_key_id",
		"Surrogate-Key", "keyword", "author", "authenticated", "authority", "pass", "status", "",
	} {
		if looksSecret(name) {
			t.Errorf("%s is redacted", name)
		}
	}
}

func TestQueriesOfURLHeadersAreNotKept(t *testing.T) {
	given := http.Header{
		"Location":         {"https://user:pw@example.com:8443/a/b;c=1?code=abc,d>e#f"},
		"Content-Location": {"/a#abc", "//user@example.com/?abc"},
		"Link":             {`<https://u:p@example.com/a?abc>; rel="next", </b?c=>;rel=prev`, `</c?abc`},
		"Refresh":          {`5; url=https://example.com/a?code=abc;d=e`},
		"X-Other":          {`a?b#c`},
	}

	want := map[string]string{
		"location":         "https://example.com:8443/a/b;c=1",
		"content-location": "/a, //example.com/",
		"link":             `<https://example.com/a>; rel="next", </b>;rel=prev, </c`,
		"refresh":          "5; url=https://example.com/a",
		"x-other":          "a?b#c",
	}
	if diff := cmp.Diff(want, keptHeaders(given)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestRedactSecrets(t *testing.T) {
	signed := webhook.Sign([]byte("{}"), start, secretA, secretB)
	for given, want := range map[string]string{
		"nothing":                        "nothing",
		"got " + secretA + "!":           "got whsec_[redacted]!",
		secretA + " " + secretB:          "whsec_[redacted] whsec_[redacted]",
		signed:                           "t=1795176000,v1=[redacted],v1=[redacted]",
		"header " + signed + " .":        "header t=1795176000,v1=[redacted],v1=[redacted] .",
		"v1=abc":                         "v1=abc",
		"v1=" + strings.Repeat("0a", 31): "v1=[redacted]", // cut
		`whsec_a\/b\\\/c\u002Bd%2Be== "`: `whsec_[redacted] "`,
	} {
		if got := redactSecrets(given); got != want {
			t.Errorf("%s became %s, want %s", given, got, want)
		}
	}
}

func TestKeptHeaders(t *testing.T) {
	given := http.Header{
		"Content-Type":         {"text/plain"},
		"X-Two":                {"a", "b"},
		"Date":                 {"today"},
		"Set-Cookie":           {"a=b"},
		"Cookie":               {"a"},
		"Authorization":        {"a"},
		"Proxy-Authorization":  {"a"},
		"Www-Authenticate":     {"a"},
		"Proxy-Authenticate":   {"a"},
		"Authentication-Info":  {"a"},
		"X-Api-Key":            {"a"},
		"X-Vault-Key":          {"a"},
		"Authentication":       {"a"},
		"Idempotency-Key":      {"a"},
		"X-Json":               {`{"token":"a"}`},
		"X-Auth-Token":         {"a"},
		"X-Amz-Security-Token": {"a"},
		"X-Session-Id":         {"a"},
		"X-Client-Secret":      {"a"},
		"Service-Signature":    {"a"},
		"set-cookie":           {"not canonical"},
		"X-Bytes":              {"a\xffb"},
		"X-Long":               {strings.Repeat("é", 2000)},
	}

	want := map[string]string{
		"content-type":    "text/plain",
		"idempotency-key": "a",
		"x-json":          `{"token":"[redacted]"}`,
		"x-two":           "a, b",
		"date":            "today",
		"x-bytes":         "a\uFFFDb",
		"x-long":          strings.Repeat("é", maxHeaderValue),
	}
	if diff := cmp.Diff(want, keptHeaders(given)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}

	many := http.Header{}
	for i := range 1000 {
		many.Set(fmt.Sprintf("X-%04d", i), "y")
	}

	if kept := keptHeaders(many); len(kept) != maxHeaders || kept["x-0000"] != "y" || kept["x-0999"] != "" {
		t.Errorf("%d headers are kept", len(kept))
	}
}

func TestKeptBody(t *testing.T) {
	const secretTail = `"},"password":"`
	for _, c := range []struct {
		name      string
		raw       string
		more      bool
		encoding  string
		want      string
		truncated bool
	}{
		{"empty", "", false, "", "", false},
		{"short", "ok", false, "", "ok", false},
		{"just as long as is kept", strings.Repeat("é", maxBody), false, "", strings.Repeat("é", maxBody), false},
		{"one longer", strings.Repeat("é", maxBody+1), false, "", strings.Repeat("é", maxBody), true},
		{"broken off", "half", true, "", "half", true},
		{"compressed", "\x1f\x8b", false, "gzip", "", true},
		{"compressed to nothing", "", false, "br", "", false},
		{"said to be as it is", "ok", false, "identity", "ok", false},
		{"NUL and no UTF-8", "a\x00\xffb", false, "", "a\uFFFD\uFFFDb", false},
		{"only no UTF-8, and more of it", strings.Repeat("\xff", readLimit), true, "", "\uFFFD", true},
		{
			"a secret across the cut",
			strings.Repeat("x", maxBody-len(secretTail)-1) + secretTail + "hunter2" + `"}`,
			false,
			"",
			strings.Repeat("x", maxBody-len(secretTail)-1) + `"},"password":"[`,
			true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{}
			if c.encoding != "" {
				h.Set("Content-Encoding", c.encoding)
			}

			if got, truncated := keptBody(
				[]byte(c.raw), c.more, h,
			); got != c.want ||
				truncated != c.truncated {
				t.Errorf(
					"kept %d characters, truncated %v: %.60q … %q",
					len([]rune(got)), truncated, got, got[max(0, len(got)-60):],
				)
			}
		})
	}
}

func FuzzRedact(f *testing.F) {
	for _, seed := range []string{
		`{"password":"x"}`,
		`{"a":"b`,
		`"":"`,
		`{"secret":[1,{"b":"}"}]}`,
		`"\`,
		`{"password":x"}`,
		`{"token":[x"}]`,
		"{\"pwd\":\x80\"}",
		"\x00\xff",
		secretA,
		strings.Repeat(`"`, 5000),
		`{"m":"{\"client_secret\":\"abc\"}"}`,
		`{"m":"{\"a\":\"{\\\"hmac_key\\\":1}\"}"}`,
		`{"m":"{\u0022auth\u0022:\u0022\ud83d\`,
		`\"token\":`,
		`"m":"\\\"`,
		strings.Repeat(`\"`, 2048) + `":1`,
		strings.Repeat(`\u005c`, 700) + `"`,
	} {
		f.Add([]byte(seed), "hunter2")
	}

	f.Fuzz(func(t *testing.T, raw []byte, secret string) {
		body, _ := keptBody(raw, false, http.Header{})
		if !utf8.ValidString(body) || strings.Contains(body, "\x00") ||
			utf8.RuneCountInString(body) > maxBody {
			t.Errorf("kept %q of %q", body, raw)
		}
		// Whatever text stands before, a field that comes after it is redacted.
		value, err := json.Marshal("<<" + secret + ">>")
		if err != nil {
			t.Fatal(err)
		}

		prefix := strings.ToValidUTF8(string(raw), "")
		if text := redactJSON(
			prefix + "\n" + `{"password":` + string(value) + `}`,
		); !strings.HasSuffix(text, `"[redacted]"}`) &&
			!strings.HasSuffix(text, `"[redacted]"`) {
			t.Errorf("kept %q", text)
		}
		// So is one in a JSON text that a string holds, and one in a string of that.
		const mark = "(((hunter2"

		message := `{"password":"` + mark + `"}`
		for range maxNesting {
			quoted, err := json.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}

			message = `{"message":` + string(quoted) + `}`
			if text := redactJSON(prefix + "\n" + message); strings.Contains(text, mark) &&
				!strings.Contains(prefix, mark) {
				t.Errorf("kept %q", text)
			}
		}
	})
}
