package selection

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"

	"mcpx/internal/rawjson"
)

// Limits of the numbers that are computed with. Others are compared as floating-point numbers,
// and have no sum.
const (
	maxDigits   = 1000
	maxExponent = 1000
)

// decimal is an exact number: digits × 10^-scale. The digits are in small, unless they need
// large.
type decimal struct {
	small int64
	large *big.Int
	scale int // as written: 1.50 has 2
}

// parseDecimal reads a JSON number. ok is false if the text is no number, or has too many
// digits.
func parseDecimal(text string) (d decimal, ok bool) {
	if len(text) > maxDigits || !rawjson.IsNumber(rawjson.Bytes(text)) {
		return d, false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(text[i+1:])
		if err != nil || exponent < -maxExponent || exponent > maxExponent {
			return d, false
		}
		text, d.scale = text[:i], -exponent
	}
	if whole, fraction, ok := strings.Cut(text, "."); ok {
		text = whole + fraction
		d.scale += len(fraction)
	}
	var err error
	if d.small, err = strconv.ParseInt(text, 10, 64); err != nil {
		d.large, _ = new(big.Int).SetString(text, 10)
	}
	if d.scale < 0 {
		d = d.scaled(0)
	}
	return d, true
}

// isNumber reports whether a text is a JSON number of any size.
func isNumber(text string) bool { return rawjson.IsNumber(rawjson.Bytes(text)) }

// digits returns the digits of a number as a large one.
func (d decimal) digits() *big.Int {
	if d.large != nil {
		return d.large
	}
	return big.NewInt(d.small)
}

// scaled returns the same number with a larger scale.
func (d decimal) scaled(scale int) decimal {
	small, by := d.small, scale-d.scale
	for ; d.large == nil && by > 0; by-- {
		next := small * 10
		if next/10 != small {
			break
		}
		small = next
	}
	if d.large == nil && by == 0 {
		return decimal{small: small, scale: scale}
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale-d.scale)), nil)
	return decimal{large: power.Mul(power, d.digits()), scale: scale}
}

// plus returns the sum. It changes the large digits of d, which the caller must own.
func (d decimal) plus(other decimal) decimal {
	if d.scale < other.scale {
		d = d.scaled(other.scale)
	} else if other.scale < d.scale {
		other = other.scaled(d.scale)
	}
	if sum := d.small + other.small; d.large == nil && other.large == nil && (sum > d.small) == (other.small > 0) {
		return decimal{small: sum, scale: d.scale}
	}
	if d.large == nil {
		d.large = big.NewInt(d.small)
	}
	return decimal{large: d.large.Add(d.large, other.digits()), scale: d.scale}
}

// String returns the number with as many decimals as its scale.
func (d decimal) String() string {
	digits, sign := d.digits().String(), ""
	if digits[0] == '-' {
		digits, sign = digits[1:], "-"
	}
	if d.scale == 0 {
		return sign + digits
	}
	if missing := d.scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - d.scale
	return sign + digits[:point] + "." + digits[point:]
}

// averageDecimals are the most decimals of an average.
const averageDecimals = 6

// over returns the number divided by a positive count, rounded to 6 decimals, half away from
// zero.
func (d decimal) over(count int) string {
	ten := big.NewInt(10)
	dividend := new(big.Int).Mul(d.digits(), new(big.Int).Exp(ten, big.NewInt(averageDecimals), nil))
	divisor := new(big.Int).Mul(big.NewInt(int64(count)), new(big.Int).Exp(ten, big.NewInt(int64(d.scale)), nil))
	half := new(big.Int).Rsh(divisor, 1)
	if dividend.Sign() < 0 {
		half.Neg(half)
	}
	average := decimal{large: dividend.Add(dividend, half).Quo(dividend, divisor), scale: averageDecimals}
	return withoutZeros(average.String())
}

// withoutZeros removes the zeros at the end of a number's decimals.
func withoutZeros(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	if number = strings.TrimRight(strings.TrimRight(number, "0"), "."); number == "-0" {
		return "0"
	}
	return number
}

// canonical returns a form that equal numbers share. ok is false if the text is no number.
func canonical(text string) (number string, ok bool) {
	d, ok := parseDecimal(text)
	if !ok {
		return text, isNumber(text)
	}
	return withoutZeros(d.String()), true
}

// compareNumbers compares two numbers. ok is false if one of them is no number.
func compareNumbers(a, b string) (order int, ok bool) {
	if !isNumber(a) || !isNumber(b) {
		return 0, false
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if order = cmp.Compare(x, y); order != 0 && err == nil && err2 == nil {
		return order, true
	}
	p, isExact := parseDecimal(a)
	q, isExact2 := parseDecimal(b)
	if !isExact || !isExact2 {
		return order, true
	}
	scale := max(p.scale, q.scale)
	return p.scaled(scale).digits().Cmp(q.scaled(scale).digits()), true
}
