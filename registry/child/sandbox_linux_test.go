package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mcpx/config"
)

// tryVariable makes the test binary a program that tries something and prints the error.
const tryVariable = "MCPX_TEST_TRY"

func TestMain(m *testing.M) {
	SandboxIfAsked()
	if os.Getenv(tryVariable) != "" {
		try(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// try runs an attempt, or starts a grandchild that does.
func try(args []string) {
	if args[0] == "grandchild" {
		cmd := exec.Command("/proc/self/exe", args[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Println("the grandchild failed:", err)
		}
		return
	}
	if err := attempts[args[0]](args[1], args[2]); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("done")
}

// attempts are what a server may try. inside may be written, outside may not; outside has
// the file "file".
var attempts = map[string]func(inside, outside string) error{
	"write inside":  func(inside, _ string) error { return os.WriteFile(inside+"/new", nil, 0o600) },
	"temporary":     func(_, _ string) error { _, err := os.CreateTemp("", "x"); return err },
	"/dev/null":     func(_, _ string) error { return os.WriteFile("/dev/null", nil, 0o600) },
	"read outside":  func(_, outside string) error { _, err := os.ReadFile(outside + "/file"); return err },
	"move inside":   func(inside, _ string) error { return moveInside(inside) },
	"write outside": func(_, outside string) error { return os.WriteFile(outside+"/new", nil, 0o600) },
	"append": func(_, outside string) error {
		_, err := os.OpenFile(outside+"/file", os.O_APPEND|os.O_WRONLY, 0)
		return err
	},
	"truncate":      func(_, outside string) error { return os.Truncate(outside+"/file", 0) },
	"remove":        func(_, outside string) error { return syscall.Unlink(outside + "/file") },
	"make a folder": func(_, outside string) error { return os.Mkdir(outside+"/folder", 0o700) },
	"move out":      func(inside, outside string) error { return os.Rename(inside+"/own", outside+"/own") },
	"move in":       func(inside, outside string) error { return os.Rename(outside+"/file", inside+"/file") },
	"hard link":     func(inside, outside string) error { return os.Link(outside+"/file", inside+"/link") },
	"symbolic link": func(inside, outside string) error {
		if err := os.Symlink(outside+"/file", inside+"/symlink"); err != nil {
			return nil // the link must be allowed: it is inside
		}
		return os.WriteFile(inside+"/symlink", []byte("changed"), 0o600)
	},
	"link to a folder": func(inside, outside string) error {
		if err := os.Symlink(outside, inside+"/folder"); err != nil {
			return nil
		}
		return os.WriteFile(inside+"/folder/new", nil, 0o600)
	},
	"/proc/self/root": func(_, outside string) error { return os.WriteFile("/proc/self/root"+outside+"/new", nil, 0o600) },
	"/proc/self/cwd": func(_, outside string) error {
		return os.WriteFile("/proc/self/cwd/../"+filepath.Base(outside)+"/new", nil, 0o600)
	},
	"root of mcpx": func(_, outside string) error {
		return os.WriteFile("/proc/"+os.Getenv("MCPX_TEST_PARENT")+"/root"+outside+"/new", nil, 0o600)
	},
	"file of mcpx": func(_, _ string) error {
		return os.WriteFile("/proc/"+os.Getenv("MCPX_TEST_PARENT")+"/fd/"+os.Getenv("MCPX_TEST_FILE"), []byte("changed"), 0o600)
	},
	"memory of mcpx": func(_, _ string) error {
		_, err := os.OpenFile("/proc/"+os.Getenv("MCPX_TEST_PARENT")+"/mem", os.O_RDWR, 0)
		return err
	},
	"own limits":            func(_, _ string) error { return setLimit(0) },
	"own priority":          func(_, _ string) error { return setPriority(unix.PRIO_PROCESS, 0) },
	"own CPUs":              func(_, _ string) error { return setCPUs(0) },
	"limits of mcpx":        func(_, _ string) error { return setLimit(mcpx()) },
	"priority of mcpx":      func(_, _ string) error { return setPriority(unix.PRIO_PROCESS, mcpx()) },
	"priority of its group": func(_, _ string) error { return setPriority(unix.PRIO_PGRP, groupOfMcpx()) },
	"priority of its user":  func(_, _ string) error { return setPriority(unix.PRIO_USER, 0) },
	"CPUs of mcpx":          func(_, _ string) error { return setCPUs(mcpx()) },
	"scheduler of mcpx":     func(_, _ string) error { return setScheduler(mcpx()) },
	"IO priority of mcpx":   func(_, _ string) error { return setIOPriority(ioprioWhoProcess, mcpx()) },
	"IO of its user":        func(_, _ string) error { return setIOPriority(ioprioWhoUser, os.Getuid()) },
	"TCP":                   func(_, _ string) error { return dial("tcp", os.Getenv("MCPX_TEST_TCP"), false) },
	"MPTCP":                 func(_, _ string) error { return dial("tcp", os.Getenv("MCPX_TEST_TCP"), true) },
	"UDP":                   func(_, _ string) error { return dial("udp", "127.0.0.1:9", false) },
	"unix":                  func(_, outside string) error { return dial("unix", outside+"/socket", false) },
	"listen": func(_, _ string) error {
		_, err := net.Listen("tcp", "127.0.0.1:0")
		return err
	},
	"socket pair": func(_, _ string) error {
		_, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		return err
	},
}

// mcpx returns the process ID of the test, which plays the part of mcpx.
func mcpx() int {
	pid, _ := strconv.Atoi(os.Getenv("MCPX_TEST_PARENT"))
	return pid
}

// groupOfMcpx returns its process group.
func groupOfMcpx() int {
	group, _ := unix.Getpgid(mcpx())
	return group
}

// The following functions set values that the processes already have, so that an attempt that
// succeeds does no harm.

func setLimit(pid int) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_CPU, nil, &limit); err != nil {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_CPU, &limit, nil)
}

func setPriority(which, who int) error {
	priority, err := unix.Getpriority(which, who)
	if err != nil {
		return err
	}
	return unix.Setpriority(which, who, 20-priority) // the system call returns 20 minus the priority
}

func setCPUs(pid int) error {
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &cpus); err != nil {
		return err
	}
	return unix.SchedSetaffinity(pid, &cpus)
}

func setScheduler(pid int) error {
	attributes, err := unix.SchedGetAttr(pid, 0)
	if err != nil {
		return err
	}
	return unix.SchedSetAttr(pid, attributes, 0)
}

// ioprioWhoProcess is IOPRIO_WHO_PROCESS of linux/ioprio.h.
const ioprioWhoProcess = 1

func setIOPriority(which, who int) error {
	priority, _, failed := unix.Syscall(unix.SYS_IOPRIO_GET, uintptr(which), uintptr(who), 0)
	if failed == 0 {
		_, _, failed = unix.Syscall(unix.SYS_IOPRIO_SET, uintptr(which), uintptr(who), priority)
	}
	if failed != 0 {
		return failed
	}
	return nil
}

func moveInside(inside string) error {
	err := os.Mkdir(inside+"/sub", 0o700)
	return errors.Join(err, os.Rename(inside+"/own", inside+"/sub/own"))
}

func dial(network, address string, multipath bool) error {
	d := net.Dialer{}
	d.SetMultipathTCP(multipath)
	c, err := d.DialContext(context.Background(), network, address)
	if err == nil {
		err = c.Close()
	}
	return err
}

// needLandlock skips a test on a kernel without Landlock.
func needLandlock(t *testing.T) {
	t.Helper()
	if version := landlockVersion(); version < neededLandlock {
		fmt.Fprintf(os.Stderr, "\n*** THE SANDBOX WAS NOT TESTED: this kernel has version %d of Landlock ***\n\n", version)
		t.Skipf("THE SANDBOX WAS NOT TESTED: this kernel has version %d of Landlock", version)
	}
}

// tryIn runs an attempt in a sandbox and returns what it printed.
func tryIn(t *testing.T, s *config.Sandbox, words ...string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "box-") // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	inside, outside := folder+"/inside", folder+"/outside"
	for _, path := range []string{inside, outside} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.Create(outside + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	if _, err := kept.WriteString("unchanged"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inside+"/own", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	server := listen(t, outside+"/socket")
	c := &config.Upstream{
		Command: "/proc/self/exe", Args: append(words, inside, outside), Dir: inside, Sandbox: s,
		Env: map[string]string{
			tryVariable: "1", "MCPX_TEST_PARENT": strconv.Itoa(os.Getpid()), "MCPX_TEST_FILE": strconv.Itoa(int(kept.Fd())), "MCPX_TEST_TCP": server,
			"GOCOVERDIR": inside, "GORACE": "atexit_sleep_ms=0",
		},
	}
	said := output(t, c)
	if text, err := os.ReadFile(outside + "/file"); err != nil || string(text) != "unchanged" {
		t.Errorf("the file outside is %q, %v", text, err)
	}
	entries, err := os.ReadDir(outside)
	if names := fmt.Sprint(entries); err != nil || len(entries) != 2 {
		t.Errorf("the folder outside has %s, %v", names, err)
	}
	return said
}

// listen accepts connections on a TCP port, which it returns, and on a socket.
func listen(t *testing.T, socket string) string {
	t.Helper()
	var address string
	for network, at := range map[string]string{"tcp": "127.0.0.1:0", "unix": socket} {
		l, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if network == "tcp" {
			address = l.Addr().String()
		}
	}
	return address
}

// output starts a child and returns what it prints.
func output(t *testing.T, c *config.Upstream) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(c, nil, [3]*os.File{null, w, w})
	_, _ = w.Close(), null.Close()
	if err != nil {
		_ = r.Close()
		return err.Error()
	}
	text, err := io.ReadAll(r)
	_ = r.Close()
	if err != nil {
		t.Error(err)
	}
	p.Stop(func() {})
	if p.sandbox.temp != "" {
		if _, err := os.Stat(p.sandbox.temp); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the temporary folder is left: %v", err)
		}
	}
	return strings.TrimSpace(string(text))
}

