package search

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"mcpx/internal/atomicfile"
)

// vectorKey is the hash of the text that a vector is for.
type vectorKey [sha256.Size]byte

// vectors are the vectors of one model, by what they are for, in memory and in a file. Its
// methods may be called concurrently.
type vectors struct {
	file     string // empty: they are only in memory
	maxBytes int

	mu       sync.Mutex
	isLoaded bool
	size     int         // dimensions; 0 if there are none
	order    []vectorKey // the oldest first
	byKey    map[vectorKey][]float32
}

// maxVectorBytes bounds the vectors in memory, and their file. Tools with 1,536 dimensions
// have 6 KiB each.
const maxVectorBytes = 64 << 20

// maxVectorAge is how long the file of a model that nobody uses is kept.
const maxVectorAge = 90 * 24 * time.Hour

// vectorMagic is the beginning of a file. It changes with the form of the file.
const vectorMagic = "mcpxvec1"

// newVectors returns the vectors of a model of an endpoint, whose file is in a folder.
func newVectors(folder string, e Embeddings) *vectors {
	v := &vectors{maxBytes: maxVectorBytes, byKey: map[vectorKey][]float32{}}
	if folder != "" {
		name := sha256.Sum256([]byte(e.Address.URL + "\n" + e.Model))
		v.file = filepath.Join(folder, encodeName(name)+".vectors")
	}
	return v
}

// get returns the vectors of the keys, nil for those that are not known.
func (v *vectors) get(keys []vectorKey) [][]float32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.load()
	found := make([][]float32, len(keys))
	for i, key := range keys {
		found[i] = v.byKey[key]
	}
	return found
}

// add adds vectors of one size. Vectors of another size are forgotten: the model has changed.
// So are the oldest ones if there are too many.
func (v *vectors) add(keys []vectorKey, added [][]float32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.load()
	for i, key := range keys {
		if len(added[i]) != v.size {
			v.size, v.order = len(added[i]), nil
			clear(v.byKey)
		}
		if v.byKey[key] == nil {
			v.order = append(v.order, key)
		}
		v.byKey[key] = added[i]
	}
	for len(v.order) > v.capacity() {
		delete(v.byKey, v.order[0])
		v.order = v.order[1:]
	}
}

// room returns how many tools can have vectors.
func (v *vectors) room() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.capacity()
}

// recordBytes returns the bytes of a vector and its key.
func recordBytes(size int) int { return len(vectorKey{}) + 4*size }

// capacity returns how many vectors there may be.
func (v *vectors) capacity() int {
	return (v.maxBytes - headerBytes) / recordBytes(v.size)
}

// headerBytes is the length of the beginning of a file: the magic and the size.
const headerBytes = len(vectorMagic) + 4

// load reads the file once. A file that is not valid counts as absent.
func (v *vectors) load() {
	if v.isLoaded {
		return
	}
	v.isLoaded = true
	if v.file == "" {
		return
	}
	data, err := atomicfile.ReadAtMost(v.file, int64(v.maxBytes))
	if err != nil || len(data) < headerBytes || !bytes.HasPrefix(data, []byte(vectorMagic)) {
		return
	}
	size := int(binary.LittleEndian.Uint32(data[len(vectorMagic):]))
	data = data[headerBytes:]
	if size == 0 || size > maxDimensions || len(data)%recordBytes(size) != 0 {
		return
	}
	v.size = size
	for record := range slices.Chunk(data, recordBytes(size)) {
		key := vectorKey(record[:len(vectorKey{})])
		if vector := decodeVector(record[len(vectorKey{}):]); vector != nil && v.byKey[key] == nil {
			v.order = append(v.order, key)
			v.byKey[key] = vector
		}
	}
}

// save writes the file. Only the user can read it.
func (v *vectors) save() error {
	v.mu.Lock()
	data := append([]byte(vectorMagic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(data[len(vectorMagic):], uint32(v.size))
	for _, key := range v.order {
		data = append(data, key[:]...)
		for _, x := range v.byKey[key] {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
	}
	v.mu.Unlock()
	if v.file == "" || len(data) == headerBytes {
		return nil
	}
	folder := filepath.Dir(v.file)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return errors.Join(atomicfile.Replace(v.file, data, 0o600), removeUnused(folder))
}

// removeUnused removes the files of models that nobody has used for a long time.
func removeUnused(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.vectors"))
	for _, file := range files {
		if info, statErr := os.Stat(file); statErr == nil && time.Since(info.ModTime()) > maxVectorAge {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}

// decodeVector returns a vector of a file, nil if it has numbers that are none.
func decodeVector(data []byte) []float32 {
	vector := make([]float32, 0, len(data)/4)
	for four := range slices.Chunk(data, 4) {
		x := math.Float32frombits(binary.LittleEndian.Uint32(four))
		if x != x || math.IsInf(float64(x), 0) {
			return nil
		}
		vector = append(vector, x)
	}
	return vector
}
