package policy

import (
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/source"
	"halos.dev/halo/compiler/tape"
)

// Memory has what an earlier run of the same program read. It is called concurrently.
type Memory interface {
	// Document returns the text that an earlier run kept for a file whose bytes are still the same, with the size and digest of those; it is then not read again.
	Document(file string) (f source.File, text string, ok bool)
	// KeepDocument keeps a text for a file.
	KeepDocument(file string, text []byte)
}

// store writes a document without findings as a text; ok is false for one that is always read.
func store(doc any) (text []byte, ok bool) {
	t := reel{tape.Writer(make([]byte, 0, 512)), 0}
	t.document(&doc)
	return t.Text()
}

// restore reads what store wrote; index is the index that the file has now.
func restore(text, name string, index int) (doc any, ok bool) {
	t := reel{tape.Reader(text), index}
	t.document(&doc)
	if p, is := doc.(*PackFile); is {
		p.Name, p.File = PackName(name), index
	}
	return doc, t.Done()
}

// reel is a tape for documents of one file.
type reel struct {
	*tape.Tape
	// file is the index of the file that places lie in.
	file int
}

func (t reel) pos(p *diag.Pos) {
	line, col := uint64(p.Line()), uint64(p.Col())
	if t.Num(&line); line > 0 {
		t.Num(&col)
	}
	switch {
	case !t.Reading():
		// The document lies where it lies: only its text has no file.
	case line == 0:
		*p = 0
	default:
		*p = diag.NewPos(t.file, int(line), int(col))
	}
}

func (t reel) text(s *source.Str) {
	t.pos(&s.Pos)
	if s.Pos.IsValid() {
		t.Str(&s.V)
	}
}

func (t reel) bool(b *source.Bool) {
	t.pos(&b.Pos)
	t.Mark(&b.V)
}

func (t reel) whole(i *source.Int) {
	t.pos(&i.Pos)
	t.Int(&i.V)
}

func (t reel) texts(l *source.Strs) {
	t.pos(&l.Pos)
	tape.Each(t.Tape, &l.Items, t.text)
}

func (t reel) pairs(l *[]source.Pair) {
	tape.Each(t.Tape, l, func(p *source.Pair) {
		t.text(&p.Key)
		t.text(&p.Value)
	})
}

func (t reel) hosts(l *Hosts) {
	t.pos(&l.Pos)
	tape.Each(t.Tape, &l.Items, func(h *Host) {
		t.pos(&h.Pos)
		s := h.Pattern.String()
		t.Str(&s)
		if t.Reading() {
			var problem *host.Problem
			// The rules of a deny list take every entry of an allow list.
			h.Pattern, problem = host.ParseDenyPattern(s)
			if problem != nil {
				t.Fail()
			}
		}
	})
}

func (t reel) paths(l *FilePaths, parse func(string) (fspath.Path, *fspath.Problem)) {
	t.pos(&l.Pos)
	tape.Each(t.Tape, &l.Items, func(p *FilePath) {
		t.pos(&p.Pos)
		s := p.Path.String()
		t.Str(&s)
		if t.Reading() {
			var problem *fspath.Problem
			p.Path, problem = parse(s)
			if problem != nil {
				t.Fail()
			}
		}
	})
}

// Documents that are stored begin with one of these.
const (
	storedProfile = iota + 1
	storedRing
	storedUnit
	storedPack
)