// A child and its descendants write only where they may.
func TestSandboxFiles(t *testing.T) {
	needLandlock(t)
	allowed := []string{"write inside", "temporary", "/dev/null", "read outside", "move inside", "TCP", "socket pair"}
	denied := []string{
		"write outside", "append", "truncate", "remove", "make a folder", "move out", "move in", "hard link", "symbolic link",
		"link to a folder", "/proc/self/root", "/proc/self/cwd", "root of mcpx", "file of mcpx", "memory of mcpx",
	}
	for _, who := range [][]string{{}, {"grandchild"}} {
		for _, name := range slices.Concat(allowed, denied) {
			t.Run(strings.Join(append(who, name), " "), func(t *testing.T) {
				t.Parallel()
				said := tryIn(t, &config.Sandbox{Write: []string{"."}, Network: true}, append(who, name)...)
				isDenied := strings.HasSuffix(said, "permission denied") || strings.HasSuffix(said, "invalid cross-device link")
				if slices.Contains(allowed, name) && said != "done" || slices.Contains(denied, name) && !isDenied {
					t.Errorf("%s", said)
				}
			})
		}
	}
}

// The same attempts succeed without a sandbox, so that the test above proves something.
func TestAttemptsSucceedWithoutSandbox(t *testing.T) {
	for _, name := range append([]string{"TCP", "MPTCP", "UDP", "unix", "listen", "write inside", "read outside"}, othersProcesses...) {
		t.Run(name, func(t *testing.T) {
			if said := tryIn(t, nil, name); said != "done" {
				t.Errorf("%s", said)
			}
		})
	}
}

