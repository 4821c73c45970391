package e2e

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"

	"mcpx/internal/mcptest"
)

// keyring is a Secret Service on a session bus of its own, as a desktop has it.
type keyring struct {
	mu      sync.Mutex
	secrets map[dbus.ObjectPath]storedSecret
}

// storedSecret is a secret as the bus carries it.
type storedSecret struct {
	Session     dbus.ObjectPath
	Parameters  []byte
	Value       []byte
	ContentType string
}

const noPrompt = dbus.ObjectPath("/")

// startKeyring starts a bus with a keyring, and returns the variable that leads to it.
func startKeyring(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("THE KEYRING WAS NOT TESTED: there is no dbus-daemon")
	}
	daemon := exec.Command(program, "--session", "--nofork", "--print-address=1", "--address=unix:path="+filepath.Join(t.TempDir(), "bus"))
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Skipf("THE KEYRING WAS NOT TESTED: %v", err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Skipf("THE KEYRING WAS NOT TESTED: the bus did not start: %v", err)
	}
	address = strings.TrimSpace(address)
	bus, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	k := &keyring{secrets: map[dbus.ObjectPath]storedSecret{}}
	const root = "/org/freedesktop/secrets"
	for path, iface := range map[dbus.ObjectPath]string{root: "Service", root + "/aliases/default": "Collection", "/session": "Session"} {
		if err := bus.Export(k, path, "org.freedesktop.Secret."+iface); err != nil {
			t.Fatal(err)
		}
	}
	if err := bus.ExportSubtree(items{k}, "/items", "org.freedesktop.Secret.Item"); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.RequestName("org.freedesktop.secrets", dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	return "DBUS_SESSION_BUS_ADDRESS=" + address
}

// OpenSession is a method of the service.
func (k *keyring) OpenSession(string, dbus.Variant) (dbus.Variant, dbus.ObjectPath, *dbus.Error) {
	return dbus.MakeVariant(""), "/session", nil
}

// Close is a method of a session.
func (k *keyring) Close() *dbus.Error { return nil }

// Unlock is a method of the service.
func (k *keyring) Unlock(objects []dbus.ObjectPath) ([]dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	return objects, noPrompt, nil
}

// itemOf returns the path of the item with these attributes.
func itemOf(attributes map[string]string) dbus.ObjectPath {
	return dbus.ObjectPath(fmt.Sprintf("/items/%x", attributes["service"]+"/"+attributes["username"]))
}

// SearchItems is a method of a collection.
func (k *keyring) SearchItems(attributes map[string]string) ([]dbus.ObjectPath, *dbus.Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.secrets[itemOf(attributes)]; !ok {
		return []dbus.ObjectPath{}, nil
	}
	return []dbus.ObjectPath{itemOf(attributes)}, nil
}

// CreateItem is a method of a collection.
func (k *keyring) CreateItem(properties map[string]dbus.Variant, secret storedSecret, _ bool) (dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	attributes, _ := properties["org.freedesktop.Secret.Item.Attributes"].Value().(map[string]string)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.secrets[itemOf(attributes)] = secret
	return itemOf(attributes), noPrompt, nil
}

// items are the secrets of a keyring as objects.
type items struct{ *keyring }

// GetSecret is a method of an item.
func (i items) GetSecret(m dbus.Message, _ dbus.ObjectPath) (storedSecret, *dbus.Error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.secrets[pathOf(m)], nil
}

// Delete is a method of an item.
func (i items) Delete(m dbus.Message) (dbus.ObjectPath, *dbus.Error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.secrets, pathOf(m))
	return noPrompt, nil
}

func pathOf(m dbus.Message) dbus.ObjectPath {
	path, _ := m.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	return path
}

// TestKeyring: a secret goes from a terminal to the keyring, and from there to one server.
func TestKeyring(t *testing.T) {
	t.Parallel()
	const secret = "sentinel-keyring-4711"
	env := []string{startKeyring(t), "XDG_STATE_HOME=" + t.TempDir()}
	mcpx := func(args ...string) (string, int) {
		t.Helper()
		return combined(t, "", append(environment(t), env...), binary, args...)
	}
	s := look(t, nil, env, "secret", "set", "work/key")
	s.see("secret work/key (not shown): ")
	s.typed(secret + "\r")
	s.see("stored work/key; use it as ${keyring:work/key}")
	if text := s.end(); strings.Contains(text, secret) {
		t.Errorf("the terminal shows the secret: %q", text)
	}
	s = look(t, nil, env, "secret", "set", "other")
	s.see("secret other (not shown): ")
	s.typed(ctrlC)
	if code := s.exitCode(); code != 130 {
		t.Errorf("Ctrl-C: exit code %d", code)
	}
	if text, _ := mcpx("secret", "list"); text != "work/key\n" {
		t.Errorf("list: %s", text)
	}
	user, other := mcptest.Upstream(t, "-token", "x"), mcptest.Upstream(t)
	user["env"].(map[string]string)["API_KEY"] = "${keyring:work/key}"
	config := map[string]any{"mcpServers": map[string]any{"user": user, "other": other}}
	p := start(t, config, options{env: env, flags: []string{"--log-level", "debug"}})
	p.initialize()
	if text := p.exec("user", "env", ""); !strings.Contains(text, "API_KEY="+secret) {
		t.Errorf("the server has no secret: %s", text)
	}
	if text := p.exec("other", "env", ""); strings.Contains(text, secret) {
		t.Errorf("another server has the secret: %s", text)
	}
	p.waitStderr("bad token x, bad key ***")
	if strings.Contains(p.errors(), secret) {
		t.Errorf("the log shows the secret: %s", p.errors())
	}
	if text, code := mcpx("secret", "delete", "work/key"); code != 0 || text != "deleted work/key\n" {
		t.Errorf("delete: %s", text)
	}
	if text, code := mcpx("check", writeConfig(t, config)); code != 1 || !strings.Contains(text, "${keyring:work/key} (used in env.API_KEY): not in the keyring; run mcpx secret set work/key") {
		t.Errorf("check without the secret: %d, %s", code, text)
	}
}
