package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/httpapi"
)

func TestBodiesAreReadStrictly(t *testing.T) {
	s := open(t, nil)
	with := func(field string) string { return invoiceBody[:len(invoiceBody)-1] + "," + field + "}" }

	options := func(entry string) string {
		return `{"price":{"currency":"EUR","amount":"1"},"options":[` + entry + `]}`
	}
	for i, test := range []struct {
		name, body string
		status     int
		code       string
		param      string
	}{
		{"nothing", "", 400, "body_invalid", ""},
		{"no JSON", "price=1", 400, "body_invalid", ""},
		{"half", invoiceBody[:40], 400, "body_invalid", ""},
		{"something after the end", invoiceBody + "{}", 400, "body_invalid", ""},
		{"a list", "[]", 400, "body_invalid", ""},
		{"a number", "5", 400, "body_invalid", ""},
		{"unknown field", with(`"colour":"red"`), 400, "parameter_unknown", "colour"},
		{
			"unknown field inside",
			`{"price":{"currency":"EUR","amount":"1","vat":"7"}}`,
			400,
			"parameter_unknown",
			"price.vat",
		},
		{
			"unknown field in a list",
			options(`{"asset":"SIM","network":"simnet","x":1}`),
			400,
			"parameter_unknown",
			"options[0].x",
		},
		{"other case", with(`"Order_ID":"x"`), 400, "parameter_unknown", "Order_ID"},
		{"duplicate", with(`"order_id":"x"`), 400, "body_invalid", "order_id"},
		{
			"duplicate inside",
			`{"price":{"currency":"EUR","amount":"1","amount":"2"}}`,
			400,
			"body_invalid",
			"price.amount",
		},
		{"bad UTF-8", with("\"description\":\"\xff\""), 400, "body_invalid", ""},
		{"half a surrogate", with(`"description":"\ud800"`), 400, "body_invalid", ""},
		{"U+0000", with(`"description":"a\u0000b"`), 400, "parameter_invalid", "description"},
		{"U+0000 in a key", with(`"metadata":{"a\u0000":"b"}`), 400, "parameter_invalid", "metadata.a?"},
		{"deep", with(`"metadata":` + strings.Repeat(`{"a":`, 20000)), 400, "body_invalid", ""},
		{"amount as a number", `{"price":{"currency":"EUR","amount":49.9}}`, 400, "parameter_invalid", "price.amount"},
		{"negative price", `{"price":{"currency":"EUR","amount":"-1"}}`, 400, "parameter_invalid", "price.amount"},
		{"price of 0", `{"price":{"currency":"EUR","amount":"0"}}`, 400, "parameter_invalid", "price.amount"},
		{"9 places", `{"price":{"currency":"EUR","amount":"1.000000001"}}`, 400, "parameter_invalid", "price.amount"},
		{"exponent", `{"price":{"currency":"EUR","amount":"1e9"}}`, 400, "parameter_invalid", "price.amount"},
		{
			"a huge exponent",
			`{"price":{"currency":"EUR","amount":"1e999999999"}}`,
			400,
			"parameter_invalid",
			"price.amount",
		},
		{"no currency", `{"price":{"amount":"1"}}`, 400, "parameter_missing", "price.currency"},
		{
			"lower case currency",
			`{"price":{"currency":"eur","amount":"1"}}`,
			400,
			"parameter_invalid",
			"price.currency",
		},
		{"neither price nor options", `{}`, 400, "parameter_missing", "options"},
		{
			"empty options",
			`{"price":{"currency":"EUR","amount":"1"},"options":[]}`,
			400,
			"parameter_invalid",
			"options",
		},
		{
			"21 options",
			options(strings.Repeat(`{"asset":"SIM","network":"simnet"},`, 20) + `{"asset":"SIM","network":"simnet"}`),
			400,
			"parameter_invalid",
			"options",
		},
		{
			"option twice",
			options(`{"asset":"SIM","network":"simnet"},{"asset":"SIM","network":"simnet"}`),
			400,
			"parameter_invalid",
			"options[1]",
		},
		{
			"unknown network",
			options(`{"asset":"SIM","network":"moon"}`),
			422,
			"asset_not_enabled",
			"options[0].network",
		},
		{
			"network of the other mode",
			options(`{"asset":"SIM","network":"livenet"}`),
			422,
			"asset_not_enabled",
			"options[0].network",
		},
		{
			"79 digits",
			`{"options":[{"asset":"SIM","network":"simnet","amount":"` + strings.Repeat("1", 79) + `"}]}`,
			400,
			"parameter_invalid",
			"options[0].amount",
		},
		{
			"78 digits above 2^256",
			`{"options":[{"asset":"SIM","network":"simnet","amount":"` + strings.Repeat("9", 78) + `"}]}`,
			400,
			"parameter_invalid",
			"options[0].amount",
		},
		{
			"leading zero",
			`{"options":[{"asset":"SIM","network":"simnet","amount":"01"}]}`,
			400,
			"parameter_invalid",
			"options[0].amount",
		},
		{
			"hexadecimal",
			`{"options":[{"asset":"SIM","network":"simnet","amount":"0x10"}]}`,
			400,
			"parameter_invalid",
			"options[0].amount",
		},
		{
			"digits of another script",
			`{"options":[{"asset":"SIM","network":"simnet","amount":"١٢٣"}]}`,
			400,
			"parameter_invalid",
			"options[0].amount",
		},
		{
			"too small",
			`{"options":[{"asset":"SIM","network":"simnet","amount":"1"}]}`,
			422,
			"amount_too_small",
			"options[0].amount",
		},
		{
			"an amount of 0",
			`{"options":[{"asset":"SIM","network":"simnet","amount":"0"}]}`,
			422,
			"amount_too_small",
			"options[0].amount",
		},
		{
			"no amount",
			`{"options":[{"asset":"SIM","network":"simnet"}]}`,
			400,
			"parameter_missing",
			"options[0].amount",
		},
		{
			"an amount of 0 beside a price",
			options(`{"asset":"SIM","network":"simnet","amount":"0"}`),
			400,
			"parameter_invalid",
			"options[0].amount",
		},
		{
			"amount beside a price",
			options(`{"asset":"SIM","network":"simnet","amount":"5000000000000"}`),
			400,
			"parameter_invalid",
			"options[0].amount",
		},
		{"order_id of 129", `{"order_id":"` + strings.Repeat("ü", 129) + `"}`, 400, "parameter_invalid", "order_id"},
		{"51 keys of metadata", `{"metadata":{` + manyKeys(51) + `}}`, 400, "parameter_invalid", "metadata"},
		{"a key of 41", `{"metadata":{"` + strings.Repeat("k", 41) + `":"v"}}`, 400, "parameter_invalid", "metadata"},
		{"an empty key", `{"metadata":{"":"v"}}`, 400, "parameter_invalid", "metadata"},
		{
			"a value of 501",
			`{"metadata":{"k":"` + strings.Repeat("v", 501) + `"}}`,
			400,
			"parameter_invalid",
			"metadata.k",
		},
		{"a number in metadata", `{"metadata":{"k":5}}`, 400, "parameter_invalid", "metadata.k"},
		{"null in metadata", `{"metadata":{"a":"b","k":null}}`, 400, "parameter_invalid", "metadata.k"},
		{"tolerance", with(`"tolerance_bps":501`), 400, "parameter_invalid", "tolerance_bps"},
		{"fractional tolerance", with(`"tolerance_bps":1.5`), 400, "parameter_invalid", "tolerance_bps"},
		{"expiry", with(`"expires_in":299`), 400, "parameter_invalid", "expires_in"},
		{"huge expiry", with(`"expires_in":99999999999999999999`), 400, "parameter_invalid", "expires_in"},
		{
			"pre-selection after expiry",
			with(`"expires_in":300,"pre_selection_expires_in":301`),
			400,
			"parameter_invalid",
			"pre_selection_expires_in",
		},
		{"e-mail", with(`"customer_email":"nobody"`), 400, "parameter_invalid", "customer_email"},
		{"script as URL", with(`"success_url":"javascript:alert(1)"`), 400, "parameter_invalid", "success_url"},
		{
			"unknown currency",
			`{"price":{"currency":"XXX","amount":"1"},"options":[{"asset":"SIM","network":"simnet"}]}`,
			400,
			"parameter_invalid",
			"price.currency",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := request{
				method: "POST",
				path:   "/v1/invoices",
				body:   test.body,
				header: header("Idempotency-Key", fmt.Sprintf("input-%d", i)),
			}

			f := s.do(t, q).refused(t, test.status)
			if f.Code != test.code || f.Param != test.param && test.param != "" ||
				f.Type != "invalid_request" {
				t.Errorf("got %+v, want code %s about %q", f, test.code, test.param)
			}

			// Of what was not understood nothing is kept; what was understood and refused is.
			again := s.do(t, q)
			again.refused(t, test.status)

			if replayed := again.header.Get("Idempotent-Replayed") != ""; replayed != (test.status == 422) {
				t.Errorf("status %d, replayed: %t", test.status, replayed)
			}
		})
	}

	if list := s.get(t, "/v1/invoices"); len(list["data"].([]any)) != 0 {
		t.Errorf("refused requests made invoices: %v", list)
	}

	if logged := s.logs.String(); strings.Contains(logged, "level=ERROR") {
		t.Error(logged)
	}
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}

	return strings.Join(keys, ",")
}

