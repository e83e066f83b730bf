package failover

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"time"
)

// AcceptRefusal gives a response status 200 where its body, of at most limit bytes, holds the node's refusal: a
// JSON-RPC error object, alone or among the answers to a batch. Nodes and providers send those with the statuses 400,
// 403, 404, 405, 500 and 501. The body can be read all the same.
//
// Other statuses say nothing of a call: 401 and 402 are of the key or the plan, 429 is a throttle, 502 to 504 are a
// gateway without a node. Neither does a refusal that names when the call may be repeated.
func AcceptRefusal(answer *http.Response, limit int64) {
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusInternalServerError, http.StatusNotImplemented:
	default:
		return
	}

	if _, later := laterOf(answer, time.Now(), nil); later {
		return
	}

	body, err := io.ReadAll(io.LimitReader(answer.Body, limit))
	answer.Body = readCloser{io.MultiReader(bytes.NewReader(body), answer.Body), answer.Body}

	if err == nil && holdsRefusal(body) {
		answer.StatusCode, answer.Status = http.StatusOK, http.StatusText(http.StatusOK)
	}
}

// holdsRefusal reports whether a body is a JSON-RPC error, or a list with one. An error of JSON-RPC has a code other
// than 0 (JSON-RPC 2.0, section 5.1).
func holdsRefusal(body []byte) bool {
	type response struct {
		Error *struct {
			Code int `json:"code"`
		} `json:"error"`
	}

	responses := make([]response, 1)
	if json.Unmarshal(body, &responses[0]) != nil && json.Unmarshal(body, &responses) != nil {
		return false
	}

	for _, r := range responses {
		if r.Error != nil && r.Error.Code != 0 {
			return true
		}
	}

	return false
}

// nullError is a member of a response that says nothing. Within a text its quotes would be escaped.
var nullError = regexp.MustCompile(`,\s*"error"\s*:\s*null\b|"error"\s*:\s*null\s*,`)

// DropNullErrors takes null errors out of the body of a response. JSON-RPC 1.0 has them beside each result; JSON-RPC
// 2.0 does not, and RPC clients take them for refusals. A body that cannot be read is closed.
func DropNullErrors(answer *http.Response) error {
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		_ = answer.Body.Close()
		return err
	}

	body = nullError.ReplaceAll(body, nil)
	answer.Body = readCloser{bytes.NewReader(body), answer.Body}
	answer.ContentLength = int64(len(body))

	return nil
}
