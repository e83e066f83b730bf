package rate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
)

// Feed is a source that asks one public price API over HTTP. Make it with Coinbase, Kraken, Binance
// or CoinGecko. It is safe for concurrent use. Answers are read up to 64 KiB within Timeout; prices
// are taken from their digits, never through floating point.
type Feed struct {
	// Name is the feed's name in errors.
	Name string
	// BaseURL is the URL of the API, without a trailing slash. Each constructor sets the public one.
	BaseURL string
	// Header is sent with every request, such as an API key that a feed requires.
	Header http.Header
	// Client sends the requests. Defaults to http.DefaultClient.
	Client *http.Client
	// Timeout bounds one request. Defaults to 5 seconds.
	Timeout time.Duration
	// Fresh is how long a price may be used. Defaults to 1 minute.
	Fresh time.Duration
	// Now defaults to time.Now.
	Now func() time.Time

	path  func(base, currency string) (string, bool)
	parse func(body []byte, base, currency string) (string, error)
	// unknown reports whether an answer, with its status, means that the feed does not have the pair.
	unknown func(status int, body []byte) bool
}

// maxAnswer is how many bytes of an answer are read; real ones have a few hundred bytes.
const maxAnswer = 64 << 10

// Quote implements Source. A pair that the feed does not have is fault.Invalid; every other failure is
// fault.Unavailable.
func (f *Feed) Quote(ctx context.Context, base, currency string) (Quote, error) {
	base, currency = normal(base, currency)

	path, ok := f.path(base, currency)
	if !ok {
		return Quote{}, Unsupported(base, currency)
	}

	now := time.Now
	if f.Now != nil {
		now = f.Now
	}

	fetched := now()

	status, body, err := f.get(ctx, path)

	switch {
	case err != nil:
		return Quote{}, Unavailable(base, currency, fmt.Errorf("%s: %w", f.Name, err))
	case f.unknown(status, body):
		return Quote{}, Unsupported(base, currency)
	case status != http.StatusOK:
		return Quote{}, Unavailable(
			base, currency,
			fmt.Errorf("%s: the feed answered %d %s", f.Name, status, http.StatusText(status)),
		)
	}

	digits, err := f.parse(body, base, currency)
	if errors.Is(err, errUnknownPair) {
		return Quote{}, Unsupported(base, currency)
	}

	if err != nil {
		return Quote{}, Unavailable(
			base, currency, fmt.Errorf("%s answered something else than a price: %w", f.Name, err),
		)
	}

	price, err := priceOf(digits)
	if err != nil {
		return Quote{}, Unavailable(base, currency, fmt.Errorf("%s: %w", f.Name, err))
	}

	fresh := f.Fresh
	if fresh == 0 {
		fresh = time.Minute
	}

	return Quote{
		Base:      base,
		Currency:  currency,
		Rate:      price,
		FetchedAt: fetched,
		ExpiresAt: fetched.Add(fresh),
	}, nil
}

// priceOf parses a price, which may have an exponent (CoinGecko writes 1.2e-05), and refuses anything else.
func priceOf(digits string) (decimal.Decimal, error) {
	if len(digits) > 64 {
		return decimal.Decimal{}, fmt.Errorf("a price of %d characters", len(digits))
	}

	d, err := decimal.NewFromString(digits)
	if err != nil || d.Exponent() > 30 || d.Exponent() < -64 {
		return decimal.Decimal{}, fmt.Errorf("%q is not a price", digits)
	}

	price, ok := round(d)
	if !ok {
		return decimal.Decimal{}, fmt.Errorf(
			"the price %s has fewer than 3 significant digits at 8 places",
			digits,
		)
	}

	return price, nil
}

// errUnknownPair is the error of an answer that lacks a pair.
var errUnknownPair = errors.New("it does not have the pair")

func (f *Feed) get(ctx context.Context, path string) (status int, body []byte, err error) {
	timeout := f.Timeout
	if timeout == 0 {
		timeout = 5 * time.Second
	}

	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.BaseURL+path, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("its BaseURL makes no request: %w", withoutURL(err))
	}

	for name, values := range f.Header {
		req.Header[name] = values
	}

	req.Header.Set("Accept", "application/json")

	client := f.Client
	if client == nil {
		client = http.DefaultClient
	}

	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, withoutURL(err)
	}
	defer resp.Body.Close()

	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, err
	case len(body) > maxAnswer:
		return 0, nil, fault.New(
			fault.Unavailable, "feed_answer_too_long", "the feed answered more than %d bytes",
			maxAnswer,
		)
	}

	return resp.StatusCode, body, nil
}

// withoutURL returns the cause of an error about a URL, which may hold a key. If a URL cannot be parsed, the
// causes quote parts of it, so only their kind is shown.
func withoutURL(err error) error {
	e, ok := err.(*url.Error) //nolint:errorlint // only the outermost error has the URL
	switch {
	case !ok:
		return err
	case e.Op == "parse":
		return errors.New("the URL cannot be parsed; correct it")
	default:
		return e.Err
	}
}