func TestLongestInputIsTaken(t *testing.T) {
	s := open(t, nil)
	body := `{"price":{"currency":"EUR","amount":"1234567890.12345678"},"order_id":"` + strings.Repeat(
		"ü", 128,
	) + `","description":"` + strings.Repeat(
		"é", 500,
	) +
		`","tolerance_bps":0,"expires_in":604800,"pre_selection_expires_in":300,"metadata":{` + manyKeys(
		49,
	) + `,"` + strings.Repeat(
		"k", 40,
	) + `":"` + strings.Repeat(
		"v", 500,
	) + `"}}`

	inv := s.post(t, "/v1/invoices", body)
	if inv["order_id"] != strings.Repeat("ü", 128) || len(inv["metadata"].(map[string]any)) != 50 ||
		len(inv["options"].([]any)) != 2 {
		t.Errorf("got %v", inv)
	}
}

func TestContentTypeAndSize(t *testing.T) {
	s := open(t, nil)

	post := func(body string, h http.Header) reply {
		return s.do(t, request{method: "POST", path: "/v1/invoices", body: body, header: h})
	}
	for _, kind := range []string{
		"",
		"text/plain",
		"application/x-www-form-urlencoded",
		"application/json; charset=latin1",
		"application/jsonx",
		";",
	} {
		if f := post(
			invoiceBody, header("Content-Type", kind),
		).refused(t, 415); f.Code != "content_type_unsupported" ||
			f.Type != "invalid_request" {
			t.Errorf("%q: %+v", kind, f)
		}
	}

	post(invoiceBody, http.Header{"Content-Encoding": {"gzip"}}).refused(t, 415)

	for _, kind := range []string{
		"application/json",
		"application/json; charset=utf-8",
		"Application/JSON;charset=UTF-8",
	} {
		s.ok(t, post(invoiceBody, header("Content-Type", kind)))
	}

	if f := post(
		`{"description":"`+strings.Repeat("x", 512<<10)+`"}`, nil,
	).refused(t, 413); f.Code != "body_too_large" {
		t.Errorf("%+v", f)
	}
	// A body where none is known has to be an empty object.
	s.do(t, request{method: "POST", path: "/v1/invoices/" + nobody + "/cancel", body: `{"reason":"x"}`}).
		refused(t, 400)
	s.do(t, request{method: "POST", path: "/v1/invoices/" + nobody + "/cancel", body: `{}`}).refused(t, 404)
}

