package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
)

// Limits on what an endpoint sends.
const (
	maxAnswerBytes = 32 << 20
	maxDimensions  = 8192
)

// endpoint turns texts into vectors. It may be used concurrently.
type endpoint struct {
	settings Embeddings
	client   *http.Client
}

func newEndpoint(e Embeddings) endpoint {
	return endpoint{e, &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// A redirect would take the headers, which have secrets, to another place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// embed returns a vector of length 1 for each text. All have the same number of dimensions.
func (e endpoint) embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": e.settings.Model, "input": texts})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.settings.Address.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the url cannot be used") // err has the url
	}
	for _, h := range e.settings.Headers {
		request.Header.Set(h.Name, h.Value)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := e.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it responds with status %d", response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxAnswerBytes:
		return nil, errors.New("its response is too long")
	}
	return parseVectors(data, len(texts))
}

var errNoVectors = errors.New("its response does not have one vector for each text")

// parseVectors reads the response of an endpoint.
func parseVectors(data []byte, count int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float64 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || len(answer.Data) != count {
		return nil, errNoVectors
	}
	vectors := make([][]float32, count)
	for _, d := range answer.Data {
		size := len(d.Embedding)
		if d.Index < 0 || d.Index >= count || vectors[d.Index] != nil || size == 0 || size > maxDimensions || size != len(answer.Data[0].Embedding) {
			return nil, errNoVectors
		}
		if vectors[d.Index] = unit(d.Embedding); vectors[d.Index] == nil {
			return nil, errNoVectors
		}
	}
	return vectors, nil
}

// unit returns a vector with the length 1, nil if there is none.
func unit(v []float64) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return nil
	}
	scaled := make([]float32, len(v))
	for i, x := range v {
		scaled[i] = float32(x / math.Sqrt(sum))
	}
	return scaled
}
