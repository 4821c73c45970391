package secrets

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/internal/atomicfile"
)

// Names is a file with the names of the secrets that mcpx stored, one per line: keyrings
// cannot list them. It has no secrets.
type Names struct {
	path     string
	repaired atomicfile.Repaired
}

// maxNames is the size of the largest file of names.
const maxNames = 1 << 20

// NamesFile returns the file of names in the state folder. repaired is called if other
// users could read it.
func NamesFile(repaired atomicfile.Repaired) Names {
	return Names{filepath.Join(atomicfile.StateFolder(), "secret-names"), repaired}
}

// List returns the names, sorted.
func (n Names) List() ([]string, error) {
	if err := atomicfile.PrivateFolder(filepath.Dir(n.path), n.repaired); err != nil {
		return nil, err
	}
	data, err := atomicfile.ReadPrivate(n.path, maxNames, n.repaired)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return lines(data), err
}

// Add adds a name.
func (n Names) Add(name string) error {
	return n.edit(func(names []string) []string { return append(names, name) })
}

// Remove removes a name.
func (n Names) Remove(name string) error {
	return n.edit(func(names []string) []string {
		return slices.DeleteFunc(names, func(other string) bool { return other == name })
	})
}

func (n Names) edit(change func(names []string) []string) error {
	if err := os.MkdirAll(filepath.Dir(n.path), 0o700); err != nil {
		return err
	}
	if _, err := n.List(); err != nil { // it also repairs the permissions
		return err
	}
	_, err := atomicfile.Edit(n.path, atomicfile.Options{Limit: maxNames, Create: 0o600}, func(old []byte) ([]byte, error) {
		names := change(lines(old))
		slices.Sort(names)
		var b bytes.Buffer
		for _, name := range slices.Compact(names) {
			b.WriteString(name + "\n")
		}
		return b.Bytes(), nil
	})
	return err
}

func lines(data []byte) []string { return strings.Fields(string(data)) }
