package neterr

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
)

func TestReason(t *testing.T) {
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}
	dial := func(err error) error {
		return &url.Error{Op: "Post", URL: "http://secret.example/", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: address, Err: err}}
	}
	for _, row := range []struct {
		err  error
		want string
	}{
		{dial(syscall.ECONNREFUSED), "nothing listens on 127.0.0.1:9 (connection refused)"},
		{dial(&net.DNSError{Name: "nowhere.invalid", IsNotFound: true}), "host nowhere.invalid was not found"},
		{dial(os.ErrDeadlineExceeded), "no connection to 127.0.0.1:9 within 10s"},
		{&url.Error{Op: "Get", URL: "https://a/", Err: &tls.CertificateVerificationError{Err: errors.New("unknown authority")}}, "its certificate is not trusted: unknown authority"},
		{&url.Error{Op: "Get", URL: "https://a/", Err: tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}}, "it does not speak TLS, which https:// needs; check whether its url begins with http://"},
		{&url.Error{Op: "Get", URL: "https://a/", Err: errors.New("too many redirects")}, "too many redirects"},
		{fmt.Errorf("reading: %w", errors.New("broken")), "reading: broken"},
	} {
		if got := Reason(row.err); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
