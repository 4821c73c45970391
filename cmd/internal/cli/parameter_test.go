package cli

import "testing"

func TestParameterReferences(t *testing.T) {
	root := []byte(`{"$defs":{"a":{"$anchor":"x","type":"string"},"b":[{"$dynamicAnchor":"y"}],"c":{"$anchor":"z"},"d":{"$anchor":"z"}}}`)
	for reference, want := range map[string]string{
		"#":                   string(root),
		"#/$defs/a":           `{"$anchor":"x","type":"string"}`,
		"#x":                  `{"$anchor":"x","type":"string"}`,
		"#y":                  `{"$dynamicAnchor":"y"}`,
		"#z":                  "", // two have that name
		"#none":               "",
		"https://example.com": "",
	} {
		if got := (parameter{root: root}).resolve(reference); string(got) != want {
			t.Errorf("%s is %s, want %s", reference, got, want)
		}
	}
}
