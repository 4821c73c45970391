package replicas

import (
	"crypto/sha256"
	"encoding/base32"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/seal"
	"mcpx/server"
)

// sealedState is the state of a client session that a sealed ID contains. A replica needs
// nothing else to continue the session.
type sealedState struct {
	id     string // of the session, as its replicas know it
	sender [sha256.Size]byte
	until  time.Time // the ID is valid until then

	revision     string
	capabilities []byte
	clientInfo   []byte
}

const (
	sealedTime = 24 * time.Hour // an ID is valid for this time
	maxSealed  = 1024           // characters of the ID
	innerBytes = 26             // characters of sealedState.id, as rand.Text returns them
)

// sealID returns the ID that the client gets. If it would be too long, the capabilities that
// mcpx does not know are left out.
func sealID(box *seal.Box, s sealedState, view string) string {
	text := s.text()
	if seal.SealedLen(len(text)) > maxSealed {
		s.capabilities = knownCapabilities(s.capabilities)
		text = s.text()
	}
	return box.Seal(text, seal.Terms{Label: view, Until: s.until})
}

// text returns the state as a text: ID, sender, and an object with the rest.
func (s sealedState) text() []byte {
	b := append([]byte(s.id), s.sender[:]...)
	b = rawjson.AppendString(append(b, `{"revision":`...), s.revision)
	b = rawjson.AppendMember(b, "capabilities", s.capabilities)
	return append(rawjson.AppendMember(b, "clientInfo", s.clientInfo), '}')
}

// openID returns the text of an ID and its expiry; nil for an ID that mcpx has not made for
// this view, or that has expired.
func openID(box *seal.Box, id, view string) (text sealedText, until time.Time) {
	if len(id) > maxSealed {
		return nil, time.Time{}
	}
	text, until, err := box.Open(id, view)
	if err != nil || len(text) < innerBytes+sha256.Size {
		return nil, time.Time{}
	}
	return text, until
}

// sealedText is the text in a sealed ID. Only its first part is read for each request.
type sealedText []byte

func (t sealedText) id() string { return string(t[:innerBytes]) }

// state reads the whole text.
func (t sealedText) state(until time.Time) sealedState {
	object := t[innerBytes+sha256.Size:]
	s := sealedState{id: t.id(), sender: [sha256.Size]byte(t[innerBytes:]), until: until}
	s.capabilities, s.clientInfo = rawjson.Get(object, "capabilities"), rawjson.Get(object, "clientInfo")
	s.revision, _ = rawjson.String(rawjson.Get(object, "revision"))
	return s
}

// state returns the state of a client session that was just initialized.
func (c *sessionCopy) state() sealedState {
	s := stateOf(c.session.Client())
	s.id, s.sender, s.until = c.id, c.session.Sender(), c.until
	return s
}

// stateOf returns the part of the state that the client has declared.
func stateOf(client *server.Client) sealedState {
	program := client.Program()
	info := rawjson.AppendMember([]byte("{"), "name", rawjson.AppendString(nil, program.Name))
	info = append(rawjson.AppendMember(info, "version", rawjson.AppendString(nil, program.Version)), '}')
	return sealedState{revision: client.Revision(), capabilities: rawjson.OrObject(client.Capabilities()), clientInfo: info}
}

// logID returns the ID of a client that logs show, which is the same on all replicas. It is
// also the owner of the client's results, so it is long enough to be unique.
func logID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "http-" + base32.StdEncoding.EncodeToString(sum[:10])
}

// known are the capabilities that mcpx and its upstreams use, with their settings.
var known = []struct {
	name     string
	settings []string
}{
	{"roots", []string{"listChanged"}},
	{"sampling", []string{"tools", "context"}},
	{"elicitation", []string{"form", "url"}},
}

// knownCapabilities reduces capabilities to those in known. A setting that is not a bool
// becomes an empty object.
func knownCapabilities(capabilities []byte) []byte {
	b := []byte("{")
	for _, k := range known {
		declared := rawjson.Get(capabilities, k.name)
		if rawjson.IsNull(declared) {
			continue
		}
		settings := []byte("{")
		for _, name := range k.settings {
			switch value := rawjson.Get(declared, name); rawjson.Kind(value) {
			case 0, 'n':
			case 't', 'f':
				settings = rawjson.AppendMember(settings, name, value)
			default:
				settings = rawjson.AppendMember(settings, name, []byte("{}"))
			}
		}
		b = rawjson.AppendMember(b, k.name, append(settings, '}'))
	}
	return append(b, '}')
}