// All that metadata may hold fits the default limit, also where a client escapes every character.
func TestTheMostMetadataIsTaken(t *testing.T) {
	s := open(t, nil)

	var entries []string

	for i := range 50 {
		value := strings.Repeat(`\ud83d\ude00`, 500) // one character in 12 bytes
		entries = append(entries, fmt.Sprintf(`"%040d":"%s"`, i, value))
	}

	metadata := `{"metadata":{` + strings.Join(entries, ",") + `},`
	inv := s.post(t, "/v1/invoices", strings.Replace(invoiceBody, "{", metadata, 1))

	if kept := inv["metadata"].(map[string]any); len(kept) != 50 {
		t.Errorf("%d of 50 entries are kept", len(kept))
	}
}

func TestQueriesAreReadStrictly(t *testing.T) {
	s := open(t, nil)
	for _, test := range []struct{ path, code, param string }{
		{"/v1/invoices?colour=red", "parameter_unknown", "colour"},
		{"/v1/invoices?Limit=5", "parameter_unknown", "Limit"},
		{"/v1/invoices/" + nobody + "?limit=5", "parameter_unknown", "limit"},
		{"/v1/invoices?q=a&q=b", "parameter_invalid", "q"},
		{"/v1/invoices?status=open&status=", "parameter_invalid", "status"},
		{"/v1/invoices?status=open&status=opened", "parameter_invalid", "status"},
		{"/v1/invoices?status=opened", "parameter_invalid", "status"},
		{"/v1/invoices?status=open,", "parameter_invalid", "status"},
		{"/v1/invoices?status=", "parameter_invalid", "status"},
		{"/v1/invoices?network=moon", "parameter_invalid", "network"},
		{"/v1/invoices?network=livenet", "parameter_invalid", "network"},
		{"/v1/invoices?limit=0", "parameter_invalid", "limit"},
		{"/v1/invoices?limit=101", "parameter_invalid", "limit"},
		{"/v1/invoices?limit=ten", "parameter_invalid", "limit"},
		{"/v1/invoices?limit=99999999999999999999", "parameter_invalid", "limit"},
		{"/v1/invoices?created_after=yesterday", "parameter_invalid", "created_after"},
		{"/v1/invoices?q=%00", "parameter_invalid", "q"},
		{"/v1/invoices?q=%ff", "parameter_invalid", "q"},
		{"/v1/invoices?q=%", "parameter_invalid", ""},
		{"/v1/invoices?q=a;b", "parameter_invalid", ""},
		{"/v1/invoices?q=" + strings.Repeat("q", 255), "parameter_invalid", "q"},
		{"/v1/invoices?starting_after=x", "parameter_invalid", "starting_after"},
		{"/v1/invoices?starting_after=" + nobody, "parameter_invalid", "starting_after"},
		{"/v1/invoices?starting_after=" + strings.Repeat("A", 101), "parameter_invalid", "starting_after"},
		{"/v1/payments?invoice_id=x", "parameter_invalid", "invoice_id"},
		{"/v1/payments?status=" + strings.Repeat("detected,", 40) + "detected", "parameter_invalid", "status"},
		{"/v1/rates", "parameter_missing", "base"},
		{"/v1/rates?base=MOON", "parameter_invalid", "base"},
		{"/v1/rates?base=SIM&quote=EUR", "parameter_invalid", "quote"},
		{"/v1/assets?network=moon", "parameter_invalid", "network"},
		{"/v1/events?type=invoice.eaten", "parameter_invalid", "type"},
	} {
		f := s.do(t, request{method: "GET", path: test.path}).refused(t, 400)
		if f.Code != test.code || f.Param != test.param {
			t.Errorf("%s: %+v, want %s about %q", test.path, f, test.code, test.param)
		}
	}
}

