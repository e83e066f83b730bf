package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/health"
)

// HealthHandler serves GET /healthz and /readyz without authentication. /healthz answers 200 while the
// process answers, with no other content. /readyz answers 503 while health.Report.Ready is false: while the
// API cannot answer. Its body has the readiness of each capability, the failing checks (lost processes
// included) and the stopped networks. The reasons are in Engine.Health, for the host alone: errors may name
// its nodes.
func HealthHandler(e *payments.Engine) http.Handler {
	mux := http.NewServeMux()

	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeHealth(w, http.StatusOK, statusBody{Status: "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		report, err := e.Health(r.Context())
		if err != nil {
			writeHealth(w, http.StatusServiceUnavailable, statusBody{Status: "failing"})
			return
		}

		writeHealth(w, statusOf(report), bodyOf(report))
	})

	return mux
}

// statusBody is the answer of /healthz, and of /readyz if the state could not be read.
type statusBody struct {
	// Status is ok or failing.
	Status string `json:"status"`
}

// healthBody is the answer of /readyz.
type healthBody struct {
	statusBody

	// NeedsPerson is health.Report.NeedsPerson.
	NeedsPerson bool `json:"needs_person"`
	// Failing names the checks that fail.
	Failing []string `json:"failing,omitempty"`
	// Stopped has the slugs of the networks that are stopped until a person resumes them. Engine.Health has
	// the reasons.
	Stopped []string `json:"stopped,omitempty"`
	// Ready is the readiness by capability.
	Ready readiness `json:"ready"`
}

// readiness is the readiness of each capability.
type readiness struct {
	API    bool `json:"api"`
	Prices bool `json:"prices"`
	// Networks are the networks that this process serves, by slug.
	Networks map[string]bool `json:"networks"`
}

// readinessOf returns the readiness that a report shows.
func readinessOf(report health.Report) readiness {
	r := readiness{API: report.Ready(), Prices: report.PricesReady(), Networks: map[string]bool{}}
	for _, n := range report.Networks {
		r.Networks[n.Network] = n.Ready()
	}

	return r
}

func statusOf(report health.Report) int {
	if report.Ready() {
		return http.StatusOK
	}

	return http.StatusServiceUnavailable
}

func bodyOf(report health.Report) healthBody {
	body := healthBody{
		statusBody:  statusBody{Status: "ok"},
		NeedsPerson: report.NeedsPerson(),
		Ready:       readinessOf(report),
	}
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

		if n.NeedsPerson() {
			body.Stopped = append(body.Stopped, n.Network)
		}
	}

	for _, p := range report.Processes {
		if p.Lost {
			body.Failing = append(body.Failing, "a process")
		}
	}

	return body
}

func writeHealth(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)

	_ = json.NewEncoder(w).Encode(body) // the client is gone
}
