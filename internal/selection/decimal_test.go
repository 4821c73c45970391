package selection

import (
	"math/big"
	"testing"
)

func TestSums(t *testing.T) {
	for _, test := range []struct {
		numbers      []string
		sum, average string
	}{
		{[]string{"0.1", "0.2"}, "0.3", "0.15"},
		{[]string{"1.50", "2.5"}, "4.00", "2"},
		{[]string{"9223372036854775807", "1"}, "9223372036854775808", "4611686018427387904"},
		{[]string{"-9223372036854775808", "-1"}, "-9223372036854775809", "-4611686018427387904.5"},
		{[]string{"12345678901234567890123", "0.01"}, "12345678901234567890123.01", "6172839450617283945061.505"},
		{[]string{"1e3", "1E-3"}, "1000.001", "500.0005"},
		{[]string{"-0.05", "0.01"}, "-0.04", "-0.02"},
		{[]string{"1", "1", "0"}, "2", "0.666667"},
		{[]string{"-1", "-1", "0"}, "-2", "-0.666667"},
		{[]string{"-0"}, "0", "0"},
	} {
		var sum decimal
		for _, text := range test.numbers {
			d, ok := parseDecimal(text)
			if !ok {
				t.Fatalf("%s is no number", text)
			}
			sum = sum.plus(d)
		}
		if got := sum.String(); got != test.sum {
			t.Errorf("the sum of %v is %s, want %s", test.numbers, got, test.sum)
		}
		if got := sum.over(len(test.numbers)); got != test.average {
			t.Errorf("the average of %v is %s, want %s", test.numbers, got, test.average)
		}
	}
}

func TestDecimalsAreBounded(t *testing.T) {
	for _, text := range []string{"1e999999999", "1e-999999999", "1e99999999999999999999", "x", "", "01", " 1", "1_0", "0x1"} {
		if d, ok := parseDecimal(text); ok {
			t.Errorf("%q is read as %s", text, d)
		}
	}
}

// FuzzDecimal states the laws of sums and comparisons: they are those of exact fractions.
func FuzzDecimal(f *testing.F) {
	f.Add("0.1", "2e-1")
	f.Add("9223372036854775807", "1")
	f.Add("-1.50e3", "0.00")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, ok := parseDecimal(a)
		y, ok2 := parseDecimal(b)
		if !ok || !ok2 {
			t.Skip()
		}
		p, _ := new(big.Rat).SetString(a)
		q, _ := new(big.Rat).SetString(b)
		order, _ := compareNumbers(a, b)
		if order != p.Cmp(q) {
			t.Errorf("%s and %s: order %d", a, b, order)
		}
		one, _ := canonical(a)
		other, _ := canonical(b)
		if (one == other) != (p.Cmp(q) == 0) {
			t.Errorf("%s and %s: %s and %s", a, b, one, other)
		}
		sum := decimal{}.plus(x).plus(y).String()
		if got, _ := new(big.Rat).SetString(sum); got.Cmp(p.Add(p, q)) != 0 {
			t.Errorf("%s + %s = %s", a, b, sum)
		}
	})
}
