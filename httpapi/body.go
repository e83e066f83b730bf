package httpapi

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/limits"
)

// strict rejects unknown names, and null in a map of strings. The decoder itself rejects duplicate names, names in
// another case, invalid UTF-8 and trailing data.
var strict = json.JoinOptions( // spec D1.11
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.UnmarshalFromFunc(decodeStrings)),
)

// readBody reads the body into c.raw and decodes it into c.body. Its errors are fault.Invalid with the codes
// body_too_large, body_invalid, content_type_unsupported and parameter_….
func (c *call) readBody(w http.ResponseWriter, r *http.Request, t limits.Table) error {
	c.body = c.op.body.zero()

	if err := c.readRaw(w, r, t); err != nil {
		return err
	}

	if len(c.raw) == 0 {
		if len(c.op.body.fields) == 0 || c.op.bodyOptional {
			return nil
		}

		return fault.New(fault.Invalid, "body_invalid", "the body is missing: send a JSON object")
	}

	if !isJSON(r.Header) {
		return fault.New(
			fault.Invalid, "content_type_unsupported",
			"send the body as Content-Type: application/json, in UTF-8 and without Content-Encoding",
		)
	}

	if err := json.Unmarshal(c.raw, c.body.Addr().Interface(), strict); err != nil {
		return decodeError(err)
	}

	if err := rejectNUL(c.raw); err != nil {
		return err
	}

	if err := c.rejectEmpty(); err != nil {
		return err
	}

	return c.op.body.check(c.body, "")
}

// decodeStrings decodes a map of strings. The decoder itself would accept null as the empty string.
func decodeStrings(d *jsontext.Decoder, to *map[string]string) error {
	if d.PeekKind() != '{' {
		return errors.ErrUnsupported // the decoder itself accepts or refuses it
	}

	if _, err := d.ReadToken(); err != nil {
		return err
	}

	decoded := map[string]string{}

	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}

		key := name.String()

		if d.PeekKind() == 'n' {
			return &json.SemanticError{JSONPointer: d.StackPointer(), JSONKind: 'n'}
		}

		var value string
		if err := json.UnmarshalDecode(d, &value); err != nil {
			return err
		}

		decoded[key] = value
	}

	*to = decoded
	_, err := d.ReadToken()

	return err
}

// readRaw reads at most t.Body bytes, within t.BodyTimeout, into c.raw.
func (c *call) readRaw(w http.ResponseWriter, r *http.Request, t limits.Table) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}

	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, t.Body))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return fault.New(fault.Invalid, "body_too_large", "the body is larger than %d bytes", t.Body)
	}

	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.Wrap(
			err, fault.Invalid, "body_invalid",
			"the body did not arrive within %v: send it faster",
			t.BodyTimeout,
		)
	}

	if err != nil {
		return fault.Wrap(
			err, fault.Invalid, "body_invalid",
			"the body could not be read to its end: send it again",
		)
	}

	limit.EndBodyDeadline(w)

	c.raw = raw

	return nil
}

// isJSON reports whether the headers declare unencoded JSON in UTF-8.
func isJSON(h http.Header) bool { // spec 2.1.7
	mediaType, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return false
	}

	charset := params["charset"]

	return (charset == "" || strings.EqualFold(charset, "utf-8")) && h.Get("Content-Encoding") == ""
}

// emptyName is the param in an error about a field or parameter whose name is the empty string.
const emptyName = `""`

// decodeError returns the fault.Invalid of a decoding error, with the path of the field.
func decodeError(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		f := fault.Wrap(
			err, fault.Invalid, "body_invalid",
			"the body is not valid JSON: something is wrong at byte %d",
			syntax.ByteOffset,
		)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			f.Param = cmp.Or(fieldPath(syntax.JSONPointer), emptyName)
			f.Message = "the body has " + f.Param + " twice"
		}

		return f
	}

	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return fault.Wrap(err, fault.Invalid, "body_invalid", "the body is not valid JSON")
	}

	param := fieldPath(semantic.JSONPointer)
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

// fieldPath returns a JSON pointer (RFC 6901) in the form of error params: "options[0].asset".
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

	return truncate(b.String())
}

// rejectEmpty returns fault.Invalid if the body has an empty string for a field that is not free text.
func (c *call) rejectEmpty() error {
	if !bytes.Contains(c.raw, []byte(`""`)) {
		return nil
	}

	var object map[string]any
	if err := json.Unmarshal(c.raw, &object); err != nil {
		return decodeError(err)
	}

	return c.op.body.rejectEmpty(object, "")
}

// rejectNUL returns fault.Invalid when a string holds U+0000, which PostgreSQL cannot store.
func rejectNUL(raw []byte) error {
	if !bytes.Contains(raw, []byte(`\u0000`)) {
		return nil
	}

	d := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return nil // the end of the body, which was decoded before
		}

		if token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			param := strings.ReplaceAll(fieldPath(d.StackPointer()), "\x00", "?")
			return invalid(param, "%s holds the character U+0000", param)
		}
	}
}
