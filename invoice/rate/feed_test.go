package rate_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// The shapes below are those of the feeds' public documentation: docs.cdp.coinbase.com (Coinbase
// App, prices), docs.kraken.com (Get Ticker Information), developers.binance.com (Symbol Price
// Ticker) and docs.coingecko.com (Coin Price by IDs). The feeds themselves are not asked by tests.
func TestFeeds(t *testing.T) {
	feeds := map[string]struct {
		feed            func() *rate.Feed
		base, currency  string
		request, answer string
		want            string
	}{
		"Coinbase": {
			rate.Coinbase,
			"ETH",
			"EUR",
			"/v2/prices/ETH-EUR/spot",
			`{"data":{"amount":"2312.455","base":"ETH","currency":"EUR"}}`,
			"2312.455",
		},
		"Kraken": {
			rate.Kraken,
			"BTC",
			"USD",
			"/0/public/Ticker?pair=XBTUSD",
			`{"error":[],"result":{"XXBTZUSD":{"a":["52609.60000","1","1.000"],"b":["52609.50000","1",` +
				`"1.000"],"c":["52641.10000","0.00080000"],"v":["1920.83610601","7954.00219674"]}}}`,
			"52641.1",
		},
		"Binance": {
			rate.Binance,
			"ETH",
			"USD",
			"/api/v3/ticker/price?symbol=ETHUSDT",
			`{"symbol":"ETHUSDT","price":"2500.10000000"}`,
			"2500.1",
		},
		"CoinGecko": {
			func() *rate.Feed { return rate.CoinGecko(map[string]string{"simx": "sim-x"}) },
			"SIMX",
			"USD",
			"/api/v3/simple/price?ids=sim-x&precision=full&vs_currencies=usd",
			`{"sim-x":{"usd":1.23456789012e-02}}`,
			"0.01234567",
		},
	}
	for name, c := range feeds {
		t.Run(name, func(t *testing.T) {
			var asked string

			answer, status := c.answer, http.StatusOK

			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.RequestURI()

				w.WriteHeader(status)
				_, _ = w.Write([]byte(answer))
			}))
			defer server.Close()

			f := c.feed()
			f.BaseURL = server.URL

			q, err := f.Quote(t.Context(), strings.ToLower(c.base), c.currency)
			if err != nil || q.Rate.String() != c.want || q.Base != c.base || q.Currency != c.currency ||
				q.ExpiresAt.Sub(q.FetchedAt) != time.Minute {
				t.Fatalf("Quote = %+v, %v", q, err)
			}

			if asked != c.request {
				t.Errorf("asked for %s, want %s", asked, c.request)
			}

			for what, bad := range map[string]string{
				"another pair": strings.NewReplacer(
					c.base, "ZZZ", "sim-x", "sim-y", "XBTZ", "XBTQ", `"c":`, `"d":`,
				).Replace(c.answer),
				"no JSON": "<html>403</html>",
				"empty":   "",
				"a list":  "[]",
				"no number": strings.NewReplacer(
					"2312.455", "NaN", "52641.10000", "-1", "2500.10000000", "1e400",
					"1.23456789012e-02", `"x"`,
				).Replace(c.answer),
				"too long": `{"data":"` + strings.Repeat("x", 100_000) + `"}`,
			} {
				answer = bad

				if q, err := f.Quote(t.Context(), c.base, c.currency); !errors.Is(err, fault.Unavailable) {
					t.Errorf("%s: Quote = %+v, %v; want fault.Unavailable", what, q, err)
				}
			}

			answer, status = c.answer, http.StatusForbidden
			if _, err := f.Quote(
				t.Context(), c.base, c.currency,
			); !errors.Is(err, fault.Unavailable) ||
				!strings.Contains(err.Error(), "403") {
				t.Errorf("403: %v", err)
			}

			server.Close()

			if _, err := f.Quote(
				t.Context(), c.base, c.currency,
			); !errors.Is(err, fault.Unavailable) ||
				strings.Contains(err.Error(), server.URL) {
				t.Errorf("dead: %v (it must not name the URL, which may hold a key)", err)
			}
		})
	}

	if _, err := rate.CoinGecko(nil).Quote(t.Context(), "NOSUCH", "USD"); !errors.Is(err, fault.Invalid) {
		t.Errorf("a symbol without an id: %v", err)
	}
}

