package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/godbus/dbus/v5"
)

// hasKeyring reports whether there may be a session bus, which leads to the keyring.
// Without one, the bus library would try to start one and wait for that.
func hasKeyring() bool {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" && address != "autolaunch:" {
		path, isPath := strings.CutPrefix(address, "unix:path=")
		if !isPath || strings.ContainsAny(path, ",;%") { // more than a path, which the bus library reads
			return true
		}
		_, err := os.Stat(path)
		return !errors.Is(err, fs.ErrNotExist)
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(fmt.Sprintf("/run/user/%d/%s", os.Getuid(), name)); err == nil {
			return true
		}
	}
	return false
}

// isUnreachable reports whether the session bus does not run, or has no keyring.
func isUnreachable(err error) bool {
	if _, isNetwork := errors.AsType[*net.OpError](err); isNetwork {
		return true
	}
	bus, _ := errors.AsType[dbus.Error](err)
	return bus.Name == "org.freedesktop.DBus.Error.ServiceUnknown" || bus.Name == "org.freedesktop.DBus.Error.NameHasNoOwner"
}
