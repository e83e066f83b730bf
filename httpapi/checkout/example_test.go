package checkout_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing/fstest"

	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/internal/sim"
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
	handler := checkout.Handler(newEngine(sim.New(sim.Config{})), &checkout.Options{Files: files})

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