// Without the network, no socket can be created.
func TestSandboxNetwork(t *testing.T) {
	needLandlock(t)
	for _, who := range [][]string{{}, {"grandchild"}} {
		for name, isDenied := range map[string]bool{"TCP": true, "MPTCP": true, "UDP": true, "unix": true, "listen": true, "socket pair": false, "write inside": false, "write outside": true} {
			t.Run(strings.Join(append(who, name), " "), func(t *testing.T) {
				t.Parallel()
				said := tryIn(t, &config.Sandbox{Write: []string{"."}}, append(who, name)...)
				if isDenied && !strings.HasSuffix(said, "permission denied") || !isDenied && said != "done" {
					t.Errorf("%s", said)
				}
			})
		}
	}
}

// TestSandboxProcesses: with and without the network, a child can change its own limits and
// priorities, but not those of mcpx or of other processes.
func TestSandboxProcesses(t *testing.T) {
	needLandlock(t)
	own := []string{"own limits", "own priority", "own CPUs"}
	for _, network := range []bool{true, false} {
		for _, name := range slices.Concat(own, othersProcesses) {
			t.Run(fmt.Sprintf("%s, network %t", name, network), func(t *testing.T) {
				t.Parallel()
				want := "operation not permitted"
				if slices.Contains(own, name) {
					want = "done"
				}
				if said := tryIn(t, &config.Sandbox{Write: []string{"."}, Network: network}, name); said != want {
					t.Errorf("got %q, want %q", said, want)
				}
			})
		}
	}
}

