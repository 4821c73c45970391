// Package exact counts tokens as o200k_base has them. Its tables take tens of
// megabytes once they are used: what serves calls estimates instead.
package exact

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

var encoding = sync.OnceValue(codec.NewO200kBase)

// Count is the number of tokens of a text.
func Count(text string) int {
	n, err := encoding().Count(text)
	if err != nil {
		return len(text) // a text that cannot be read costs what it has
	}
	return n
}
