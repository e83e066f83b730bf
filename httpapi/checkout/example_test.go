package checkout_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing/fstest"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// A shop in its own colours, with its own words where it wants them, and in one more language. In a
// service the files are embedded: //go:embed checkout, then fs.Sub(files, "checkout").
func ExampleOptions_files() {
	files := fstest.MapFS{
		"assets/brand.css": {
			Data: []byte(
				`:root { --accent: #7a1f3d; } @media (prefers-color-scheme: dark) { :root { --accent: #f2a9c0; } }`,
			),
		},
		"lang/en.json": {Data: []byte(`{"error.not_found.headline": "We do not know this order"}`)},
		"lang/fr.json": {
			Data: []byte(`{"language": "Français", "error.not_found.headline": "Commande inconnue"}`),
		},
	}
	handler := checkout.Handler(exampleEngine(), &checkout.Options{Files: files})

	mux := http.NewServeMux()
	mux.Handle("/checkout/", handler)

	server := httptest.NewServer(mux)
	defer server.Close()

	headline, brand := regexp.MustCompile(`<h1>(.*)</h1>`), regexp.MustCompile(`assets/brand\.[0-9a-f]+\.css`)

	for _, lang := range []string{"en", "fr", "es"} {
		page := fetch(server.URL + "/checkout/000000000000000000000000?lang=" + lang)
		fmt.Println(lang, headline.FindStringSubmatch(page)[1])

		if lang == "en" {
			fmt.Println(fetch(server.URL + "/checkout/" + brand.FindString(page)))
		}
	}
	// Output:
	// en We do not know this order
	// :root { --accent: #7a1f3d; } @media (prefers-color-scheme: dark) { :root { --accent: #f2a9c0; } }
	// fr Commande inconnue
	// es No existe esta factura
}

// exampleEngine returns a service on a simulated network.
func exampleEngine() *payments.Engine {
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, nil)
	if err != nil {
		panic(err)
	}

	engine, err := payments.New(payments.Config{
		Store:     memory.New(),
		Drivers:   []payments.ChainDriver{sim.New(sim.Config{}).Driver()},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: []byte("32 random bytes, from your vault"),
	})
	if err != nil {
		panic(err)
	}

	return engine
}

func fetch(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()

	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}

	return string(body)
}
