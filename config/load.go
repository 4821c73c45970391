package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Load reads a config file of at most [MaxBytes]. References are expanded from the environment.
// The error of a file that was read but cannot be used is an [*Error].
func Load(path string) (*Config, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; name the config file in it", path)
	}
	data, err := ReadFile(path, MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w\ncheck the path, or save this there to start:\n\n%s", err, Sample)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the config: %w", err)
	}
	return Parse(path, data, os.LookupEnv)
}

// Parse is [Load] for bytes. The file's name is used in messages and for
// paths relative to it.
func Parse(file string, data []byte, lookup Lookup) (*Config, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("config file %s: %w", file, err)
	}
	r := &reader{file: file, src: withoutMark(data), lookup: lookup}
	c := defaults()
	c.File = abs
	if root, ok := r.parse(); ok {
		r.config(root, c)
	}
	sortProblems(r.problems)
	sortProblems(r.warnings)
	if len(r.problems) > 0 {
		return nil, &Error{Problems: r.problems, Warnings: r.warnings}
	}
	c.Warnings = r.warnings
	c.resolve(lookup)
	return c, nil
}

// DuplicateKeys returns the keys that any JSON file with comments gives twice in
// one object. A file that cannot be parsed has none.
func DuplicateKeys(file string, data []byte) []Problem {
	r := &reader{file: file, src: withoutMark(data)}
	if _, ok := r.parse(); !ok {
		return nil
	}
	return r.problems
}

// withoutMark returns the text without a byte order mark.
func withoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// resolve fills in what lies outside the file: variables and folders.
func (c *Config) resolve(lookup Lookup) {
	e := environment{lookup: lookup, folder: filepath.Dir(c.File)}
	if c.Logging.File != "" {
		c.Logging.File = e.absolute(c.Logging.File)
	}
	for i := range c.Profiles {
		p := &c.Profiles[i]
		for j, written := range p.all {
			p.all[j] = e.resolve(written)
		}
		p.Upstreams = slices.DeleteFunc(slices.Clone(p.all), func(u Upstream) bool { return u.disabled })
	}
}

// Lookup is how a variable of the environment is found: os.LookupEnv, but for tests.
type Lookup = func(name string) (value string, ok bool)