// A feed that says that it does not have a pair is not asked again soon, unlike one that fails.
func TestFeedsSayWhatTheyDoNotHave(t *testing.T) {
	for name, c := range map[string]struct {
		feed   *rate.Feed
		status int
		answer string
		want   error
	}{
		"Coinbase, an asset": {
			rate.Coinbase(), 404, `{"errors":[{"id":"not_found","message":"Invalid base currency"}]}`, fault.Invalid,
		},
		"Coinbase, a currency": {
			rate.Coinbase(),
			400,
			`{"errors":[{"id":"invalid_request","message":"Currency is invalid"}]}`,
			fault.Invalid,
		},
		"Coinbase, another address": {rate.Coinbase(), 404, `<html>`, fault.Unavailable},
		"Coinbase, too often": {
			rate.Coinbase(), 429, `{"errors":[{"id":"rate_limit_exceeded"}]}`, fault.Unavailable,
		},
		"Kraken":            {rate.Kraken(), 200, `{"error":["EQuery:Unknown asset pair"]}`, fault.Invalid},
		"Kraken, too often": {rate.Kraken(), 200, `{"error":["EAPI:Rate limit exceeded"]}`, fault.Unavailable},
		"Binance":           {rate.Binance(), 400, `{"code":-1121,"msg":"Invalid symbol."}`, fault.Invalid},
		"Binance, too often": {
			rate.Binance(), 429, `{"code":-1003,"msg":"Too many requests."}`, fault.Unavailable,
		},
		"CoinGecko": {rate.CoinGecko(nil), 200, `{"ethereum":{}}`, fault.Invalid},
		"CoinGecko, too often": {
			rate.CoinGecko(nil), 429, `{"status":{"error_code":429}}`, fault.Unavailable,
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.answer))
		}))

		c.feed.BaseURL = server.URL
		if _, err := c.feed.Quote(t.Context(), "ETH", "ZZZ"); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}

		server.Close()
	}
}

// A BaseURL may hold an API key: neither a whole one nor a part of it is shown.
func TestMalformedBaseURLIsNotShown(t *testing.T) {
	for _, base := range []string{
		"https://api.example.com/s3cret\x7f",
		"https://api.example.com/%s3cret",
		"https://user:s3cret%zz@api.example.com",
		"https://api.example.com:s3cret",
		"://s3cret",
	} {
		f := rate.Coinbase()
		f.BaseURL = base

		_, err := f.Quote(t.Context(), "ETH", "USD")
		if !errors.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "s3cret") ||
			strings.Contains(err.Error(), "%s3") {
			t.Errorf("with the BaseURL %q: %v", base, err)
		}
	}
}

type says struct {
	price string
	age   time.Duration
	err   error
}

func (s says) Quote(_ context.Context, base, currency string) (rate.Quote, error) {
	if s.err != nil {
		return rate.Quote{}, s.err
	}

	at := time.Unix(1_800_000_000, 0).Add(-s.age)

	return rate.Quote{
		Base:      base,
		Currency:  currency,
		Rate:      decimal.RequireFromString(s.price),
		FetchedAt: at,
		ExpiresAt: at.Add(10 * time.Minute),
	}, nil
}

// panics is a source with a bug.
type panics struct{}

func (panics) Quote(context.Context, string, string) (rate.Quote, error) { panic("the host's bug") }

// hangs is a source that answers nobody, whatever becomes of the call's context, until it is released.
type hangs struct{ release chan struct{} }

func (h hangs) Quote(_ context.Context, base, currency string) (rate.Quote, error) {
	<-h.release
	return rate.Quote{}, rate.Unavailable(base, currency, nil)
}

// A source that hangs delays the others once, and loses nobody their price.
func TestMedianOfASourceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hangs{make(chan struct{})}
		defer close(h.release)

		m, err := rate.Median(
			rate.MedianConfig{Sources: []rate.Source{says{price: "100"}, h, says{price: "102"}}},
		)
		if err != nil {
			t.Fatal(err)
		}

		for _, most := range []time.Duration{5 * time.Second, 0} {
			began := time.Now()

			q, err := m.Quote(t.Context(), "ETH", "USD")
			if took := time.Since(began); err != nil || q.Rate.String() != "100" || took > most {
				t.Errorf("the price is %s after %s: %v", q.Rate, took, err)
			}
		}
	})
}

