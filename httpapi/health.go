package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/health"
)

// HealthHandler serves GET /healthz and /readyz without authentication. /healthz answers 200 as long as the
// process answers. /readyz answers 503 while health.Report.Ready is false. The body names what fails, other
// processes that are lost included, and nothing of why: the errors of Engine.Health are for the host.
func HealthHandler(e *payments.Engine) http.Handler {
	mux := http.NewServeMux()

	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeHealth(w, http.StatusOK, healthBody{Status: "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		report, err := e.Health(r.Context())
		if err != nil {
			writeHealth(w, http.StatusServiceUnavailable, healthBody{Status: "failing"})
			return
		}

		writeHealth(w, statusOf(report), bodyOf(report))
	})

	return mux
}

// healthBody is the answer of /healthz and /readyz.
type healthBody struct {
	// Status is ok or failing.
	Status string `json:"status"`
	// NeedsPerson is set while a wallet waits for a person.
	NeedsPerson bool `json:"needs_person"`
	// Failing names the checks that fail.
	Failing []string `json:"failing,omitempty"`
}

func statusOf(report health.Report) int {
	if report.Ready() {
		return http.StatusOK
	}

	return http.StatusServiceUnavailable
}

func bodyOf(report health.Report) healthBody {
	body := healthBody{Status: "ok", NeedsPerson: report.NeedsPerson()}
	if !report.OK() {
		body.Status = "failing"
	}

	for _, c := range report.Checks {
		if c.Error != "" {
			body.Failing = append(body.Failing, c.Name)
		}
	}

	for _, n := range report.Networks {
		if !n.Ready() {
			body.Failing = append(body.Failing, "network "+n.Network)
		}
	}

	for _, p := range report.Processes {
		if p.Lost {
			body.Failing = append(body.Failing, "a process")
		}
	}

	return body
}

func writeHealth(w http.ResponseWriter, status int, body healthBody) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)

	_ = json.NewEncoder(w).Encode(body) // the client is gone
}
