package limit

// This file holds the time that a request's body may take.

import (
	"net/http"
	"time"
)

// SetBodyDeadline gives the rest of the request's body until timeout to arrive, whoever reads it: after a
// refusal net/http reads on to keep the connection. Reading then fails with os.ErrDeadlineExceeded. A writer
// without deadlines keeps the server's.
func SetBodyDeadline(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}

	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
}

// EndBodyDeadline ends the deadline once the body was read. net/http goes on reading to notice that the client
// is gone, and would take a deadline for that.
func EndBodyDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}
