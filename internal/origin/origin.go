// Package origin parses hosts and origins of requests and configs. It is strict: it
// rejects everything that two parsers could read as two different hosts.
package origin

import (
	"net/netip"
	"strconv"
	"strings"
)

// Host is a host and port of a URL. The name is in lower case without a trailing dot, or
// an address as netip formats it.
type Host struct {
	Name string
	Port uint16 // 0: none
}

const (
	maxName = 253                 // the longest name that DNS allows
	maxHost = maxName + 1 + 1 + 5 // with a dot, a colon and a port
)

// ParseHost parses host or host:port. An IPv6 address must have brackets.
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
		// A zone is only valid on the client's machine (RFC 6874).
		ok = closed && err == nil && addr.Is6() && addr.Zone() == ""
		return Host{addr.Unmap().String(), uint16(port)}, ok
	}
	name, ok := canonicalName(strings.TrimSuffix(s, "."))
	return Host{name, uint16(port)}, ok
}

// canonicalName returns a name in lower case. The name must be ASCII, because the lower
// case of some other letters, such as the Kelvin sign, is ASCII. Labels must not be
// empty, because parsers disagree about several dots at the end.
func canonicalName(s string) (string, bool) {
	strange := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
	}
	emptyLabel := strings.Contains("."+s+".", "..")
	return strings.ToLower(s), !emptyLabel && len(s) <= maxName && !strings.ContainsFunc(s, strange)
}

// ParseWrittenHost parses a host as people write it: an IPv6 address needs no brackets
// and may have a zone.
func ParseWrittenHost(s string) (Host, bool) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return Host{Name: addr.WithZone("").Unmap().String()}, true
	}
	return ParseHost(s)
}

// IsWithin reports whether an entry of a list of allowed hosts allows this host. A host
// without a port matches ports 80 and 443, because a proxy in front may use either.
func (h Host) IsWithin(allowed Host) bool {
	byDefault := h.Port == 0 && (allowed.Port == 80 || allowed.Port == 443)
	return h.Name == allowed.Name && (allowed.Port == 0 || allowed.Port == h.Port || byDefault)
}

// IsLoopback reports whether the host is localhost or a loopback address.
func (h Host) IsLoopback() bool {
	addr, err := netip.ParseAddr(h.Name)
	return h.Name == "localhost" || err == nil && addr.IsLoopback()
}

// Origin is the origin of a web page. Its port is always set if the scheme has a default.
type Origin struct {
	Scheme string
	Host
}

var defaultPorts = map[string]uint16{"http": 80, "https": 443}

// Parse parses an origin as browsers send it: a scheme and a host, without a path.
func Parse(s string) (Origin, bool) {
	scheme, rest, _ := strings.Cut(s, "://")
	scheme, named := canonicalName(scheme)
	h, ok := ParseHost(rest)
	if h.Port == 0 {
		h.Port = defaultPorts[scheme]
	}
	return Origin{scheme, h}, named && ok
}

// ParseWritten parses an origin as people write it. It may end with a slash.
func ParseWritten(s string) (Origin, bool) { return Parse(strings.TrimSuffix(s, "/")) }

// IsOf reports whether the page comes from the host that it sends its request to, as
// mcpx's own console does.
func (o Origin) IsOf(host string) bool {
	h, ok := ParseHost(host)
	if h.Port == 0 { // a proxy in front may use either
		h.Port = defaultPorts[o.Scheme]
	}
	return ok && h == o.Host
}
