package kueueweb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// served is a server that gives these answers, one after the other, and keeps what was asked.
type served struct {
	answers []http.HandlerFunc
	asked   []*http.Request
	bodies  []string
}

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.asked, s.bodies = append(s.asked, r), append(s.bodies, string(body))
	s.answers[min(len(s.asked), len(s.answers))-1](w, r)
}

func serve(t *testing.T, answers ...http.HandlerFunc) (*Client, *served) {
	t.Helper()
	found := &served{answers: answers}
	server := httptest.NewServer(found)
	t.Cleanup(server.Close)
	return New(server.URL+"/", "secret"), found
}

func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for index := 0; index < len(headers); index += 2 {
			w.Header().Set(headers[index], headers[index+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func cut(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, body)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

const refused = `{"reason": "Unavailable", "message": "later", "errors": []}`

func TestReadsAreRepeated(t *testing.T) {
	later := answer(503, refused)
	client, server := serve(t, later, cut(""), answer(200, `{"results": [], "next": null}`, "ETag", `"7"`))
	var header http.Header
	params := WorkloadsListParams{Namespace: "a,b", Active: Ptr(false), Status: []string{"Pending", "Admitted"}}
	page, err := client.WorkloadsList(context.Background(), &params, AnswerHeader(&header))
	if err != nil || page.Next != nil || header.Get("ETag") != `"7"` || len(server.asked) != 3 {
		t.Fatal(page, err, header, len(server.asked))
	}
	if query := server.asked[2].URL.RawQuery; query != "active=false&namespace=a%2Cb&status=Pending%2CAdmitted" {
		t.Error(query)
	}
	if given := server.asked[0].Header.Get("Authorization"); given != "Bearer secret" {
		t.Error(given)
	}
}

func TestSubmissionsAreRepeatedUnderOneKey(t *testing.T) {
	client, server := serve(t, answer(503, refused), answer(201, `{"workloads": []}`))
	if _, err := client.WorkloadsCreate(context.Background(), []WorkloadInputRequest{}, nil); err != nil {
		t.Fatal(err)
	}
	first, second := server.asked[0].Header.Get("Idempotency-Key"), server.asked[1].Header.Get("Idempotency-Key")
	if first == "" || first != second || server.bodies[1] != "[]" {
		t.Error(first, second, server.bodies)
	}
}

func TestWritesThatMayHaveBeenCarriedOutAreNotRepeated(t *testing.T) {
	client, server := serve(t, answer(503, refused))
	_, err := client.WorkloadsHold(context.Background(), "team", "one", nil)
	if !IsStatus(err, 503) || len(server.asked) != 1 {
		t.Error(err, len(server.asked))
	}
	_, err = client.ClusterQueuesDestroy(context.Background(), "main", nil, IfMatch(`"7"`))
	if !IsStatus(err, 503) || len(server.asked) != 2 {
		t.Error(err, len(server.asked))
	}
}

func TestARefusalSaysWhen(t *testing.T) {
	busy := answer(429, `{"reason": "Throttled", "message": "busy", "errors": []}`, "Retry-After", "0")
	client, server := serve(t, busy, answer(200, `{}`))
	if _, err := client.WorkloadsHold(context.Background(), "team", "one", nil); err != nil || len(server.asked) != 2 {
		t.Error(err, len(server.asked))
	}
	stale := `{"reason": "PreconditionFailed", "message": "old", "errors": [], "current": {"generation": 8}}`
	client, _ = serve(t, answer(412, stale, "X-Request-ID", "r1"))
	_, err := client.ClusterQueuesPartialUpdate(context.Background(), "main", map[string]any{"fair_weight": nil}, nil)
	var found *Error
	if !errors.As(err, &found) || found.Reason != "PreconditionFailed" || found.RequestID != "r1" {
		t.Fatal(err)
	}
	if string(found.Current) != `{"generation": 8}` {
		t.Error(string(found.Current))
	}
	client, _ = serve(t, answer(502, "<html>"))
	client.Retries = 0
	if _, err = client.WorkloadsList(context.Background(), nil); err.Error() != "Bad Gateway (502): the server answered 502 Bad Gateway" {
		t.Error(err)
	}
}

func TestPages(t *testing.T) {
	client, server := serve(t,
		answer(200, `{"results": [{"name": "a"}, {"name": "b"}], "next": "2"}`),
		answer(200, `{"results": [{"name": "c"}], "next": null}`))
	var names []string
	for row, err := range client.WorkloadsAll(context.Background(), WorkloadsListParams{Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, row.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) || server.asked[1].URL.RawQuery != "after=2&limit=2" {
		t.Error(names, server.asked[1].URL)
	}
}

func state(kind, version, status string) string {
	return fmt.Sprintf(`{"type": %q, "object": {"resource_version": %q, "status": %q, "reason": "Succeeded"}}`+"\n",
		kind, version, status)
}

func TestAWatchContinuesAfterACut(t *testing.T) {
	client, server := serve(t,
		cut(state("ADDED", "1", "Pending")+`{"type": "BOOKMARK", "object": {"resource_version": "2"}}`+"\n"),
		answer(429, `{"reason": "LimitReached", "message": "", "errors": []}`, "Retry-After", "0"),
		answer(200, state("MODIFIED", "3", "Admitted")+state("MODIFIED", "4", "Finished")))
	found, err := client.WaitForWorkload(context.Background(), "team", "one", WorkloadStatusEnumFinished)
	if err != nil || found.ResourceVersion != "4" || len(server.asked) != 3 {
		t.Fatal(found, err, len(server.asked))
	}
	if query := server.asked[2].URL.Query(); query.Get("resource_version") != "2" {
		t.Error(query)
	}
}

func TestAWatchEndsWithItsPermission(t *testing.T) {
	said := `{"type": "ERROR", "object": {"status": 403, "reason": "NotPermitted", "message": "no"}}` + "\n"
	client, server := serve(t, answer(200, state("ADDED", "1", "Pending")+said))
	_, err := client.WaitForWorkload(context.Background(), "team", "one", WorkloadStatusEnumAdmitted)
	if !IsStatus(err, 403) || len(server.asked) != 1 {
		t.Error(err, len(server.asked))
	}
	client, _ = serve(t, answer(200, state("ADDED", "1", "Pending")+`{"type": "DELETED", "object": {}}`+"\n"))
	if _, err = client.WaitForWorkload(context.Background(), "team", "one", WorkloadStatusEnumAdmitted); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
}

func TestNamesStayInTheirPlace(t *testing.T) {
	client, server := serve(t, answer(200, `{}`))
	if _, err := client.WorkloadsRetrieve(context.Background(), "..", "users", nil); err == nil || len(server.asked) != 0 {
		t.Error(err)
	}
	if _, err := client.WorkloadsRetrieve(context.Background(), "a/b", "c?d", nil); err != nil {
		t.Fatal(err)
	}
	if path := server.asked[0].URL.EscapedPath(); path != "/api/v1/workloads/"+url.PathEscape("a/b")+"/c%3Fd/" {
		t.Error(path)
	}
}

func TestNumbersMayBeInfinite(t *testing.T) {
	var found []Number
	if err := json.Unmarshal([]byte(`[0.5, "Infinity"]`), &found); err != nil {
		t.Fatal(err)
	}
	if found[0] != 0.5 || !math.IsInf(float64(found[1]), 1) {
		t.Error(found)
	}
	if text, _ := json.Marshal(found); string(text) != `[0.5,"Infinity"]` {
		t.Error(string(text))
	}
}

func TestYAMLIsSentAsItIs(t *testing.T) {
	client, server := serve(t, answer(200, `{}`))
	if _, err := client.ManifestsCreate(context.Background(), YAML("kind: X"), nil); err != nil {
		t.Fatal(err)
	}
	if kind := server.asked[0].Header.Get("Content-Type"); kind != "application/yaml" || !strings.HasPrefix(server.bodies[0], "kind") {
		t.Error(kind, server.bodies)
	}
}
