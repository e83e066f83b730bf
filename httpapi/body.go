package httpapi

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-8ee7f392/payments/fault"
)

// strict reads JSON as it was meant: names in their own case, none twice, none unknown, valid
// UTF-8, nothing after the end.
var strict = json.RejectUnknownMembers(true)

// readBody reads and decodes the body into c.body and keeps its bytes for the request's fingerprint.
func (c *call) readBody(w http.ResponseWriter, r *http.Request, limit int64) error {
	c.body = c.op.body.zero()

	if r.Body != nil && r.Body != http.NoBody {
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return fault.New(fault.Invalid, "body_too_large", "the body is larger than %d bytes", limit)
		}

		if err != nil {
			return fault.Wrap(
				err, fault.Invalid, "body_invalid",
				"the body could not be read to its end: send it again",
			)
		}

		c.raw = raw
	}

	if len(c.raw) == 0 {
		if len(c.op.body.fields) == 0 || c.op.bodyOptional {
			return nil
		}

		return fault.New(fault.Invalid, "body_invalid", "the body is missing: send a JSON object")
	}

	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || kind != "application/json" ||
		charset != "" && !strings.EqualFold(charset, "utf-8") ||
		r.Header.Get("Content-Encoding") != "" {
		return fault.New(
			fault.Invalid, "content_type_unsupported",
			"send the body as Content-Type: application/json, in UTF-8 and without Content-Encoding",
		)
	}

	if err := json.Unmarshal(c.raw, c.body.Addr().Interface(), strict); err != nil {
		return bodyFault(err)
	}

	if err := refuseNUL(c.raw); err != nil {
		return err
	}

	return c.op.body.check(c.body, "")
}

// emptyName stands for the name of a field or parameter that is the empty string.
const emptyName = `""`

// bodyFault says what is wrong with a body, and where.
func bodyFault(err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		f := fault.Wrap(
			err, fault.Invalid, "body_invalid",
			"the body is not valid JSON: something is wrong at byte %d",
			e.ByteOffset,
		)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			f.Param = cmp.Or(fieldPath(e.JSONPointer), emptyName)
			f.Message = "the body has " + f.Param + " twice"
		}

		return f
	}

	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return fault.Wrap(err, fault.Invalid, "body_invalid", "the body is not valid JSON")
	}

	param := fieldPath(e.JSONPointer)
	if errors.Is(err, json.ErrUnknownName) {
		param = cmp.Or(param, emptyName)
		return fault.Param(param, "parameter_unknown", "there is no field %s here", param)
	}

	if param == "" {
		return fault.New(fault.Invalid, "body_invalid", "the body must be a JSON object")
	}

	f := fault.Param(param, "parameter_invalid", "%s has the wrong type: see the API's document", param)
	f.Cause = err

	return f
}

// fieldPath writes a JSON pointer as errors name fields: "options[0].asset".
func fieldPath(p jsontext.Pointer) string {
	var b strings.Builder

	for token := range p.Tokens() {
		switch {
		case strings.Trim(token, "0123456789") == "" && token != "":
			b.WriteString("[" + token + "]")
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}

	return clip(b.String())
}

// refuseNUL refuses text that holds the character U+0000, which not every database can store.
func refuseNUL(raw []byte) error {
	if !bytes.Contains(raw, []byte(`\u0000`)) {
		return nil
	}

	d := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return nil // the end: the bytes were decoded before
		}

		if token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			param := strings.ReplaceAll(fieldPath(d.StackPointer()), "\x00", "?")
			return invalid(param, "%s holds the character U+0000", param)
		}
	}
}
