package live

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/policy"
	"mcpx/internal/tasks"
	"mcpx/registry/child"
	"mcpx/registry/link"
	"mcpx/registry/lists"
	"mcpx/registry/upstream"
)

// Supervisor starts one upstream, and starts it again when it dies. While it runs, only Run
// and the Host change the state of the upstream.
type Supervisor struct {
	group    *Group
	base     *Supervisor     // of the upstream in the catalog; itself if it has no owner
	owner    string          // the client or caller whose own upstream it is; empty: it is in the catalog
	client   upstream.Client // the owner if it is a client
	account  atomic.Pointer[Account]
	log      zerolog.Logger
	upstream atomic.Pointer[Upstream] // its newest state; the catalog has it too, unless another supervisor replaces this one
	ctx      context.Context          // ends when the supervisor must end
	retire   context.CancelFunc
	wake     tasks.Signal // a call needs the upstream, which does not run
	hurry    tasks.Signal // a call waits for the start, which must not wait for its turn
	signing  tasks.Signal // a person has begun to sign in

	isHeld     atomic.Bool                             // a person has stopped it
	endAttempt atomic.Pointer[context.CancelCauseFunc] // ends the current start or session

	endFill   func() // lets the next upstream fill the cache; nil unless this start only fills it
	isAwaited bool   // a request waits for a start that was only to fill the cache

	hasServed atomic.Bool // a call has succeeded since the last session ended

	known    atomic.Pointer[known] // which revision it speaks
	unsaved  atomic.Bool           // the lists have changed since they were saved
	saving   sync.Mutex            // one save at a time
	refresh  Changes               // lists that have changed, as the upstream reported
	observer ListObserver          // may be nil

	intake     *link.Intake                 // of all its sessions
	ownerSlots *slots                       // for upstreams of owners that start
	stderr     atomic.Pointer[child.Stderr] // of the newest child; nil before its first start, and for a remote upstream
}

// New returns a supervisor that does not run, for an upstream in the catalog.
func New(g *Group, c *config.Upstream) *Supervisor { return newSupervisor(g, c, g.views(c)) }

func newSupervisor(g *Group, c *config.Upstream, v lists.Views) *Supervisor {
	s := &Supervisor{
		group: g,
		log:   g.options.Log.With().Str("server", c.Name).Logger(),
		wake:  tasks.NewSignal(),
		hurry: tasks.NewSignal(),

		signing: tasks.NewSignal(),
		refresh: NewChanges(),
		intake:  link.NewIntake(g.options.MessageBytes),

		ownerSlots: newSlots(g.options.ConnectsAtOnce),
	}
	if g.options.ListObserver != nil {
		s.observer = g.options.ListObserver()
	}
	s.base = s
	s.setAccount(c)
	s.known.Store(&known{})
	s.ctx, s.retire = context.WithCancel(g.ctx)
	s.upstream.Store(&Upstream{
		Name: c.Name, Description: c.Description, State: Starting, Lists: lists.New(c, v), Config: c, Supervisor: s, changed: make(chan struct{}),
		parts: new(Kept[policy.Rules, *Upstream]),
	})
	return s
}

// For returns a supervisor that does not run, for the upstream of one owner. client is nil if
// the owner is a caller. The new supervisor shares the memory limit of s, and what is known
// about the revision.
func (s *Supervisor) For(c *config.Upstream, owner string, client upstream.Client) *Supervisor {
	own := newSupervisor(s.group, c, s.Upstream().Views())
	own.base, own.owner, own.client = s, owner, client
	own.log = own.log.With().Str("isolation", string(c.Isolation)).Logger()
	if client != nil && own.Upstream().ListsPerOwner() {
		own.Upstream().Inherit(s.Upstream())
	}
	return own
}

// Config returns the upstream's config, which a reload may change.
func (s *Supervisor) Config() *config.Upstream { return s.Upstream().Config }

// Upstream returns the newest state of the upstream.
func (s *Supervisor) Upstream() *Upstream { return s.upstream.Load() }

// Owner returns the client or caller whose own upstream it is; empty: it is in the catalog.
func (s *Supervisor) Owner() string { return s.owner }

// Base returns the supervisor of the upstream in the catalog; itself if it has no owner.
func (s *Supervisor) Base() *Supervisor { return s.base }

// Account returns what signs in to the upstream; nil if it needs no account.
func (s *Supervisor) Account() Account { return *s.account.Load() }

// setAccount sets the account for a config.
func (s *Supervisor) setAccount(c *config.Upstream) {
	var a Account
	if s.group.options.Account != nil {
		a = s.group.options.Account(c)
	}
	s.account.Store(&a)
}

// Change replaces the state of the upstream. Only the Host calls it, one call at a time. The
// Host then stores the new state where waiting goroutines look, and calls wake.
func (s *Supervisor) Change(change func(u *Upstream)) (now *Upstream, wake func()) {
	old := s.Upstream()
	u := *old
	u.changed, u.parts = make(chan struct{}), new(Kept[policy.Rules, *Upstream])
	change(&u)
	s.upstream.Store(&u)
	return &u, func() { close(old.changed) }
}

// publish changes the state of the upstream, and shows it to clients.
func (s *Supervisor) publish(change func(u *Upstream)) { s.group.host.Publish(s, change) }

// NeedsLists reports whether an owner's upstream that uses the lists of the shared session needs
// its own when c becomes its config.
func (s *Supervisor) NeedsLists(c *config.Upstream) bool {
	return s.owner != "" && !s.Upstream().ListsPerOwner() && listsPerOwner(c, s.group.views(c))
}

// Relist reads all lists of a running upstream again. Calls wait for them if the views are
// strict.
func (s *Supervisor) Relist() { s.refresh.Note(upstream.Listable...) }

// Start starts an upstream that does not run.
func (s *Supervisor) Start() { s.wake.Notify() }

// Hurry makes a start that is queued begin at once.
func (s *Supervisor) Hurry() { s.hurry.Notify() }

// NoteSignIn reports to the supervisor that a person has begun to sign in.
func (s *Supervisor) NoteSignIn() { s.signing.Notify() }

// Retire ends the supervisor. Calls in flight may finish.
func (s *Supervisor) Retire() { s.retire() }

// Stderr returns the last lines of stderr of the newest child.
func (s *Supervisor) Stderr() []string {
	if stderr := s.stderr.Load(); stderr != nil {
		return stderr.Lines()
	}
	return nil
}
