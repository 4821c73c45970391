package app

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// ladder has the packages from the top to the bottom: each may import what
// is on a lower step, and its own sub-packages.
var ladder = []string{"e2e", "cmd", "internal/app", "internal/parts", "server/pages", "server/http", "server/stdio", "server/servertest", "server/access", "server", "executor", "registry", "registry/live", "registry/lists", "registry/upstream", "registry/link", "registry/child", "config/edit", "config", "cmd/internal/terminal", "internal", "examples"}

// only says which packages may import a module; no others may.
var only = map[string][]string{
	"github.com/mark3labs/mcp-go":            {"registry", "server"},
	"github.com/xeipuuv/gojsonschema":        {"executor/validate"},
	"github.com/alecthomas/kong":             {"cmd"},
	"github.com/coreos/go-oidc":              {"internal/parts/callers"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/parts/signin", "internal/parts/callers"},
	"github.com/gomodule/redigo":             {"internal/parts/replicas/redis"},
	"github.com/zalando/go-keyring":          {"internal/parts/secrets"},
	"golang.org/x/oauth2":                    {"internal/parts/signin"},
	"go.opentelemetry.io":                    {"internal/parts/traces"},
	"github.com/prometheus":                  {"internal/parts/metrics"},
	"github.com/pelletier/go-toml":           {"cmd/internal/clients"},
	"github.com/chromedp/chromedp":           nil, // tests alone have a browser
	"github.com/rs/zerolog/log":              nil, // the global logger
	"github.com/tiktoken-go/tokenizer":       nil, // internal/tokens has its own table; tests check it
}

// core are the packages that must not need a forbidden module, with all below them.
var core = []string{"config", "registry", "executor", "server"}

// forbidden are the modules that only parts may need, directly or through other packages.
var forbidden = []string{
	"github.com/coreos/go-oidc",
	"github.com/go-jose",
	"github.com/godbus",
	"github.com/gomodule",
	"github.com/modelcontextprotocol/go-sdk",
	"github.com/prometheus",
	"github.com/zalando/go-keyring",
	"go.opentelemetry.io",
	"golang.org/x/oauth2",
}

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	Deps                               []string // all packages that it needs
}

func TestImports(t *testing.T) {
	packages := listPackages(t, "ImportPath,Imports,TestImports,XTestImports", "mcpx/...")
	if len(packages) < 10 {
		t.Fatalf("only %d packages: %v", len(packages), packages)
	}
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, "mcpx/")
		for _, path := range p.Imports {
			if own, ok := strings.CutPrefix(path, "mcpx/"); ok && !points(name, own) {
				t.Errorf("%s imports %s: arrows only point down: %s", name, own, strings.Join(ladder, " > "))
			}
			for module, allowed := range only {
				if within(path, module) && !slices.ContainsFunc(allowed, func(a string) bool { return within(name, a) }) {
					t.Errorf("%s imports %s, which is for %v", name, path, allowed)
				}
			}
		}
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			if path == "github.com/rs/zerolog/log" {
				t.Errorf("a test of %s imports the global logger", name)
			}
		}
	}
}

// TestCoreNeeds: the core is small. No package of it needs a forbidden module.
func TestCoreNeeds(t *testing.T) {
	for _, folder := range core {
		for _, p := range listPackages(t, "ImportPath,Deps", "mcpx/"+folder+"/...") {
			for _, module := range forbidden {
				if slices.ContainsFunc(p.Deps, func(path string) bool { return within(path, module) }) {
					t.Errorf("%s needs %s, which is for parts", strings.TrimPrefix(p.ImportPath, "mcpx/"), module)
				}
			}
		}
	}
}

// assemblers are the only packages that know the parts.
var assemblers = []string{"internal/app", "cmd/internal/cli"}

