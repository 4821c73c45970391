package secrets

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"mcpx/config"
)

func TestRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a POSIX shell")
	}
	folder := t.TempDir()
	long := strings.Repeat("x", config.MaxSecret)
	for _, test := range []struct {
		name  string
		words []string
		want  string
		err   string
	}{
		{"one line", []string{"echo", "hunter2"}, "hunter2", ""},
		{"no line break", []string{"printf", "hunter2"}, "hunter2", ""},
		{"only the last line break", []string{"printf", `a\nb\n\n`}, "a\nb\n", ""},
		{"windows line break", []string{"printf", `a\r\n`}, "a", ""},
		{"no shell", []string{"echo", "$HOME; `id`"}, "$HOME; `id`", ""},
		{"in the folder", []string{"pwd"}, folder, ""},
		{"no stdin", []string{"sh", "-c", "cat; echo end"}, "end", ""},
		{"the most", []string{"printf", "%s", long}, long, ""},
		{"too much", []string{"sh", "-c", "yes"}, "", "sh printed more than 64 KiB"},
		{"nothing", []string{"true"}, "", "true printed nothing"},
		{"fails", []string{"sh", "-c", "echo one >&2; echo 'not signed\x1b[1m in' >&2; exit 3"}, "", `sh failed: exit status 3: not signed\u001b[1m in`},
		{"missing", []string{"/nowhere/mcpx-none"}, "", "mcpx-none failed: fork/exec /nowhere/mcpx-none: no such file or directory"},
		{"not in PATH", []string{"mcpx-none"}, "", "mcpx-none was not found in PATH; install it, or give its full path"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Run(t.Context(), test.words, folder)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != test.want || text != test.err {
				t.Errorf("got %.80q, error %q\nwant %.80q, error %q", got, text, test.want, test.err)
			}
		})
	}
}

// TestNoKeyring runs in a process of its own: other tests replace the keyring by one in memory,
// which cannot be undone.
func TestNoKeyring(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems always have a keyring")
	}
	const inChild = "MCPX_TEST_KEYRING_CHILD"
	if os.Getenv(inChild) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestNoKeyring$", "-test.v")
		child.Env = append(os.Environ(), inChild+"=1")
		if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestNoKeyring") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	t.Run("no session", func(t *testing.T) {
		if _, err := os.Stat("/run/user"); err == nil && os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
			t.Skip("this is a desktop session")
		}
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // it has to know without asking
		_, err := Get(ctx, "name")
		if !errors.Is(err, ErrNoKeyring) || !strings.Contains(err.Error(), "${file:PATH}") || !strings.Contains(err.Error(), `"cmd"`) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a session that is gone", func(t *testing.T) {
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "bus"))
		if err := Available(); !errors.Is(err, ErrNoKeyring) {
			t.Errorf("available: %v", err)
		}
		if _, err := Get(t.Context(), "name"); !errors.Is(err, ErrNoKeyring) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a session that nobody serves", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bus")
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		listener.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = listener.Close()
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+path)
		if _, err := Get(t.Context(), "name"); !errors.Is(err, ErrNoKeyring) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a session that hangs", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bus")
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+path)
		ctx, cancel := context.WithCancelCause(t.Context())
		accepted := make(chan net.Conn)
		go func() {
			connection, _ := listener.Accept()
			cancel(errors.New("enough"))
			accepted <- connection
		}()
		if err := Set(ctx, "name", "value"); err == nil || err.Error() != "enough" {
			t.Errorf("error %v", err)
		}
		// A later request waits for its turn, and does not hang either.
		if _, err := Get(ctx, "name"); err == nil || err.Error() != "enough" {
			t.Errorf("error %v", err)
		}
		_ = (<-accepted).Close()
		_ = listener.Close()
		turn <- struct{}{} // the request has ended
		<-turn
	})
}

func TestKeyring(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "mock") // there is a session
	keyring.MockInit()
	ctx := t.Context()
	if _, err := Get(ctx, "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("get before set: %v", err)
	}
	if err := Set(ctx, "a", "hunter2"); err != nil {
		t.Fatal(err)
	}
	if got, err := Get(ctx, "a"); got != "hunter2" || err != nil {
		t.Errorf("get: %q, %v", got, err)
	}
	if err := Delete(ctx, "a"); err != nil {
		t.Error(err)
	}
	if err := Delete(ctx, "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("delete again: %v", err)
	}
}

// TestKey: a key is stored once. A keyring that fails is not a missing one.
func TestKey(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "mock") // there is a session
	keyring.MockInit()
	for _, created := range []string{"first", "second"} {
		key, ok, err := Key(t.Context(), ".key", func() string { return created })
		if key != "first" || !ok || err != nil {
			t.Errorf("%q, %v, %v", key, ok, err)
		}
	}
	keyring.MockInitWithError(errors.New("locked"))
	if _, ok, err := Key(t.Context(), ".key", nil); !ok || err == nil {
		t.Errorf("locked: %v, %v", ok, err)
	}
	keyring.MockInitWithError(keyring.ErrUnsupportedPlatform)
	if _, ok, err := Key(t.Context(), ".key", nil); ok || err != nil {
		t.Errorf("none: %v, %v", ok, err)
	}
}

func TestNames(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	names := NamesFile(nil)
	expect := func(want ...string) {
		t.Helper()
		if got, err := names.List(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	expect()
	for _, name := range []string{"b", "a", "b"} {
		if err := names.Add(name); err != nil {
			t.Fatal(err)
		}
	}
	expect("a", "b")
	if err := names.Remove("a"); err != nil {
		t.Fatal(err)
	}
	expect("b")
	if runtime.GOOS != "windows" {
		if err := errors.Join(os.Chmod(names.path, 0o644), os.Chmod(filepath.Dir(names.path), 0o755)); err != nil { //nolint:gosec // on purpose
			t.Fatal(err)
		}
		var repaired []string
		names = NamesFile(func(path string) { repaired = append(repaired, filepath.Base(path)) })
		expect("b")
		if !slices.Equal(repaired, []string{"mcpx", "secret-names"}) {
			t.Errorf("repaired %q", repaired)
		}
	}
	if info, err := os.Stat(names.path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
