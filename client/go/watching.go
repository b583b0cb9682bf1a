package kueueweb

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"
)

const (
	// A stream that has been silent for this long is dead: the server sends a line at least every 15 seconds.
	maxSilence = 45 * time.Second
	// For this long after the last answer a watch tries to continue.
	patience = time.Minute
	maxLine  = 64 << 20
)

// ErrEnded is the error of a wait whose workload has ended otherwise, or was deleted.
var ErrEnded = errors.New("the workload has ended")

// WatchWorkload yields the workload now and after each change, until it is finished or deleted. A lost connection is
// opened again, and continues where it was lost. An error ends it.
func (c *Client) WatchWorkload(ctx context.Context, namespace, name string) iter.Seq2[*WorkloadDetail, error] {
	return func(yield func(*WorkloadDetail, error) bool) {
		w := watch{client: c, path: place("/api/v1/workloads/%s/%s/", namespace, name)}
		for attempt := 0; ; attempt++ {
			before := w.answered
			more, err := w.read(ctx, yield)
			if !more {
				return
			}
			if w.answered != before {
				attempt = 0
			}
			if err == nil && w.answered != before {
				continue // the server ends a watch after ten minutes
			}
			if IsStatus(err, http.StatusNotFound) && w.version != "" {
				return // deleted while there was no connection
			}
			if !w.mayContinue(ctx, err) || rest(ctx, pauseAfter(err, attempt)) != nil {
				yield(nil, cmp.Or(err, io.ErrUnexpectedEOF))
				return
			}
		}
	}
}

// WaitForWorkload waits until a workload is admitted (or finished, if until is "Finished") and returns it. ErrEnded: it
// failed or was deleted.
func (c *Client) WaitForWorkload(
	ctx context.Context, namespace, name string, until WorkloadStatusEnum,
) (*WorkloadDetail, error) {
	var last *WorkloadDetail
	for found, err := range c.WatchWorkload(ctx, namespace, name) {
		if err != nil {
			return last, err
		}
		last = found
		if found.Status == WorkloadStatusEnumFinished && found.Reason != "Succeeded" {
			return last, fmt.Errorf("%s/%s: %w: %s: %s", namespace, name, ErrEnded, found.Reason, found.Message)
		}
		if found.Status == until || found.Status == WorkloadStatusEnumFinished {
			return last, nil
		}
	}
	return last, fmt.Errorf("%s/%s: %w: it was deleted", namespace, name, ErrEnded)
}

// FollowLog returns the log of a pod as it is written, until the pod ends or the context is done. The caller closes it.
func (c *Client) FollowLog(ctx context.Context, namespace, name, pod string) (io.ReadCloser, error) {
	path := place("/api/v1/workloads/%s/%s/pods/%s/log/", namespace, name, pod)
	request := call{method: http.MethodGet, path: path, params: url.Values{"follow": {"true"}}, accept: "*/*"}
	answer, err := c.open(ctx, request, http.Header{}, nil)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusBadRequest {
		defer answer.Body.Close()
		content, _ := io.ReadAll(answer.Body)
		return nil, refusal(answer, content)
	}
	return answer.Body, nil
}

// watch is a watch over as many connections as it takes.
type watch struct {
	client   *Client
	path     string
	version  string
	answered time.Time
}

// read yields the states of one connection. It returns whether the watch goes on, and the error that ended the
// connection.
func (w *watch) read(ctx context.Context, yield func(*WorkloadDetail, error) bool) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(maxSilence, cancel)
	defer silence.Stop()
	params := url.Values{"watch": {"true"}}
	if w.version != "" {
		params.Set("resource_version", w.version)
	}
	answer, err := w.client.open(ctx, call{method: http.MethodGet, path: w.path, params: params}, http.Header{}, nil)
	if err != nil {
		return true, err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		content, _ := io.ReadAll(answer.Body)
		return true, refusal(answer, content)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		silence.Reset(maxSilence)
		if more, err := w.take(lines.Bytes(), yield); !more || err != nil {
			return more, err
		}
	}
	return true, lines.Err()
}

// take yields the state in a line, if it is new.
func (w *watch) take(line []byte, yield func(*WorkloadDetail, error) bool) (bool, error) {
	var event struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return true, err
	}
	w.answered = time.Now()
	switch event.Type {
	case "ERROR":
		found := &struct {
			Error
			Code int `json:"status"`
		}{}
		if err := json.Unmarshal(event.Object, found); err != nil {
			return true, err
		}
		found.Error.Status = found.Code
		return true, &found.Error
	case "DELETED":
		return false, nil
	}
	found := &WorkloadDetail{}
	if err := json.Unmarshal(event.Object, found); err != nil {
		return true, err
	}
	w.version = found.ResourceVersion
	if event.Type == "BOOKMARK" {
		return true, nil
	}
	return yield(found, nil) && found.Status != WorkloadStatusEnumFinished, nil
}

// mayContinue reports whether another connection may succeed: there was an answer before, and not too long ago.
func (w *watch) mayContinue(ctx context.Context, err error) bool {
	if ctx.Err() != nil || w.answered.IsZero() || time.Since(w.answered) > patience {
		return false
	}
	var refused *Error
	if !errors.As(err, &refused) {
		return true
	}
	switch refused.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}
