// Package neterr says in plain words why a network request failed.
package neterr

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"time"
)

// DialTime bounds how long it takes to connect.
const DialTime = 10 * time.Second

// Reason returns why a request failed, without the method and the address where the cause
// says enough.
func Reason(err error) string {
	var (
		refused = errors.Is(err, syscall.ECONNREFUSED)
		dns     *net.DNSError
		op      *net.OpError
		sent    *url.Error
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
	)
	errors.As(err, &op)
	switch {
	case refused && op != nil && op.Addr != nil:
		return fmt.Sprintf("nothing listens on %s (connection refused)", op.Addr)
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("host %s was not found", dns.Name)
	case errors.As(err, &cert):
		return "its certificate is not trusted: " + cert.Err.Error()
	case errors.As(err, &record):
		return "it does not speak TLS, which https:// needs; check whether its url begins with http://"
	case op != nil && op.Op == "dial" && op.Timeout() && op.Addr != nil:
		return fmt.Sprintf("no connection to %s within %s", op.Addr, DialTime)
	case errors.As(err, &sent) && sent.Error() == err.Error():
		return sent.Err.Error()
	}
	return err.Error()
}
