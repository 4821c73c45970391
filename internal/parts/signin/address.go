package signin

import (
	"net/netip"
	"slices"
)

// addressKind says who can reach an address.
type addressKind string

const (
	public    addressKind = "public"
	loopback  addressKind = "loopback"
	private   addressKind = "private"
	linkLocal addressKind = "link-local"
	metadata  addressKind = "cloud metadata"
	reserved  addressKind = "reserved"
)

// ranges are the ranges that netip does not know. The first that contains an address counts.
var ranges = []struct {
	prefix netip.Prefix
	kind   addressKind
}{
	{netip.MustParsePrefix("fd00:ec2::/32"), metadata},      // AWS
	{netip.MustParsePrefix("fd20:ce::254/128"), metadata},   // Google Cloud
	{netip.MustParsePrefix("100.100.100.200/32"), metadata}, // Alibaba Cloud
	{netip.MustParsePrefix("168.63.129.16/32"), metadata},   // Azure
	{netip.MustParsePrefix("192.0.0.0/24"), reserved},       // Oracle Cloud has its metadata there
	{netip.MustParsePrefix("100.64.0.0/10"), private},       // between a provider's customers (RFC 6598)
	{netip.MustParsePrefix("fec0::/10"), private},           // site-local (RFC 3879)
	{netip.MustParsePrefix("0.0.0.0/32"), loopback},         // dialing it reaches this machine
	{netip.MustParsePrefix("::/128"), loopback},
	{netip.MustParsePrefix("0.0.0.0/8"), reserved},
	{netip.MustParsePrefix("240.0.0.0/4"), reserved},
}

// kindOf returns the kind of an address. An IPv4 address inside it does not count: see embedded.
func kindOf(ip netip.Addr) addressKind {
	for _, r := range ranges {
		if r.prefix.Contains(ip) {
			return r.kind
		}
	}
	switch {
	case ip.IsLoopback():
		return loopback
	case ip.IsPrivate():
		return private
	case ip.IsLinkLocalUnicast():
		return linkLocal
	case !ip.IsGlobalUnicast():
		return reserved
	}
	return public
}

// embeddings are the ranges of IPv6 addresses that contain an IPv4 address, and its place there.
var embeddings = []struct {
	prefix netip.Prefix
	places [][4]int // indexes of its bytes; if there are several places, the least public address counts
}{
	{netip.MustParsePrefix("64:ff9b::/96"), [][4]int{{12, 13, 14, 15}}},                                                   // NAT64 (RFC 6052)
	{netip.MustParsePrefix("64:ff9b:1::/48"), [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}}}, // local NAT64 (RFC 8215)
	{netip.MustParsePrefix("::ffff:0:0:0/96"), [][4]int{{12, 13, 14, 15}}},                                                // translated (RFC 2765)
	{netip.MustParsePrefix("::/96"), [][4]int{{12, 13, 14, 15}}},                                                          // IPv4-compatible (RFC 4291)
	{netip.MustParsePrefix("2002::/16"), [][4]int{{2, 3, 4, 5}}},                                                          // 6to4 (RFC 3056)
}

// embedded returns the IPv4 address in an IPv6 address, or the address itself, without its zone.
func embedded(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if ip.Is4() || ip.IsLoopback() || ip.IsUnspecified() {
		return ip
	}
	for _, e := range embeddings {
		if e.prefix.Contains(ip) {
			return leastPublic(ip.As16(), e.places)
		}
	}
	return ip
}

// leastPublic returns the first address that is not public, else the first one. Places
// whose bytes are not the address of a host do not count.
func leastPublic(bytes [16]byte, places [][4]int) netip.Addr {
	var found []netip.Addr
	for _, p := range places {
		ip := netip.AddrFrom4([4]byte{bytes[p[0]], bytes[p[1]], bytes[p[2]], bytes[p[3]]})
		if len(places) == 1 || kindOf(ip) != reserved && !ip.IsUnspecified() {
			found = append(found, ip)
		}
	}
	if i := slices.IndexFunc(found, func(ip netip.Addr) bool { return kindOf(ip) != public }); i >= 0 {
		return found[i]
	}
	if len(found) == 0 {
		return netip.IPv4Unspecified()
	}
	return found[0]
}