// Coinbase asks Coinbase's spot prices: GET /v2/prices/{base}-{currency}/spot.
func Coinbase() *Feed {
	return &Feed{
		Name:    "Coinbase",
		BaseURL: "https://api.coinbase.com",
		path: func(base, currency string) (string, bool) {
			return "/v2/prices/" + url.PathEscape(base+"-"+currency) + "/spot", true
		},
		parse: func(body []byte, base, currency string) (string, error) {
			var a struct {
				Data struct{ Amount, Base, Currency string }
			}
			if err := json.Unmarshal(body, &a); err != nil {
				return "", err
			}

			if a.Data.Base != base || a.Data.Currency != currency {
				return "", fmt.Errorf("it is about %s-%s", a.Data.Base, a.Data.Currency)
			}

			return a.Data.Amount, nil
		},
		unknown: func(status int, body []byte) bool {
			var a struct{ Errors []struct{ ID string } }

			refused := status == http.StatusNotFound || status == http.StatusBadRequest

			return refused && json.Unmarshal(body, &a) == nil && len(a.Errors) > 0 &&
				(a.Errors[0].ID == "not_found" || a.Errors[0].ID == "invalid_request")
		},
	}
}

// Kraken asks Kraken's ticker for the last trade: GET /0/public/Ticker?pair={base}{currency}. Kraken calls
// bitcoin XBT.
func Kraken() *Feed {
	return &Feed{
		Name:    "Kraken",
		BaseURL: "https://api.kraken.com",
		path: func(base, currency string) (string, bool) {
			if base == "BTC" {
				base = "XBT"
			}

			return "/0/public/Ticker?pair=" + url.QueryEscape(base+currency), true
		},
		parse: func(body []byte, _, _ string) (string, error) {
			var a struct {
				Error  []string
				Result map[string]struct{ C []string }
			}
			if err := json.Unmarshal(body, &a); err != nil {
				return "", err
			}

			if len(a.Error) > 0 {
				return "", fmt.Errorf("it says %s", strings.Join(a.Error, ", "))
			}

			if len(a.Result) != 1 {
				return "", fmt.Errorf("it has %d pairs", len(a.Result))
			}

			for _, pair := range a.Result {
				if len(pair.C) > 0 {
					return pair.C[0], nil
				}
			}

			return "", fmt.Errorf("it has no last trade")
		},
		unknown: func(_ int, body []byte) bool {
			var a struct{ Error []string }

			return json.Unmarshal(body, &a) == nil && slices.Contains(a.Error, "EQuery:Unknown asset pair")
		},
	}
}

// Binance asks Binance's ticker: GET /api/v3/ticker/price?symbol={base}{currency}. It has no dollars: for USD
// it asks for USDT, so combine it with feeds that have dollars, under Median.
func Binance() *Feed {
	symbol := func(base, currency string) string {
		if currency == "USD" {
			currency = "USDT"
		}

		return base + currency
	}

	return &Feed{
		Name:    "Binance",
		BaseURL: "https://api.binance.com",
		path: func(base, currency string) (string, bool) {
			return "/api/v3/ticker/price?symbol=" + url.QueryEscape(
					symbol(base, currency),
				), base != "USDT" ||
					currency != "USD"
		},
		parse: func(body []byte, base, currency string) (string, error) {
			var a struct{ Symbol, Price string }
			if err := json.Unmarshal(body, &a); err != nil {
				return "", err
			}

			if a.Symbol != symbol(base, currency) {
				return "", fmt.Errorf("it is about %s", a.Symbol)
			}

			return a.Price, nil
		},
		unknown: func(status int, body []byte) bool {
			const invalidSymbol = -1121

			var a struct{ Code int }

			return status == http.StatusBadRequest && json.Unmarshal(body, &a) == nil &&
				a.Code == invalidSymbol
		},
	}
}

// CoinGecko asks CoinGecko's simple price: GET
// /api/v3/simple/price?ids={id}&vs_currencies={currency}. ids maps symbols to CoinGecko's ids and
// adds to the well-known ones; an API key goes into Header as x-cg-demo-api-key.
func CoinGecko(ids map[string]string) *Feed {
	known := map[string]string{
		"BTC":  "bitcoin",
		"ETH":  "ethereum",
		"SOL":  "solana",
		"TRX":  "tron",
		"BNB":  "binancecoin",
		"POL":  "polygon-ecosystem-token",
		"USDC": "usd-coin",
		"USDT": "tether",
		"DAI":  "dai",
	}
	for symbol, id := range ids {
		known[strings.ToUpper(symbol)] = id
	}

	return &Feed{
		Name:    "CoinGecko",
		BaseURL: "https://api.coingecko.com",
		path: func(base, currency string) (string, bool) {
			id, ok := known[base]
			q := url.Values{"ids": {id}, "vs_currencies": {strings.ToLower(currency)}, "precision": {"full"}}

			return "/api/v3/simple/price?" + q.Encode(), ok
		},
		parse: func(body []byte, base, currency string) (string, error) {
			var a map[string]map[string]json.Number
			if err := json.Unmarshal(body, &a); err != nil {
				return "", err
			}

			prices, ok := a[known[base]]
			if !ok {
				return "", fmt.Errorf("it has no %s", base)
			}

			price, ok := prices[strings.ToLower(currency)]
			if !ok {
				return "", errUnknownPair
			}

			return price.String(), nil
		},
		unknown: func(int, []byte) bool { return false }, // parse reports it
	}
}
