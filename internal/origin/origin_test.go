package origin

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

func TestParseHost(t *testing.T) {
	long := strings.Repeat("a", 253)
	for _, row := range []struct {
		text string
		want Host // zero: refused
	}{
		{"example.com", Host{Name: "example.com"}},
		{"Example.COM:8000", Host{"example.com", 8000}},
		{"example.com.", Host{Name: "example.com"}},
		{"example.com.:80", Host{"example.com", 80}},
		{"my_host-1", Host{Name: "my_host-1"}},
		{"localhost:65535", Host{"localhost", 65535}},
		{"127.0.0.1:1", Host{"127.0.0.1", 1}},
		{"[::1]", Host{Name: "::1"}},
		{"[0:0:0:0:0:0:0:1]:8000", Host{"::1", 8000}},
		{"[::FFFF:127.0.0.1]", Host{Name: "127.0.0.1"}},
		{long, Host{Name: long}},
		{long + ".:65535", Host{long, 65535}},

		{"", Host{}},
		{".", Host{}},
		{"..", Host{}},
		{"example.com..", Host{}},
		{".example.com", Host{}},
		{"example..com", Host{}},
		{long + "a", Host{}},
		{strings.Repeat("a", 1<<20), Host{}},
		{"example.com:", Host{}},
		{"example.com:0", Host{}},
		{"example.com:65536", Host{}},
		{"example.com:+80", Host{}},
		{"example.com:http", Host{}},
		{"example.com:80:80", Host{}},
		{":80", Host{}},
		{"user@example.com", Host{}},
		{"example.com/path", Host{}},
		{"example.com?query", Host{}},
		{"example.com#fragment", Host{}},
		{`example.com\path`, Host{}},
		{"example.com ", Host{}},
		{"example.com\x00", Host{}},
		{"example%2ecom", Host{}},
		{"exämple.com", Host{}},
		{"\u212Aelvin.example", Host{}}, // the lower case of the Kelvin sign is k
		{"::1", Host{}},
		{"[::1", Host{}},
		{"::1]", Host{}},
		{"[::1]x", Host{}},
		{"[::1]80", Host{}},
		{"[[::1]]", Host{}},
		{"[]", Host{}},
		{"[127.0.0.1]", Host{}},
		{"[example.com]", Host{}},
		{"[fe80::1%25eth0]", Host{}},
		{"[fe80::1%eth0]", Host{}},
	} {
		got, ok := ParseHost(row.text)
		if ok != (row.want != Host{}) || ok && got != row.want {
			t.Errorf("ParseHost(%.40q) = %+v, %t, want %+v", row.text, got, ok, row.want)
		}
	}
}

