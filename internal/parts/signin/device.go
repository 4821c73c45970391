package signin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"mcpx/internal/plain"
)

const (
	deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

	deviceTime     = 15 * time.Minute // the longest that a person may take
	deviceInterval = 5 * time.Second  // between requests, unless the server sets it
)

// ErrNoDevice is returned if an authorization server has no device flow.
var ErrNoDevice = errors.New("its authorization server has no device flow")

// Device is a sign-in on another device (RFC 8628).
type Device struct {
	Address  string // that the person opens
	UserCode string // that the person enters there
	Complete string // Address with the code in it; may be empty

	account  *Account
	creds    credentials // without tokens
	code     string
	interval time.Duration
	until    time.Time
}

// Device starts a sign-in on another device. Scopes are asked for in addition to those
// that the server names.
func (a *Account) Device(ctx context.Context, scopes []string) (*Device, error) {
	p, c, err := a.prepare(ctx, noRedirect, scopes)
	if err != nil {
		return nil, err
	}
	if p.server.DeviceEndpoint == "" {
		return nil, ErrNoDevice
	}
	got, err := a.deviceCode(ctx, c, p.server.DeviceEndpoint)
	if err != nil {
		return nil, fmt.Errorf("%s gave no device code: %w", shown(c.Issuer), err)
	}
	d := &Device{
		Address: plain.Line(got.VerificationURI), UserCode: shown(got.UserCode), Complete: plain.Line(got.VerificationURIComplete),
		account: a, creds: *c, code: got.DeviceCode,
		interval: cmp.Or(time.Duration(max(0, min(got.Interval, 600)))*time.Second, deviceInterval),
		until:    a.now().Add(deviceTime),
	}
	if !got.Expiry.IsZero() && got.Expiry.Before(d.until) {
		d.until = got.Expiry
	}
	return d, nil
}

// deviceCode requests the codes for the device and for the person.
func (a *Account) deviceCode(ctx context.Context, c *credentials, endpoint string) (*oauth2.DeviceAuthResponse, error) {
	response, err := a.post(ctx, c, endpoint, withScopes(url.Values{"resource": {c.Resource}}, c))
	if err != nil {
		return nil, failure(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, _ := io.ReadAll(response.Body) // cannot fail: guard has read it
	var reply struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	var got oauth2.DeviceAuthResponse
	switch {
	case json.Unmarshal(data, &reply) == nil && reply.Error != "":
		return nil, errors.New(describe(reply.Error, reply.Description))
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("HTTP status %s", shown(response.Status))
	case json.Unmarshal(data, &got) != nil || got.DeviceCode == "" || got.UserCode == "":
		return nil, errors.New("the reply cannot be read")
	}
	for _, address := range []string{got.VerificationURI, got.VerificationURIComplete} {
		if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" && address != "" {
			return nil, errors.New("the reply names an address that is not one of the web")
		}
	}
	return &got, nil
}

// Wait returns when the person has signed in.
func (d *Device) Wait(ctx context.Context) error {
	ctx, cancel := context.WithDeadlineCause(ctx, d.until, errors.New("the code has expired; start again"))
	defer cancel()
	for {
		wait := time.NewTimer(d.interval)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return context.Cause(ctx)
		}
		c := d.creds
		err := d.account.request(ctx, &c, url.Values{"grant_type": {deviceGrant}, "device_code": {d.code}})
		refused, ok := errors.AsType[*tokenError](err)
		switch {
		case err == nil:
			return d.account.keep(ctx, &c)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !ok: // network trouble
			continue
		case refused.code == "slow_down":
			d.interval += deviceInterval
		case refused.code != "authorization_pending":
			return fmt.Errorf("%s refused: %w", shown(c.Issuer), err)
		}
	}
}
