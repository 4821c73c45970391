package vectors

import "testing"

func TestTable(t *testing.T) {
	if len(table)%record != 0 || len(table) > 10<<20 {
		t.Fatalf("the table has %d bytes", len(table))
	}
	count := len(table) / record
	if count < 20_000 {
		t.Errorf("%d words", count)
	}
	for i := 1; i < count; i++ {
		if word(i-1) >= word(i) {
			t.Fatalf("%q comes before %q", word(i-1), word(i))
		}
	}
	for _, i := range []int{0, count / 3, count - 1} {
		v, ok := Find(word(i))
		if !ok || len(v) != Dimensions {
			t.Errorf("%q is not found", word(i))
		}
	}
}

func TestFind(t *testing.T) {
	for _, stem := range []string{"", "\x00", "xyzzyx", "creat\x00", "a word that is longer than a record", "zzzzzzzzzzzzzzzzzzz", "天气", "\xff"} {
		if v, ok := Find(stem); ok {
			t.Errorf("Find(%q) = %q", stem, v)
		}
	}
}

func TestSimilarity(t *testing.T) {
	similarity := func(a, b string) float64 {
		v, ok := Find(a)
		w, alsoOK := Find(b)
		if !ok || !alsoOK {
			t.Fatalf("%q or %q is not found", a, b)
		}
		if v.Similarity(w) != w.Similarity(v) {
			t.Errorf("the similarity of %s and %s depends on their order", a, b)
		}
		return v.Similarity(w)
	}
	for _, word := range []string{"invoic", "file", "branch"} {
		if s := similarity(word, word); s < 0.97 || s > 1.03 {
			t.Errorf("%s is similar to itself by %.3f", word, s)
		}
	}
	for _, row := range []struct{ word, near, far string }{
		{"invoic", "payment", "river"},
		{"photo", "pictur", "tax"},
		{"weather", "rain", "invoic"},
		{"employe", "worker", "river"},
	} {
		if near, far := similarity(row.word, row.near), similarity(row.word, row.far); near < 0.4 || far > 0.3 {
			t.Errorf("%s is similar to %s by %.2f and to %s by %.2f", row.word, row.near, near, row.far, far)
		}
	}
	if v, _ := Find("file"); v.Similarity("") != 0 || Vector("").Similarity(v) != 0 {
		t.Error("the empty vector is similar to another")
	}
}

func BenchmarkSimilarity(b *testing.B) {
	v, _ := Find("file")
	w, _ := Find("document")
	for b.Loop() {
		v.Similarity(w)
	}
}
