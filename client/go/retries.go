package kueueweb

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	firstPause = 250 * time.Millisecond
	maxPause   = time.Minute
)

// repeated sends a request until it is answered, or until repeating it is pointless or could carry it out twice.
func (c *Client) repeated(
	ctx context.Context, request call, header http.Header, body []byte,
) (*http.Response, []byte, error) {
	for attempt := 0; ; attempt++ {
		answer, content, err := c.attempt(ctx, request, header, body)
		if err == nil || attempt >= c.Retries || ctx.Err() != nil || !mayRepeat(request.method, header, err) {
			return answer, content, err
		}
		if rest(ctx, pauseAfter(err, attempt)) != nil {
			return answer, content, err
		}
	}
}

// mayRepeat reports whether a failed request does no harm if it is sent again. 429 says that it was not carried out. In
// all other cases it may have been: only a read, a submission with a key, and a PUT or DELETE that is bound to no version
// come to the same.
func mayRepeat(method string, header http.Header, err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		switch refused.Status {
		case http.StatusTooManyRequests:
			return true
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		default:
			return false
		}
	}
	switch method {
	case http.MethodGet:
		return true
	case http.MethodPut, http.MethodDelete:
		return header.Get("If-Match") == ""
	default:
		return header.Get("Idempotency-Key") != ""
	}
}

// pauseAfter returns the server's own pause, or one that doubles with each attempt, with a random half.
func pauseAfter(err error, attempt int) time.Duration {
	var refused *Error
	if errors.As(err, &refused) && refused.RetryAfter > 0 {
		return min(refused.RetryAfter, maxPause)
	}
	pause := min(firstPause<<min(attempt, 10), maxPause)
	return pause/2 + rand.N(pause/2)
}

// rest waits; the error is that of a context that ends before.
func rest(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pages yields the rows of a list. An error ends it.
func pages[T any](read func(after string) ([]T, *string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for after := ""; ; {
			rows, next, err := read(after)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			after = *next
		}
	}
}