func TestMedian(t *testing.T) {
	dead, unknown := errors.New("403"), rate.Unsupported("ETH", "USD")
	for name, c := range map[string]struct {
		sources []rate.Source
		want    string // "" = unavailable
		word    error
	}{
		"three agree": {
			[]rate.Source{says{price: "100"}, says{price: "101"}, says{price: "102"}},
			"101",
			nil,
		},
		"one lies": {
			[]rate.Source{says{price: "100"}, says{price: "5000"}, says{price: "102"}},
			"100",
			nil,
		},
		"one is gone": {[]rate.Source{says{price: "100"}, says{err: dead}, says{price: "102"}}, "100", nil},
		"one panics":  {[]rate.Source{says{price: "100"}, panics{}, says{price: "102"}}, "100", nil},
		"one is stale": {
			[]rate.Source{says{price: "100"}, says{price: "101", age: 6 * time.Minute}, says{price: "102"}},
			"100",
			nil,
		},
		"two of three are gone": {
			[]rate.Source{says{price: "100"}, says{err: dead}, says{err: dead}},
			"",
			fault.Unavailable,
		},
		"all differ": {
			[]rate.Source{says{price: "100"}, says{price: "200"}, says{price: "300"}},
			"",
			fault.Unavailable,
		},
		"two differ":            {[]rate.Source{says{price: "100"}, says{price: "200"}}, "", fault.Unavailable},
		"nobody knows the pair": {[]rate.Source{says{err: unknown}, says{err: unknown}}, "", fault.Invalid},
		"zero is not a price": {
			[]rate.Source{says{price: "0"}, says{price: "0"}, says{price: "100"}},
			"",
			fault.Unavailable,
		},
		"the edge of the spread": {
			[]rate.Source{says{price: "97"}, says{price: "100"}, says{price: "103"}},
			"100",
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := rate.Median(
				rate.MedianConfig{
					Sources: c.sources,
					Now:     func() time.Time { return time.Unix(1_800_000_000, 0) },
				},
			)
			if err != nil {
				t.Fatal(err)
			}

			q, err := m.Quote(t.Context(), "ETH", "USD")
			if c.want == "" {
				if !errors.Is(err, c.word) {
					t.Fatalf("Quote = %+v, %v; want %v", q, err, c.word)
				}

				return
			}

			if err != nil || q.Rate.String() != c.want {
				t.Fatalf("Quote = %+v, %v; want %s", q, err, c.want)
			}
		})
	}

	if _, err := rate.Median(rate.MedianConfig{}); !errors.Is(err, fault.Invalid) {
		t.Errorf("no sources: %v", err)
	}
}

func FuzzFeedAnswers(f *testing.F) {
	f.Add([]byte(`{"data":{"amount":"2312.455","base":"ETH","currency":"EUR"}}`))
	f.Add([]byte(`{"error":[],"result":{"X":{"c":["1e999999999","1"]}}}`))
	f.Add([]byte(`{"symbol":"ETHEUR","price":"2500.1"}`))
	f.Add([]byte(`{"ethereum":{"eur":1.2e-05}}`))

	var answer []byte

	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }),
	)
	defer server.Close()

	f.Fuzz(func(t *testing.T, body []byte) {
		answer = body

		for _, feed := range []*rate.Feed{rate.Coinbase(), rate.Kraken(), rate.Binance(), rate.CoinGecko(nil)} {
			feed.BaseURL = server.URL

			q, err := feed.Quote(t.Context(), "ETH", "EUR")
			if err == nil && (q.Rate.Sign() <= 0 || q.Rate.Exponent() < -8) {
				t.Fatalf("%s made %s of %q", feed.Name, q.Rate, body)
			}

			if err != nil && !errors.Is(err, fault.Unavailable) {
				t.Fatalf("%s: %v", feed.Name, err)
			}
		}
	})
}
