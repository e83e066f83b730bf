//go:build unix

package checkout

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
)

// screenshotsEnv names a directory that the pictures of every state are written to; make screenshots sets it.
const screenshotsEnv = "PAYMENTS_SCREENSHOTS"

// browse runs a task of testdata/browser.mjs and reports what it finds wrong.
func browse(t *testing.T, server *httptest.Server, task string, more map[string]any) {
	t.Helper()

	input := map[string]any{"chromium": testenv.Chromium(t), "base": server.URL, "task": task}
	for k, v := range more {
		input[k] = v
	}

	var wrong []string
	testenv.Script(t, "testdata/browser.mjs", input, &wrong)

	for _, w := range wrong {
		t.Error(w)
	}
}

func TestEveryStateInABrowser(t *testing.T) {
	server := httptest.NewServer(galleryServer(t, nil))
	defer server.Close()

	type page struct {
		Name string `json:"name"`
		Path string `json:"path"`
		// Status is what the page is answered with; 0 for 200.
		Status int `json:"status,omitempty"`
	}

	var pages []page
	for _, e := range gallery() {
		pages = append(pages, page{e.name, pageOf(e), 0})
	}

	pay := named(t, "pay")
	pages = append(
		pages,
		page{
			"pay-es",
			pageOf(pay) + "?lang=es",
			0,
		},
		page{"pay-zh", pageOf(pay) + "?lang=zh", 0},
		page{"choose-zh", pageOf(named(t, "choose")) + "?lang=zh", 0},
		page{
			"not-found",
			"/checkout/" + strings.Repeat("a", 24),
			http.StatusNotFound,
		},
		page{"error", pageOf(pay) + "/select", http.StatusMethodNotAllowed},
	)
	browse(t, server, "gallery", map[string]any{"pages": pages, "shots": os.Getenv(screenshotsEnv)})
}

// stage is one invoice that a browser test changes while the page is open.
type stage struct {
	backend *fakeBackend
	pages   *pages
	server  *httptest.Server
	path    string
}

func newStage(t *testing.T, first exhibit) *stage {
	t.Helper()

	s := &stage{backend: newFake(first), path: pageOf(first)}
	s.backend.hintResult = invoice.HintNotFound
	s.pages = newTestPages(t, s.backend, nil)
	mux := http.NewServeMux()
	mux.Handle("/checkout/", s.pages)
	mux.HandleFunc("POST /control/{what}", func(w http.ResponseWriter, r *http.Request) {
		switch what := r.PathValue("what"); what {
		case "streams":
			s.pages.streams.mu.Lock()
			defer s.pages.streams.mu.Unlock()

			n := 0
			for _, open := range s.pages.streams.open {
				n += open
			}

			_, _ = w.Write([]byte(strconv.Itoa(n)))
		case "later":
			s.backend.advance(time.Minute)
		default:
			e := named(t, what)
			e.invoice.ID = first.invoice.ID
			s.backend.set(e)
		}
	})
	s.server = httptest.NewServer(mux)
	t.Cleanup(s.server.Close)

	return s
}

func TestPageIsLive(t *testing.T) {
	s := newStage(t, named(t, "pay"))
	browse(t, s.server, "live", map[string]any{"path": s.path})
}

func TestPageAsksWhereThereAreNoStreams(t *testing.T) {
	s := newStage(t, named(t, "pay"))
	browse(t, s.server, "polling", map[string]any{"path": s.path})
}

// A proxy between the payer and the page takes the stream's events and passes none on, or answers nothing at all: the
// page asks by itself, and says so.
func TestPageAsksWhereStreamsAreSilent(t *testing.T) {
	for name, silent := range map[string]http.HandlerFunc{
		"buffering": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // an error: the browser is gone

			<-r.Context().Done()
		},
		"an empty answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, named(t, "pay"))

			behind, err := url.Parse(s.server.URL)
			if err != nil {
				t.Fatal(err)
			}

			forward := httputil.NewSingleHostReverseProxy(behind)
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/events") {
					silent(w, r)
					return
				}

				forward.ServeHTTP(w, r)
			}))
			t.Cleanup(proxy.Close)

			browse(t, proxy, "silent", map[string]any{"path": s.path})
		})
	}
}

func TestQuoteRunsOutInFrontOfThePayer(t *testing.T) {
	e := named(t, "pay")
	e.invoice.Options[0].QuoteExpiresAt = noon.Add(4 * time.Second)
	s := newStage(t, e)
	browse(t, s.server, "quote", map[string]any{"path": s.path})
}

func TestCopyButtons(t *testing.T) {
	s := newStage(t, named(t, "pay"))
	browse(t, s.server, "copy", map[string]any{"path": s.path, "address": ethAddress})
}

func TestPageWithoutScripts(t *testing.T) {
	s := newStage(t, named(t, "choose"))
	browse(t, s.server, "noscript", map[string]any{"path": s.path})

	if len(s.backend.hints) != 1 || s.backend.hints[0] != "0x"+strings.Repeat("ab", 32) ||
		len(s.backend.selected) != 1 {
		t.Errorf("selected %v, hints %v", s.backend.selected, s.backend.hints)
	}
}

// Everything can be done by the keyboard, in the order in which it is seen.
func TestPageByKeyboard(t *testing.T) {
	s := newStage(t, named(t, "choose"))
	browse(t, s.server, "keyboard", map[string]any{"path": s.path})

	if len(s.backend.selected) != 1 || len(s.backend.hints) != 1 {
		t.Errorf("selected %v, hints %v", s.backend.selected, s.backend.hints)
	}
}

// Who asks for less motion sees none.
func TestPageInRest(t *testing.T) {
	server := httptest.NewServer(galleryServer(t, nil))
	defer server.Close()

	browse(
		t,
		server,
		"motion",
		map[string]any{
			"paths": []string{
				pageOf(named(t, "seen")),
				pageOf(named(t, "confirming")),
				pageOf(named(t, "confirming-finality")),
			},
		},
	)
}

func TestQRCodesDecode(t *testing.T) {
	texts := []string{
		"bitcoin:" + btcAddress + "?amount=0.00058",
		ethAddress,
		tronAddress,
		"ethereum:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48@1/transfer?address=" + ethAddress + "&uint256=54239000",
		"solana:" + solAddress + "?amount=49.9&spl-token=EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGkZwyTDt1v",
		"solana:" + solAddress + "?amount=49.9&spl-token=EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGkZwyTDt1v&reference=" +
			solAddress + "&label=" + strings.Repeat(
			"%C3%BC",
			maxRequestText,
		) +
			"&message=" + strings.Repeat(
			"%20",
			maxRequestText,
		),
		"12345678901234567890",
		"ABC-123",
		strings.Repeat("long ", 100),
	}

	var codes []map[string]any

	for _, text := range texts {
		c := newQR(text)
		codes = append(codes, map[string]any{"path": c.Path, "size": c.Size})
	}

	var decoded []*string
	testenv.Script(t, "testdata/qr.mjs", codes, &decoded)

	for i, text := range texts {
		if decoded[i] == nil || *decoded[i] != text {
			t.Errorf("the QR code of %q decodes to %v", text, decoded[i])
		}
	}
}
