// Package kueueweb is a client of kueueweb's REST API. Its types and the methods of Client for each operation are made
// from the OpenAPI document; requests are repeated where that does no harm, and watches continue after a cut.
package kueueweb

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Client sends requests to one server with the rights of one token. Its fields are set before the first request; then
// it may be used by several goroutines.
type Client struct {
	// URL is the server's address, with its base path if it has one.
	URL string
	// Token is one of the user's API tokens; empty for the operations that need none.
	Token string
	// Cluster is the cluster of all requests whose parameters name no other; empty: the server's default.
	Cluster string
	// HTTP sends the requests. Its Timeout must be zero for watches; Timeout below bounds all other requests.
	HTTP *http.Client
	// Timeout bounds each attempt, but for watches.
	Timeout time.Duration
	// Retries is the maximum number of attempts after the first.
	Retries int
}

// New returns a client with 60 seconds for each of at most five attempts.
func New(address, token string) *Client {
	return &Client{URL: address, Token: token, HTTP: &http.Client{}, Timeout: time.Minute, Retries: 4}
}

// YAML is a body in YAML, for the operations that accept manifests.
type YAML string

// Error is the server's refusal of a request. Reason is stable; Message is for people.
type Error struct {
	Status  int            `json:"-"`
	Reason  string         `json:"reason"`
	Message string         `json:"message"`
	Errors  []LocatedError `json:"errors"`
	// Current is the present object, if the request named an outdated one.
	Current json.RawMessage `json:"current"`
	// RequestID is the id under which the audit has the request.
	RequestID  string        `json:"-"`
	RetryAfter time.Duration `json:"-"`
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (%d): %s", e.Reason, e.Status, e.Message)
}

// IsStatus reports whether an error is a refusal with this HTTP status.
func IsStatus(err error, status int) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Status == status
}

// Number is a number that may be infinite, which JSON cannot say.
type Number float64

// UnmarshalJSON reads a number or "Infinity".
func (n *Number) UnmarshalJSON(text []byte) error {
	found, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	*n = Number(found)
	return err
}

// MarshalJSON writes a number or "Infinity".
func (n Number) MarshalJSON() ([]byte, error) {
	if float64(n) > maxFloat {
		return []byte(`"Infinity"`), nil
	}
	return json.Marshal(float64(n))
}

const maxFloat = 0x1p1023 * (1 + (1 - 0x1p-52))

// Ptr returns a pointer to a value, for fields and parameters that may be left out.
func Ptr[T any](value T) *T { return &value }

// Option changes a request, or reads the headers of its answer.
type Option func(*exchange)

type exchange struct {
	header  http.Header
	answers []*http.Header
}

// IfMatch makes a write fail with status 412 if the object has no longer this ETag.
func IfMatch(tag string) Option { return WithHeader("If-Match", tag) }

// IdempotencyKey names a submission: the same key with the same body gets the first answer again. Without this option,
// each call of an operation that accepts a key has one of its own, so that it can be repeated.
func IdempotencyKey(key string) Option { return WithHeader("Idempotency-Key", key) }

// WithHeader sets a header of the request, such as X-Audit-Reason.
func WithHeader(name, value string) Option {
	return func(e *exchange) { e.header.Set(name, value) }
}

// AnswerHeader stores the headers of the answer, such as ETag, Warning and X-Request-ID.
func AnswerHeader(into *http.Header) Option {
	return func(e *exchange) { e.answers = append(e.answers, into) }
}

// call is a request of an operation.
type call struct {
	method string
	path   string
	params url.Values
	body   any
	accept string
	keyed  bool
}

// place writes the names into a path; empty for names that would lead to another address.
func place(form string, names ...string) string {
	escaped := make([]any, len(names))
	for index, name := range names {
		if name == "" || name == "." || name == ".." {
			return ""
		}
		escaped[index] = url.PathEscape(name)
	}
	return fmt.Sprintf(form, escaped...)
}

