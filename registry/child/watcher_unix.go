//go:build unix

package child

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rs/zerolog"
)

// Watcher controls a small process that outlives mcpx by a moment. When mcpx ends
// for any reason, the watcher's stdin ends, and it kills the process groups that are
// left. A parent-death signal would miss grandchildren.
type Watcher struct {
	log   zerolog.Logger
	id    string // prefix of the marks of its children
	start sync.Once
	mu    sync.Mutex
	stdin io.WriteCloser // nil if it could not be started
}

// watcherVariable makes a process the watcher; its value is the mark to search for.
// groupsVariable has the groups to kill, if mcpx is gone already.
const (
	watcherVariable = "MCPX_WATCHER"
	groupsVariable  = "MCPX_WATCHER_GROUPS"
)

// waiter is a shell script that waits for the end of mcpx; a shell needs a tenth of the
// memory of mcpx. It keeps the list of groups as watch does. When its stdin ends with
// groups left, it executes mcpx, which kills them. If mcpx's file is gone, the script
// kills the groups itself.
const waiter = `l=" "
while read -r g; do
	case $g in
	-*) g=${g#-}; case $l in *" $g "*) l="${l%%" $g "*} ${l#*" $g "}" ;; esac ;;
	*) l="$l$g " ;;
	esac
done
[ "$l" = " " ] && exit 0
export ` + groupsVariable + `="$l"
[ -x "$0" ] && exec "$0"
for g in $l; do kill -9 "-$g"; done`

const shell = "/bin/sh"

// NewWatcher returns a Watcher whose process starts with the first child. main must
// call WatchIfAsked before anything else.
func NewWatcher(log zerolog.Logger) *Watcher { return &Watcher{log: log, id: rand.Text()} }

func (w *Watcher) mark() string {
	if w == nil {
		return "unwatched"
	}
	return w.id
}

// WatchIfAsked turns the process into a watcher if it was started as one, and
// then does not return.
func WatchIfAsked() {
	mark := os.Getenv(watcherVariable)
	if mark == "" {
		return
	}
	groups, ended := os.LookupEnv(groupsVariable)
	if ended {
		watch(strings.NewReader(strings.ReplaceAll(groups, " ", "\n")), mark)
	} else {
		debug.FreeOSMemory()
		watch(os.Stdin, mark)
	}
	os.Exit(0)
}

// watch reads the process groups that start (positive numbers) and end (negative
// numbers), and kills those that are left when the input ends.
func watch(r io.Reader, mark string) {
	groups := map[int]bool{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		group, err := strconv.Atoi(lines.Text())
		switch {
		case err != nil:
		case group > 0:
			groups[group] = true
		default:
			delete(groups, -group)
		}
	}
	for group := range groups { // so that no process ends or starts another during the search
		_ = syscall.Kill(-group, syscall.SIGSTOP)
	}
	var left []strays
	for group := range groups {
		left = append(left, findStrays(group, mark))
	}
	for group := range groups {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
	for _, s := range left {
		s.kill()
	}
	const noRoot = -1 // processes that lost their parents are found by the mark
	findStrays(noRoot, mark).kill()
}

func (w *Watcher) add(group int)    { w.send(group) }
func (w *Watcher) remove(group int) { w.send(-group) }

// send sends a line to the watcher's process, which starts with the first one.
func (w *Watcher) send(group int) {
	if w == nil {
		return
	}
	w.start.Do(func() {
		var err error
		if w.stdin, err = w.run(); err != nil {
			w.log.Warn().Err(err).Msg("could not start the watcher; children survive if mcpx is killed")
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stdin == nil {
		return
	}
	if _, err := fmt.Fprintf(w.stdin, "%d\n", group); err != nil {
		w.log.Warn().Err(err).Msg("the watcher has ended; children survive if mcpx is killed")
		w.stdin = nil
	}
}

// run starts the process and returns its stdin, nil if it fails.
func (w *Watcher) run() (io.WriteCloser, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(shell, "-c", waiter, self)
	if _, err := os.Stat(shell); err != nil {
		cmd = exec.Command(self)
	}
	cmd.Env = []string{watcherVariable + "=" + w.id, "GOMAXPROCS=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that signals to mcpx's group do not reach it
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait() }()
	return stdin, nil
}

// Close ends the watcher. Nothing is left for it to kill if every child was
// stopped before.
func (w *Watcher) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stdin != nil {
		_ = w.stdin.Close()
		w.stdin = nil
	}
}