// othersProcesses are the attempts that change processes other than the child.
var othersProcesses = []string{
	"limits of mcpx", "priority of mcpx", "priority of its group", "priority of its user", "CPUs of mcpx", "scheduler of mcpx",
	"IO priority of mcpx", "IO of its user",
}

// TestSandboxOfAnOrdinaryUser runs the tests of the sandbox again without the rights of root.
func TestSandboxOfAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("the tests of the sandbox have run as an ordinary user")
		return
	}
	const nobody = 65534
	folder, err := os.MkdirTemp("", "mcpx-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.WriteFile(folder+"/test", program, 0o700), os.Chown(folder+"/test", nobody, nobody), os.Chown(folder, nobody, nobody))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), folder+"/test", "-test.run", "^TestSandbox(Files|Network|Processes)$", "-test.v")
	cmd.Dir, cmd.Env = folder, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "TMPDIR=" + folder, "GOCOVERDIR=" + folder}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "--- PASS: TestSandboxProcesses") {
		t.Errorf("%v\n%s", err, said)
	}
}

// A kernel that cannot restrict a child is a reason not to start it.
func TestSandboxIsRefused(t *testing.T) {
	version := landlockVersion
	t.Cleanup(func() { landlockVersion = version })
	for kernel, want := range map[int]string{
		0: `the sandbox does not work here: the kernel has no Landlock, and version 3 is needed (Linux 6.2 or later); remove "sandbox", or set "best_effort": true in it`,
		2: `the sandbox does not work here: the kernel has only version 2 of Landlock, and version 3 is needed (Linux 6.2 or later); remove "sandbox", or set "best_effort": true in it`,
	} {
		landlockVersion = func() int { return kernel }
		if said := tryIn(t, &config.Sandbox{Write: []string{"."}, Network: true}, "write inside"); said != want {
			t.Errorf("got  %s\nwant %s", said, want)
		}
		if said := tryIn(t, &config.Sandbox{Write: []string{"."}, Network: true, BestEffort: true}, "write inside"); said != "done" {
			t.Errorf("best effort: %s", said)
		}
		// What the kernel can do is done.
		if said := tryIn(t, &config.Sandbox{Write: []string{"."}, BestEffort: true}, "TCP"); !strings.HasSuffix(said, "permission denied") {
			t.Errorf("best effort: %s", said)
		}
	}
}

func TestSandboxStartErrors(t *testing.T) {
	needLandlock(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	folder := t.TempDir()
	if err := os.Symlink("/", folder+"/root"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, command, write, want string }{
		{"no folder", "true", "none", "sandbox.write: none does not exist; create it"},
		{"everything", "true", "/", `sandbox.write: / is /, which is no sandbox; set "cwd", or name a smaller folder`},
		{"everything by a link", "true", "root", `sandbox.write: root is /, which is no sandbox; set "cwd", or name a smaller folder`},
		{"the home folder", "true", home, "sandbox.write: " + home + " is " + home + `, which is no sandbox; set "cwd", or name a smaller folder`},
		{"no program", "/nowhere/none", ".", `command "/nowhere/none" does not exist; check its path`},
		{"a folder", "/usr", ".", `command "/usr" is a folder, not a program; give the path of the program in it`},
		{"no executable", "/etc/passwd", ".", `command "/etc/passwd" may not be executed; check its permissions`},
		{"fine", "true", ".", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &config.Upstream{Command: test.command, Dir: folder, Sandbox: &config.Sandbox{Write: []string{test.write}, Network: true}}
			if got := output(t, c); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
