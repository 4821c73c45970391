package secret

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"mcpx/internal/editfile"
)

// Names is a file with the names of the secrets that mcpx stored, one per line: keyrings
// cannot list them. It has no secrets.
type Names struct {
	path     string
	repaired editfile.Repaired
}

// maxNames is the size of the largest file of names.
const maxNames = 1 << 20

// NamesFile returns the file of names in the state folder. repaired is called if other
// users could read it.
func NamesFile(repaired editfile.Repaired) Names {
	return Names{filepath.Join(StateFolder(), "secret-names"), repaired}
}

// StateFolder returns the folder for lasting data: mcpx in $XDG_STATE_HOME, on Windows in
// %LocalAppData%, and otherwise in ~/.local/state.
func StateFolder() string {
	if folder := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "mcpx")
	}
	if folder := os.Getenv("LocalAppData"); runtime.GOOS == "windows" && folder != "" {
		return filepath.Join(folder, "mcpx")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "state", "mcpx")
}

// List returns the names, sorted.
func (n Names) List() ([]string, error) {
	if err := editfile.PrivateFolder(filepath.Dir(n.path), n.repaired); err != nil {
		return nil, err
	}
	data, err := editfile.ReadPrivate(n.path, maxNames, n.repaired)
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
	_, err := editfile.Edit(n.path, editfile.Options{Limit: maxNames, Create: 0o600}, func(old []byte) ([]byte, error) {
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
