// Package origin reads the hosts and origins that requests name and configs allow.
// It is strict: what two readers could take for two hosts is none.
package origin

import (
	"net/netip"
	"strconv"
	"strings"
)

// Host is a host with its port as a URL has them: the name in lower case
// without a trailing dot, or the address as netip writes it.
type Host struct {
	Name string
	Port uint16 // 0: none
}

const (
	maxName = 253                 // the longest name that DNS allows
	maxHost = maxName + 1 + 1 + 5 // with a dot, a colon and a port
)

// ParseHost reads host or host:port, an IPv6 address in brackets. It is
// strict: what could be read in two ways is not read.
func ParseHost(s string) (Host, bool) {
	if len(s) > maxHost {
		return Host{}, false
	}
	var port uint64
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		number, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || number == 0 {
			return Host{}, false
		}
		s, port = s[:i], number
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		// A zone means something on the client's machine alone (RFC 6874).
		ok = closed && err == nil && addr.Is6() && addr.Zone() == ""
		return Host{addr.Unmap().String(), uint16(port)}, ok
	}
	name, ok := canonicalName(strings.TrimSuffix(s, "."))
	return Host{name, uint16(port)}, ok
}

// canonicalName returns a name in lower case. It must be ASCII already: the lower
// case of some other letters, such as the Kelvin sign, is ASCII. Its labels must not
// be empty: readers disagree on how many dots at the end of a name mean nothing.
func canonicalName(s string) (string, bool) {
	strange := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
	}
	emptyLabel := strings.Contains("."+s+".", "..")
	return strings.ToLower(s), !emptyLabel && len(s) <= maxName && !strings.ContainsFunc(s, strange)
}

// ParseWrittenHost reads a host as people write it: an IPv6 address needs no
// brackets and may have a zone.
func ParseWrittenHost(s string) (Host, bool) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return Host{Name: addr.WithZone("").Unmap().String()}, true
	}
	return ParseHost(s)
}

// IsWithin reports whether an entry of a list of allowed hosts allows this one. One
// without a port is that of http or https, whichever a proxy in front speaks.
func (h Host) IsWithin(allowed Host) bool {
	byDefault := h.Port == 0 && (allowed.Port == 80 || allowed.Port == 443)
	return h.Name == allowed.Name && (allowed.Port == 0 || allowed.Port == h.Port || byDefault)
}

// IsLoopback reports whether the host is this machine, by its name or address.
func (h Host) IsLoopback() bool {
	addr, err := netip.ParseAddr(h.Name)
	return h.Name == "localhost" || err == nil && addr.IsLoopback()
}

// Origin is where a page comes from. Its port is always there, if its scheme has
// one by default.
type Origin struct {
	Scheme string
	Host
}

var defaultPorts = map[string]uint16{"http": 80, "https": 443}

// Parse reads an origin as a browser sends it: a scheme and a host, without a path.
func Parse(s string) (Origin, bool) {
	scheme, rest, _ := strings.Cut(s, "://")
	scheme, named := canonicalName(scheme)
	h, ok := ParseHost(rest)
	if h.Port == 0 {
		h.Port = defaultPorts[scheme]
	}
	return Origin{scheme, h}, named && ok
}

// ParseWritten reads an origin as people write it: with a slash at the end, perhaps.
func ParseWritten(s string) (Origin, bool) { return Parse(strings.TrimSuffix(s, "/")) }

// IsOf reports whether the page comes from the host it sends its request to: its
// own console, under a name that the guard has allowed.
func (o Origin) IsOf(host string) bool {
	h, ok := ParseHost(host)
	if h.Port == 0 { // whichever a proxy in front speaks
		h.Port = defaultPorts[o.Scheme]
	}
	return ok && h == o.Host
}
