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
// stands on a lower step, and its own sub-packages.
var ladder = []string{"e2e", "cmd", "internal/app", "server/pages", "server/front", "server/stdio", "server/servertest", "server/access", "server", "executor", "registry", "registry/live", "registry/lists", "internal/upstream", "internal/link", "internal/child", "config/edit", "config", "internal", "examples"}

// only says which packages may import a module; no others may.
var only = map[string][]string{
	"github.com/mark3labs/mcp-go":            {"registry", "internal/upstream", "internal/link", "server"},
	"github.com/xeipuuv/gojsonschema":        {"executor/validate"},
	"github.com/alecthomas/kong":             {"cmd"},
	"github.com/coreos/go-oidc":              {"server/access"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/auth", "server/access"},
	"github.com/redis/go-redis":              {"internal/store"},
	"github.com/zalando/go-keyring":          {"internal/secret"},
	"golang.org/x/oauth2":                    {"internal/auth"},
	"go.opentelemetry.io":                    {"internal/telemetry"},
	"github.com/pelletier/go-toml":           {"cmd/internal/clients"},
	"github.com/chromedp/chromedp":           nil, // tests alone have a browser
	"github.com/rs/zerolog/log":              nil, // the global logger
	"github.com/tiktoken-go/tokenizer":       nil, // internal/tokens has its own table; tests check it
}

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestImports(t *testing.T) {
	packages := listPackages(t)
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

// points reports whether one of our packages may import another.
func points(from, to string) bool {
	a, b := step(from), step(to)
	switch {
	case a < 0:
		return false
	case a == b:
		// Leaves may lean on leaves, and the programs on what they share.
		return within(to, from) || ladder[a] == "internal" || within(to, "cmd/internal")
	}
	return b > a
}

// step is where a package stands on the ladder, -1 if it does not.
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

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "mcpx/...")
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
		{"server/pages", "server/front", true},
		{"server/front", "server/pages", false},
		{"config/edit", "config", true},
		{"config", "config/edit", false},
		{"registry", "registry/live", true},
		{"registry/live", "registry/lists", true},
		{"registry/live", "registry", false},
		{"server", "executor", true},
		{"internal/app", "internal/console", true},
		{"executor", "executor/validate", true},
		{"executor/validate", "internal/rawjson", true},
		{"config", "internal/nearest", true},
		{"internal/rpc", "internal/rawjson", true},
		{"executor/validate", "executor", false},
		{"executor/validate", "executor/results", false},
		{"registry", "executor", false},
		{"config", "registry", false},
		{"internal/logging", "config", false},
		{"internal/tokens", "internal/app", false},
		{"cmd/mcpx", "cmd/mcpx-sse", false},
		{"cmd/internal/cli", "examples", true},
		{"examples", "internal/demo", false},
		{"internal/demo", "internal/rpc", true},
		{"internal/demo", "server", false},
		{"internal/console", "server", false},
	} {
		if got := points(row.from, row.to); got != row.want {
			t.Errorf("%s to %s: %v, want %v", row.from, row.to, got, row.want)
		}
	}
}
