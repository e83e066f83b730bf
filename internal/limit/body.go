package limit

// This file holds the time limit of a request's body.

import (
	"net/http"
	"time"
)

// SetBodyDeadline gives the rest of the request's body until timeout to arrive, for any reader: after a
// refusal net/http reads on to keep the connection. Reading then fails with os.ErrDeadlineExceeded. A writer
// without deadlines keeps the server's.
func SetBodyDeadline(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}

	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
}

// EndBodyDeadline removes the deadline after the body was read. net/http goes on reading to notice when the
// client disconnects, and would take the deadline for that.
func EndBodyDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}