// query returns the fields that are set as query parameters.
func query(params any) url.Values {
	found := url.Values{}
	given := reflect.ValueOf(params)
	if given.IsNil() {
		return found
	}
	given = given.Elem()
	for index := range given.NumField() {
		field := given.Field(index)
		name, comma := strings.CutSuffix(given.Type().Field(index).Tag.Get("query"), ",comma")
		if field.IsZero() {
			continue
		}
		if field.Kind() != reflect.Slice {
			found.Set(name, text(field))
			continue
		}
		for each := range field.Len() {
			found.Add(name, text(field.Index(each)))
		}
		if comma {
			found.Set(name, strings.Join(found[name], ","))
		}
	}
	return found
}

func text(value reflect.Value) string {
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if moment, is := value.Interface().(time.Time); is {
		return moment.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value.Interface())
}

// send carries out a request, repeated where that does no harm, and reads the answer into a value.
func (c *Client) send(ctx context.Context, request call, into any, options []Option) error {
	made := exchange{header: http.Header{}}
	for _, option := range options {
		option(&made)
	}
	if request.keyed && made.header.Get("Idempotency-Key") == "" {
		made.header.Set("Idempotency-Key", newKey())
	}
	body, err := encoded(request.body, made.header)
	if err != nil {
		return err
	}
	answer, content, err := c.repeated(ctx, request, made.header, body)
	if err != nil {
		return err
	}
	for _, header := range made.answers {
		*header = answer.Header
	}
	if raw, is := into.(*[]byte); is {
		*raw = content
		return nil
	}
	if into == nil || len(content) == 0 {
		return nil
	}
	return json.Unmarshal(content, into)
}

func newKey() string {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails, as its documentation says
	return hex.EncodeToString(key)
}

func encoded(body any, header http.Header) ([]byte, error) {
	switch given := body.(type) {
	case nil:
		return nil, nil
	case YAML:
		header.Set("Content-Type", "application/yaml")
		return []byte(given), nil
	default:
		header.Set("Content-Type", "application/json")
		return json.Marshal(body)
	}
}

// open sends one request and returns the answer, whose body the caller reads and closes.
func (c *Client) open(ctx context.Context, request call, header http.Header, body []byte) (*http.Response, error) {
	if request.path == "" {
		return nil, errors.New("invalid value: a name is not empty, . or ..")
	}
	params := url.Values{}
	if c.Cluster != "" {
		params.Set("cluster", c.Cluster)
	}
	for name, values := range request.params {
		params[name] = values
	}
	address := strings.TrimRight(c.URL, "/") + request.path
	if len(params) > 0 {
		address += "?" + params.Encode()
	}
	sent, err := http.NewRequestWithContext(ctx, request.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	sent.Header = header.Clone()
	sent.Header.Set("Accept", "application/json")
	if request.accept != "" {
		sent.Header.Set("Accept", request.accept)
	}
	sent.Header.Set("User-Agent", "kueueweb-go")
	if c.Token != "" {
		sent.Header.Set("Authorization", "Bearer "+c.Token)
	}
	return c.HTTP.Do(sent)
}

// refusal returns the error of an answer of status 400 or above.
func refusal(answer *http.Response, content []byte) *Error {
	found := &Error{}
	if json.Unmarshal(content, found) != nil || found.Reason == "" {
		found = &Error{Reason: http.StatusText(answer.StatusCode), Message: "the server answered " + answer.Status}
	}
	found.Status = answer.StatusCode
	found.RequestID = answer.Header.Get("X-Request-ID")
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		found.RetryAfter = time.Duration(seconds) * time.Second
	}
	return found
}

// attempt sends one request and reads its whole answer. A status of 400 or above is an Error.
func (c *Client) attempt(
	ctx context.Context, request call, header http.Header, body []byte,
) (*http.Response, []byte, error) {
	if c.Timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, c.Timeout)
		defer cancel()
		ctx = bounded
	}
	answer, err := c.open(ctx, request, header, body)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, nil, err
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return answer, nil, refusal(answer, content)
	}
	return answer, content, nil
}