// document walks a document of one of the kinds that a large repo has many of.
func (t reel) document(doc *any) {
	var kind uint64
	switch (*doc).(type) {
	case *Profile:
		kind = storedProfile
	case *Ring:
		kind = storedRing
	case *Unit:
		kind = storedUnit
	case *PackFile:
		kind = storedPack
	}
	t.Num(&kind)
	switch kind {
	case storedProfile:
		p := made[Profile](t, doc)
		t.header(&p.Header, "Profile")
		t.text(&p.Extends)
		t.body(&p.Body)
	case storedRing:
		r := made[Ring](t, doc)
		t.header(&r.Header, "Ring")
		t.whole(&r.Order)
		for _, s := range []*source.Str{&r.Profile, &r.Release, &r.Posture, &r.VersionGate} {
			t.text(s)
		}
		t.membership(&r.Membership)
	case storedUnit:
		u := made[Unit](t, doc)
		t.header(&u.Header, "Unit")
		t.membership(&u.Membership)
		t.texts(&u.Rings)
		t.text(&u.Parent)
		t.body(&u.Overlay)
	case storedPack:
		p := made[PackFile](t, doc)
		if p.Bad {
			t.Fail()
		}
		t.Mark(&p.CRLF)
	default:
		t.Fail()
	}
}

// made returns the document that is written, or a new one to read into.
func made[T any](t reel, doc *any) *T {
	if t.Reading() {
		*doc = new(T)
	}
	return (*doc).(*T)
}

func (t reel) header(h *Header, kind string) {
	if h.Bad || len(h.lacks) > 0 {
		t.Fail()
	}
	h.Kind = kind
	t.text(&h.Name)
	t.pos(&h.Pos)
}

func (t reel) membership(m *Membership) {
	t.texts(&m.Users)
	t.texts(&m.Groups)
	t.whole(&m.Percent)
	t.bool(&m.Default)
	t.bool(&m.OptIn)
}

func (t reel) body(b *Body) {
	tape.Each(t.Tape, &b.Harnesses, func(p *Pin) {
		// Overrides are values of any type; a document with them is read.
		if p.OverridesPos.IsValid() {
			t.Fail()
		}
		t.text(&p.Harness)
		t.text(&p.Version)
		t.text(&p.Model)
	})
	t.text(&b.Models.Default)
	t.texts(&b.Models.Allowed)
	t.bool(&b.Models.Enforce)
	t.text(&b.Permissions.Mode)
	t.texts(&b.Permissions.Allow)
	t.texts(&b.Permissions.Ask)
	t.texts(&b.Permissions.Deny)
	t.bool(&b.Permissions.DisableBypass)
	t.bool(&b.Permissions.SandboxRequired)
	t.text(&b.Sandbox.Mode)
	t.Str(&b.Sandbox.ModeField)
	t.paths(&b.Sandbox.WritableRoots, fspath.ParseRoot)
	t.paths(&b.Sandbox.ProtectedPaths, fspath.ParseProtected)
	t.text(&b.Sandbox.Policy)
	t.text(&b.Egress.Default)
	t.hosts(&b.Egress.AllowedDomains)
	t.texts(&b.Egress.Presets)
	t.hosts(&b.Egress.DeniedDomains)
	t.bool(&b.MCP.ManagedOnly)
	tape.Each(t.Tape, &b.MCP.Servers, func(s *Server) {
		t.text(&s.Name)
		t.text(&s.URL)
		t.texts(&s.Command)
		t.pairs(&s.Headers)
		t.pos(&s.Pos)
	})
	t.pos(&b.MCP.ServersPos)
	t.texts(&b.MCP.Denied)
	t.bool(&b.Hooks.ManagedOnly)
	tape.Each(t.Tape, &b.Hooks.Items, func(h *Hook) {
		t.text(&h.Event)
		t.text(&h.Matcher)
		t.text(&h.Command)
		t.pos(&h.Pos)
	})
	t.pos(&b.Hooks.Pos)
	t.bool(&b.Telemetry.Enabled)
	t.text(&b.Telemetry.OTLPEndpoint)
	t.text(&b.Telemetry.Protocol)
	t.bool(&b.Telemetry.LogPrompts)
	t.pairs(&b.Telemetry.Attributes)
	t.text(&b.Instructions)
	t.pairs(&b.Env)
	tape.Each(t.Tape, &b.Require, func(r *Requirement) {
		t.text(&r.Concept)
		t.text(&r.Harness)
		t.texts(&r.OS)
		t.text(&r.Grade)
		t.pos(&r.Pos)
	})
}