func TestPathsAndMethods(t *testing.T) {
	s := open(t, nil)
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v1/invoices/", "/v1//invoices", "/v1/../v1/invoices", "/v2/invoices",
		"/v1/invoice", "/v1/invoices/a/b/c", "*",
	} {
		if f := s.do(t, request{method: "GET", path: path}).
			refused(t, 404); f.Code != "path_unknown" ||
			f.Type != "not_found" {
			t.Errorf("%s: %+v", path, f)
		}
	}

	for path, allow := range map[string]string{
		"/v1/invoices":                    "GET, POST",
		"/v1/invoices/" + nobody:          "GET",
		"/v1/webhook_endpoints/" + nobody: "DELETE, GET, PATCH",
		"/v1/openapi.json":                "GET",
	} {
		r := s.do(t, request{method: "PUT", path: path})
		if f := r.refused(t, 405); f.Code != "method_not_allowed" || r.header.Get("Allow") != allow {
			t.Errorf("%s: %+v, Allow: %s", path, f, r.header.Get("Allow"))
		}
	}

	for _, id := range []string{
		"1",
		"0123456789ABCDEF01234567",
		"%00",
		"%2e%2e",
		"evt_",
		strings.Repeat("a", 100),
		"'%20OR%201=1",
	} {
		s.do(t, request{method: "GET", path: "/v1/invoices/" + id}).refused(t, 404)
	}

	if f := s.do(t, request{method: "GET", path: "/v1/invoices/" + strings.Repeat("a", 101)}).
		refused(t, 400); f.Param != "id" {
		t.Errorf("%+v", f)
	}

	r := s.do(t, request{method: "HEAD", path: "/v1/invoices"})
	if r.status != 200 || len(r.body) != 0 || r.header.Get("Content-Length") == "" {
		t.Errorf("HEAD: %+v", r)
	}
}

