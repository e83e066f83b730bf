package main

import (
	"fmt"
	"io"
	"net/http"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/health"
)

// writeMetrics writes Engine.Health in the text format of Prometheus
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
func writeMetrics(w http.ResponseWriter, r *http.Request, engine *payments.Engine) {
	report, err := engine.Health(r.Context())
	if err != nil {
		http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
		return
	}

	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	writeReport(w, report)
}

func writeReport(w io.Writer, report health.Report) {
	gauge(w, "payments_ok", "1 while the service works")
	fmt.Fprintf(w, "payments_ok %d\n", oneIf(report.OK()))

	gauge(w, "payments_needs_person", "1 while a wallet waits for a person")
	fmt.Fprintf(w, "payments_needs_person %d\n", oneIf(report.NeedsPerson()))

	gauge(w, "payments_network_behind_blocks", "blocks of the node that are not stored yet")

	for _, n := range report.Networks {
		fmt.Fprintf(w, "payments_network_behind_blocks{network=%q} %d\n", n.Network, n.Behind)
	}

	gauge(w, "payments_network_stopped", "1 while the network waits for Engine.Resume")

	for _, n := range report.Networks {
		fmt.Fprintf(w, "payments_network_stopped{network=%q} %d\n", n.Network, oneIf(n.Stopped != ""))
	}

	gauge(w, "payments_check_failing", "1 while this kind of work fails")

	for _, c := range report.Checks {
		fmt.Fprintf(w, "payments_check_failing{check=%q} %d\n", c.Name, oneIf(c.Error != ""))
	}

	gauge(w, "payments_check_age_seconds", "how long ago this kind of work last succeeded")

	for _, c := range report.Checks {
		if !c.DoneAt.IsZero() {
			fmt.Fprintf(w, "payments_check_age_seconds{check=%q} %d\n", c.Name, int64(c.Age.Seconds()))
		}
	}
}

func gauge(w io.Writer, name, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

func oneIf(set bool) int {
	if set {
		return 1
	}

	return 0
}