func TestParseWrittenHost(t *testing.T) {
	for _, row := range []struct {
		text string
		want Host // zero: refused
	}{
		{"::1", Host{Name: "::1"}},
		{"[::1]:80", Host{"::1", 80}},
		{"fe80::1%eth0", Host{Name: "fe80::1"}},
		{"::ffff:10.0.0.1", Host{Name: "10.0.0.1"}},
		{"Example.com:80", Host{"example.com", 80}},
		{"https://example.com", Host{}},
		{"*.example.com", Host{}},
		{"", Host{}},
	} {
		got, ok := ParseWrittenHost(row.text)
		if ok != (row.want != Host{}) || ok && got != row.want {
			t.Errorf("ParseWrittenHost(%q) = %+v, %t, want %+v", row.text, got, ok, row.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, row := range []struct {
		text string
		want Origin // zero: refused
	}{
		{"http://example.com", Origin{"http", Host{"example.com", 80}}},
		{"HTTPS://Example.com", Origin{"https", Host{"example.com", 443}}},
		{"https://example.com:8443", Origin{"https", Host{"example.com", 8443}}},
		{"http://[::1]:8000", Origin{"http", Host{"::1", 8000}}},
		{"vscode-webview://abc", Origin{"vscode-webview", Host{Name: "abc"}}},

		{"", Origin{}},
		{"null", Origin{}},
		{"example.com", Origin{}},
		{"http:example.com", Origin{}},
		{"http:/example.com", Origin{}},
		{"://example.com", Origin{}},
		{"http://", Origin{}},
		{"http:///example.com", Origin{}},
		{"http://example.com/", Origin{}},
		{"http://user@example.com", Origin{}},
		{"http://http://example.com", Origin{}},
		{"http://example.com http://evil.example", Origin{}},
		{"ht tp://example.com", Origin{}},
	} {
		got, ok := Parse(row.text)
		if ok != (row.want != Origin{}) || ok && got != row.want {
			t.Errorf("Parse(%q) = %+v, %t, want %+v", row.text, got, ok, row.want)
		}
	}
	if got, ok := ParseWritten("https://example.com/"); !ok || got != (Origin{"https", Host{"example.com", 443}}) {
		t.Errorf("ParseWritten with a slash at the end: %+v, %t", got, ok)
	}
	if _, ok := ParseWritten("https://example.com//"); ok {
		t.Error("ParseWritten with two slashes at the end is accepted")
	}
}

func TestIsLoopback(t *testing.T) {
	for text, want := range map[string]bool{
		"localhost": true, "LOCALHOST.:80": true, "127.0.0.1": true, "127.9.9.9": true, "[::1]": true, "[::ffff:127.0.0.1]": true,
		"localhost.example.com": false, "alocalhost": false, "0.0.0.0": false, "[::]": false, "10.0.0.1": false,
		// Some resolvers read these as 127.0.0.1; ParseAddr does not.
		"127.1": false, "2130706433": false, "0x7f.0.0.1": false, "0177.0.0.1": false, "127.0.0.01": false,
	} {
		h, ok := ParseHost(text)
		if !ok || h.IsLoopback() != want {
			t.Errorf("%s: %+v, %t: loopback is %t, want %t", text, h, ok, h.IsLoopback(), want)
		}
	}
}

func TestIsWithin(t *testing.T) {
	for _, row := range []struct {
		host, allowed string
		want          bool
	}{
		{"example.com", "example.com", true},
		{"example.com:8000", "example.com", true},
		{"example.com:8000", "example.com:8000", true},
		{"example.com", "example.com:80", true},
		{"example.com", "example.com:443", true},
		{"example.com", "example.com:8000", false},
		{"example.com:8001", "example.com:8000", false},
		{"example.com:80", "example.com:443", false},
		{"a.example.com", "example.com", false},
		{"example.com.evil.example", "example.com", false},
	} {
		host, _ := ParseHost(row.host)
		allowed, _ := ParseWrittenHost(row.allowed)
		if got := host.IsWithin(allowed); got != row.want {
			t.Errorf("%s within %s is %t, want %t", row.host, row.allowed, got, row.want)
		}
	}
}

func TestIsOf(t *testing.T) {
	for _, row := range []struct {
		origin, host string
		want         bool
	}{
		{"http://example.com", "example.com", true},
		{"http://example.com", "example.com:80", true},
		{"https://example.com", "example.com", true},
		{"https://example.com", "example.com:443", true},
		{"http://example.com:8000", "example.com:8000", true},
		{"http://EXAMPLE.com:8000", "example.COM.:8000", true},
		{"http://example.com", "example.com:443", false},
		{"http://example.com:8000", "example.com", false},
		{"http://evil.example", "example.com", false},
		{"http://example.com", "", false},
	} {
		o, ok := Parse(row.origin)
		if got := o.IsOf(row.host); !ok || got != row.want {
			t.Errorf("%s of %s is %t, want %t", row.origin, row.host, got, row.want)
		}
	}
}

// written is a host as a URL has it.
func written(h Host) string {
	text := h.Name
	if strings.Contains(text, ":") {
		text = "[" + text + "]"
	}
	if h.Port != 0 {
		text += ":" + strconv.Itoa(int(h.Port))
	}
	return text
}

// The laws of an accepted host: its name is canonical, so that comparing names
// compares hosts; net/url reads the same host; it is within itself; and people may
// write it in the same way.
func FuzzParseHost(f *testing.F) {
	for _, text := range []string{"example.com:80", "Example.com.", "a..", "[::1]:8000", "[::ffff:1.2.3.4]", "fe80::1%eth0", "user@a", "a:0", "127.1", "\u212A"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, ok := ParseHost(text)
		if !ok {
			return
		}
		if again, ok := ParseHost(written(h)); !ok || again != h {
			t.Errorf("%q is %+v, but %q is %+v, %t", text, h, written(h), again, ok)
		}
		if canonical := strings.ToLower(strings.TrimRight(h.Name, ".")); h.Name == "" || h.Name != canonical {
			t.Errorf("%q has the name %q", text, h.Name)
		}
		if !h.IsWithin(h) || !h.IsWithin(Host{Name: h.Name}) {
			t.Errorf("%+v is not within itself", h)
		}
		if w, ok := ParseWrittenHost(text); !ok || w != h {
			t.Errorf("%q is %+v, but written by people %+v, %t", text, h, w, ok)
		}
		u, err := url.Parse("http://" + text)
		if err != nil {
			t.Fatalf("net/url refuses %q: %v", text, err)
		}
		port, _ := strconv.Atoi(u.Port())
		if name := nameInURL(u); name != h.Name || port != int(h.Port) {
			t.Errorf("%q is %+v, but net/url reads %q and %d", text, h, name, port)
		}
		if u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("net/url finds more than a host in %q: %+v", text, u)
		}
	})
}

// nameInURL is the host of a URL in the form of Host.Name.
func nameInURL(u *url.URL) string {
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Unmap().String()
	}
	return name
}

// The laws of an accepted origin: it consists of a scheme and an accepted host, it
// has a port if its scheme has a default one, and it is the origin of its own host
// and of no other.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"http://example.com", "https://a.:443", "HTTP://[::1]:80", "null", "a://b", "http://a/", "http://a@b"} {
		f.Add(text, "example.com")
	}
	f.Fuzz(func(t *testing.T, text, other string) {
		o, ok := Parse(text)
		if !ok {
			return
		}
		scheme, host, _ := strings.Cut(text, "://")
		h, ok := ParseHost(host)
		if !ok || o.Scheme != strings.ToLower(scheme) || o.Name != h.Name || h.Port != 0 && o.Port != h.Port {
			t.Errorf("%q is %+v, but its host is %+v, %t", text, o, h, ok)
		}
		if o.Port == 0 && (o.Scheme == "http" || o.Scheme == "https") {
			t.Errorf("%q has no port", text)
		}
		if again, ok := Parse(o.Scheme + "://" + written(o.Host)); !ok || again != o {
			t.Errorf("%q is %+v, but written out %+v, %t", text, o, again, ok)
		}
		if !o.IsOf(host) {
			t.Errorf("%q is not of %q", text, host)
		}
		if h, ok := ParseHost(other); o.IsOf(other) && (!ok || h.Name != o.Name) {
			t.Errorf("%q is of %q", text, other)
		}
	})
}