// points reports whether one of our packages may import another.
func points(from, to string) bool {
	a, b := step(from), step(to)
	switch {
	case within(to, "internal/parts") && !within(from, "internal/parts"):
		return slices.Contains(assemblers, from)
	case a < 0:
		return false
	case a == b:
		// Leaves may lean on leaves, and the programs on what they share.
		return within(to, from) || ladder[a] == "internal" || within(to, "cmd/internal")
	}
	return b > a
}

// step is the place of a package on the ladder, -1 if it does not.
func step(name string) int {
	found := -1
	for i, s := range ladder {
		if within(name, s) && (found < 0 || len(s) > len(ladder[found])) {
			found = i // the longest entry wins: registry/live is below registry
		}
	}
	return found
}

// within reports whether a path is a folder or inside it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// listPackages returns these fields of the packages that a pattern matches.
func listPackages(t *testing.T, fields, pattern string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json="+fields, pattern)
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("%v: %s", err, failed.Stderr)
		}
		t.Fatal(err)
	}
	var packages []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// The rules themselves hold what they say.
func TestPoints(t *testing.T) {
	for _, row := range []struct {
		from, to string
		want     bool
	}{
		{"cmd/mcpx", "internal/app", true},
		{"internal/app", "server", true},
		{"internal/app", "internal/parts/secrets", true},
		{"cmd/internal/cli", "internal/parts/secrets", true},
		{"cmd/internal/clients", "internal/parts/secrets", false},
		{"internal/parts/secrets", "server/pages", true},
		{"internal/parts/secrets", "internal/plain", true},
		{"internal/parts/secrets", "internal/parts/other", false},
		{"internal/parts/secrets", "internal/app", false},
		{"server/pages", "internal/parts/secrets", false},
		{"internal/plain", "internal/parts/secrets", false},
		{"internal/parts/replicas", "internal/parts/replicas/redis", true},
		{"server/http", "internal/parts/replicas", false},
		{"internal/app", "internal/parts/traces", true},
		{"cmd/internal/cli", "internal/parts/traces", true},
		{"cmd/mcpx", "internal/parts/traces", false},
		{"internal/parts/traces", "server", true},
		{"internal/parts/traces", "internal/parts/traces/tracestest", true},
		{"internal/parts/traces", "internal/parts/audit", false},
		{"internal/parts/traces", "internal/app", false},
		{"server", "internal/parts/traces", false},
		{"internal/logging", "internal/parts/traces", false},
		{"server/pages", "server/http", true},
		{"server/http", "server/pages", false},
		{"config/edit", "config", true},
		{"config", "config/edit", false},
		{"registry", "registry/live", true},
		{"registry/live", "registry/lists", true},
		{"registry/live", "registry", false},
		{"server", "executor", true},
		{"internal/app", "internal/parts/console", true},
		{"internal/parts/console", "server/pages", true},
		{"internal/parts/console", "internal/parts/search", false},
		{"server/pages", "internal/parts/console", false},
		{"executor", "executor/validate", true},
		{"executor/validate", "internal/rawjson", true},
		{"config", "internal/nearest", true},
		{"internal/rpc", "internal/rawjson", true},
		{"executor/validate", "executor", false},
		{"executor/listing", "registry", true},
		{"executor/listing", "executor", false},
		{"executor/validate", "executor/results", false},
		{"registry", "executor", false},
		{"config", "registry", false},
		{"internal/logging", "config", false},
		{"internal/tokens", "internal/app", false},
		{"cmd/mcpx", "cmd/mcpx-sse", false},
		{"cmd/internal/cli", "examples", true},
		{"cmd/internal/cli", "cmd/internal/terminal", true},
		{"cmd/internal/terminal", "cmd/internal/cli", false},
		{"cmd/internal/terminal", "internal/app", false},
		{"cmd/internal/terminal", "internal/plain", true},
		{"examples", "internal/demo", false},
		{"internal/demo", "internal/rpc", true},
		{"internal/demo", "server", false},
	} {
		if got := points(row.from, row.to); got != row.want {
			t.Errorf("%s to %s: %v, want %v", row.from, row.to, got, row.want)
		}
	}
}
