package seal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// key returns a key of one repeated byte.
func key(b byte) Key { return bytes.Repeat([]byte{b}, KeyBytes) }

func TestParseKey(t *testing.T) {
	whole := base64.StdEncoding.EncodeToString(key(200))
	for name, row := range map[string]struct {
		text string
		want Key
	}{
		"a key":      {whole, key(200)},
		"31 bytes":   {base64.StdEncoding.EncodeToString(key(1)[1:]), nil},
		"33 bytes":   {base64.StdEncoding.EncodeToString(append(key(1), 1)), nil},
		"no base64":  {"hunter2-hunter2-hunter2-hunter2-hunter2-hunt", nil},
		"no padding": {strings.TrimRight(whole, "="), nil},
		"nothing":    {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseKey(row.text)
			if !bytes.Equal(got, row.want) || err == nil != (row.want != nil) {
				t.Fatalf("got %x, %v", got, err)
			}
			if err != nil && (!strings.Contains(err.Error(), "openssl rand -base64 32") || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestOpen: whatever was not sealed with these terms has the same answer.
func TestOpen(t *testing.T) {
	b := New(Session, []Key{key(1)})
	text, later := []byte("a secret text"), time.Now().Add(time.Hour)
	sealed := b.Seal(text, Terms{Label: "work", Until: later})
	if len(sealed) != SealedLen(len(text)) || strings.Contains(sealed, "secret") {
		t.Errorf("sealed as %s", sealed)
	}
	got, until, err := b.Open(sealed, "work")
	if !bytes.Equal(got, text) || err != nil || until.Unix() != later.Unix() {
		t.Fatalf("got %q, %v, %v", got, until, err)
	}
	if b.Seal(text, Terms{Label: "work", Until: later}) == sealed {
		t.Error("the same text is sealed the same way twice")
	}
	last := "A"
	if strings.HasSuffix(sealed, "A") {
		last = "Q"
	}
	for name, row := range map[string]struct {
		box           *Box
		sealed, label string
	}{
		"another label":       {b, sealed, "home"},
		"another purpose":     {New(Round, []Key{key(1)}), sealed, "work"},
		"another key":         {New(Session, []Key{key(2)}), sealed, "work"},
		"expired":             {b, b.Seal(text, Terms{Label: "work", Until: time.Now()}), "work"},
		"cut":                 {b, sealed[:len(sealed)-1], "work"},
		"cut to nothing":      {b, "v1.", "work"},
		"longer":              {b, sealed + "A", "work"},
		"changed":             {b, sealed[:len(sealed)-1] + last, "work"},
		"another prefix":      {b, "v2." + sealed[3:], "work"},
		"no prefix":           {b, sealed[3:], "work"},
		"a line break":        {b, sealed[:9] + "\n" + sealed[9:], "work"},
		"not base64":          {b, "v1." + strings.Repeat("*", 60), "work"},
		"a plain text":        {b, "AAAAAAAAAAAAAAAAAAAAAAAAAA", "work"},
		"nothing":             {b, "", "work"},
		"a standard alphabet": {b, "v1." + strings.Repeat("+/", 30), "work"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, until, err := row.box.Open(row.sealed, row.label); !errors.Is(err, ErrInvalid) || got != nil || !until.IsZero() {
				t.Errorf("got %q, %v, %v", got, until, err)
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Session, []Key{key(1)})
		sealed := b.Seal([]byte("text"), Terms{Until: time.Now().Add(time.Minute)})
		forever := b.Seal([]byte("text"), Terms{})
		<-time.After(59 * time.Second)
		if _, _, err := b.Open(sealed, ""); err != nil {
			t.Errorf("before its expiry: %v", err)
		}
		<-time.After(time.Second)
		if _, _, err := b.Open(sealed, ""); err == nil {
			t.Error("an expired text was opened")
		}
		if _, until, err := b.Open(forever, ""); err != nil || !until.IsZero() {
			t.Errorf("a text without expiry: %v, %v", until, err)
		}
	})
}

// TestRotation: the first key seals, and all keys open.
func TestRotation(t *testing.T) {
	older, newer := New(Token, []Key{key(1)}), New(Token, []Key{key(2)})
	both := New(Token, []Key{key(2), key(1)})
	for name, row := range map[string]struct {
		sealer, opener *Box
		want           bool
	}{
		"the older key's text":           {older, both, true},
		"the newer key's text":           {newer, both, true},
		"a new text with the newer key":  {both, newer, true},
		"a new text with the older key":  {both, older, false},
		"a text of a key that was taken": {older, newer, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := row.opener.Open(row.sealer.Seal([]byte("text"), Terms{}), "")
			if err == nil != row.want {
				t.Errorf("opened: %v", err)
			}
		})
	}
}

// Two texts that earlier builds have sealed.
const (
	sealedWith1 = "v1.b2Ujb92bGTjdh-QECilxBzKY_wgi1dttaRTQu8rWEwJ-bUEs6NOOzGH5Lsk"
	sealedWith2 = "v1.x_ESZlw-ZfA4U6OvYCfovHiuDYP5A5_hxj_9rzNQrHq8sn32mmTsmeAOm3U"
)

// FuzzOpen: a text opens only if it is, byte for byte, a text that was sealed.
func FuzzOpen(f *testing.F) {
	b := New(Session, []Key{key(1), key(2)})
	for _, text := range []string{sealedWith1, sealedWith2, sealedWith1 + "=", sealedWith1[:60], "v1.", "v1." + sealedWith1[4:], "\n" + sealedWith1} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, _, err := b.Open(text, "work")
		if wasSealed := text == sealedWith1 || text == sealedWith2; err == nil != wasSealed || wasSealed && string(got) != "the text" {
			t.Errorf("%q opens as %q, %v", text, got, err)
		}
	})
}

var clientText = bytes.Repeat([]byte("a client session "), 20)

func BenchmarkSeal(b *testing.B) {
	box := New(Session, []Key{key(1)})
	until := time.Now().Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		box.Seal(clientText, Terms{Label: "work", Until: until})
	}
}

func BenchmarkOpen(b *testing.B) {
	box := New(Session, []Key{key(1)})
	sealed := box.Seal(clientText, Terms{Label: "work", Until: time.Now().Add(time.Hour)})
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := box.Open(sealed, "work"); err != nil {
			b.Fatal(err)
		}
	}
}
