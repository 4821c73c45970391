package live

import "sync"

// MaxKept is the most values that a Kept holds.
const MaxKept = 256

// Kept is a bounded cache of values that can be computed again. When it is full, it drops all
// of them. The zero Kept is empty. The methods may be called concurrently.
type Kept[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

// Load returns a value; the zero V if there is none.
func (k *Kept[K, V]) Load(key K) V {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.values[key]
}

// Store adds a value.
func (k *Kept[K, V]) Store(key K, value V) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.values == nil || len(k.values) >= MaxKept {
		k.values = map[K]V{}
	}
	k.values[key] = value
}