func TestMountedBelowAPrefix(t *testing.T) {
	s := open(t, &httpapi.Options{Prefix: "/pay"})
	s.get(t, "/pay/v1/invoices")
	s.do(t, request{method: "GET", path: "/v1/invoices"}).refused(t, 404)
	s = open(t, nil)
	s.handler = http.StripPrefix("/pay", s.handler)
	s.get(t, "/pay/v1/invoices")
}

func TestCursorBelongsToItsList(t *testing.T) {
	s := open(t, nil)
	for range 7 {
		s.post(t, "/v1/invoices", invoiceBody)
	}

	seen := map[string]bool{}
	next := ""

	for pages := 0; ; pages++ {
		path := "/v1/invoices?status=open&limit=3"
		if next != "" {
			path += "&starting_after=" + next
		}

		v := s.get(t, path)

		data := v["data"].([]any)
		for _, row := range data {
			id := row.(map[string]any)["id"].(string)
			if seen[id] {
				t.Fatalf("%s is on two pages", id)
			}

			seen[id] = true
		}

		if v["has_more"] == false {
			if v["next_cursor"] != nil || pages != 2 || len(data) != 1 {
				t.Fatalf("page %d: %v", pages, v)
			}

			break
		}

		if len(data) != 3 {
			t.Fatalf("page %d: %v", pages, v)
		}

		next = v["next_cursor"].(string)
	}

	if len(seen) != 7 {
		t.Fatalf("%d of 7 invoices listed", len(seen))
	}

	for _, path := range []string{
		"/v1/invoices?",
		"/v1/invoices?status=paid&",
		"/v1/invoices?status=open&q=a&",
		"/v1/payments?status=detected&",
	} {
		if f := s.do(t, request{method: "GET", path: path + "starting_after=" + next}).
			refused(t, 400); f.Code != "parameter_invalid" ||
			f.Param != "starting_after" {
			t.Errorf("%s: %+v", path, f)
		}
	}
	// the order and the limit are no filters
	s.get(t, "/v1/invoices?limit=100&starting_after="+next+"&status=open")
}

func TestReferenceListsPage(t *testing.T) {
	s := open(t, nil)
	first := s.get(t, "/v1/assets?limit=1")
	second := s.get(t, "/v1/assets?limit=1&starting_after="+first["next_cursor"].(string))

	a, b := first["data"].([]any)[0].(map[string]any), second["data"].([]any)[0].(map[string]any)
	if a["id"] == b["id"] || second["has_more"] != false {
		t.Errorf("pages %v and %v", first, second)
	}

	if got := s.get(t, "/v1/assets?network=simnet")["data"].([]any); len(got) != 2 {
		t.Errorf("%v", got)
	}

	asset := a["id"].(string)
	if _, err := s.engine.Accounts.UpdateSettings(
		t.Context(), s.account.ID, account.Settings{Assets: []string{asset}},
	); err != nil {
		t.Fatal(err)
	}

	if got := s.get(t, "/v1/assets")["data"].([]any); len(got) != 1 ||
		got[0].(map[string]any)["id"] != asset {
		t.Errorf("with one asset enabled: %v", got)
	}
}
