package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long the browser may take for one answer. It is only waited for when something is wrong.
const patience = 2 * time.Minute

// chrome is a running browser, spoken to over a pair of pipes in the DevTools protocol.
type chrome struct {
	to     *os.File
	mu     sync.Mutex
	last   int
	wait   map[int]chan message
	events map[string]func(message)
	gone   chan struct{}
}

type message struct {
	ID      int             `json:"id"`
	Session string          `json:"sessionId"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct{ Message string }
}

// open starts a browser that ends with the test.
func open(t *testing.T, program string) *chrome {
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// The pages are made by the test, so no sandbox is needed, and where it has no user namespaces or runs as root, none can be made.
	cmd := exec.CommandContext(t.Context(), program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
		"--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	c := &chrome{to: ourOut, wait: map[int]chan message{}, events: map[string]func(message){}, gone: make(chan struct{})}
	go c.read(ourIn)
	t.Cleanup(func() {
		c.call("", "Browser.close", nil, nil)
		ourOut.Close()
		cmd.Wait()
		ourIn.Close()
	})
	return c
}

func (c *chrome) read(from *os.File) {
	defer close(c.gone)
	in := bufio.NewReader(from)
	for {
		data, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(bytes.TrimSuffix(data, []byte{0}), &m) != nil {
			return
		}
		c.mu.Lock()
		ch, on := c.wait[m.ID], c.events[m.Session]
		delete(c.wait, m.ID)
		c.mu.Unlock()
		switch {
		case m.ID != 0 && ch != nil:
			ch <- m
		case m.ID == 0 && on != nil:
			on(m)
		}
	}
}

// call sends a command and reads its result into out, when that is not nil.
func (c *chrome) call(session, method string, params, out any) error {
	if params == nil {
		params = map[string]any{}
	}
	ch := make(chan message, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.wait[id] = ch
	c.mu.Unlock()
	data, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{id, session, method, params})
	if err != nil {
		return err
	}
	if _, err := c.to.Write(append(data, 0)); err != nil {
		return err
	}
	select {
	case m := <-ch:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if out != nil {
			return json.Unmarshal(m.Result, out)
		}
		return nil
	case <-c.gone:
		return errors.New("the browser is gone")
	case <-time.After(patience):
		return fmt.Errorf("%s: no answer", method)
	}
}

// tab is a page of the browser.
type tab struct {
	*chrome
	t       *testing.T
	session string
	mu      sync.Mutex
	loaded  chan struct{}
	// noise is what a page that is in order never causes: errors, console output, policy violations, requests.
	noise []string
}

// page loads a file. Requests beside it, errors and console output are kept as noise.
func (c *chrome) page(t *testing.T, url string, setup func(*tab)) *tab {
	t.Helper()
	var target struct{ TargetID string }
	must(t, c.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target))
	var at struct{ SessionID string }
	must(t, c.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &at))
	p := &tab{chrome: c, t: t, session: at.SessionID, loaded: make(chan struct{}, 8)}
	c.mu.Lock()
	c.events[p.session] = p.event
	c.mu.Unlock()
	t.Cleanup(func() { c.call("", "Target.closeTarget", map[string]any{"targetId": target.TargetID}, nil) })
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Audits"} {
		p.do(domain+".enable", nil, nil)
	}
	if setup != nil {
		setup(p)
	}
	p.do("Page.navigate", map[string]any{"url": url}, nil)
	select {
	case <-p.loaded:
	case <-time.After(patience):
		t.Fatal("the page does not load")
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *tab) event(m message) {
	text := ""
	switch m.Method {
	case "Page.loadEventFired":
		p.loaded <- struct{}{}
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Audits.issueAdded", "Page.javascriptDialogOpening":
		text = m.Method + " " + string(m.Params)
	case "Network.requestWillBeSent":
		var r struct {
			Type    string
			Request struct{ URL string }
		}
		if json.Unmarshal(m.Params, &r) != nil || r.Type != "Document" {
			text = "request for " + r.Request.URL
		}
	}
	if text != "" {
		p.mu.Lock()
		p.noise = append(p.noise, text)
		p.mu.Unlock()
	}
}

// quiet fails the test when the page made any noise.
func (p *tab) quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.noise {
		p.t.Errorf("the page is not quiet: %.600s", n)
	}
}

func (p *tab) do(method string, params, out any) {
	p.t.Helper()
	must(p.t, p.call(p.session, method, params, out))
}

// eval evaluates an expression, which may be a promise, into out.
func (p *tab) eval(expression string, out any) {
	p.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.do("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if e := r.ExceptionDetails; e != nil {
		p.t.Fatalf("%.80s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if out != nil {
		if len(r.Result.Value) == 0 {
			p.t.Fatalf("%.80s: no value", expression)
		}
		must(p.t, json.Unmarshal(r.Result.Value, out))
	}
}

// media sets the scheme of colours and, when not "", the medium.
func (p *tab) media(medium, scheme string) {
	p.t.Helper()
	p.do("Emulation.setEmulatedMedia", map[string]any{"media": medium, "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

func (p *tab) width(px int) {
	p.t.Helper()
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": px, "height": 900, "deviceScaleFactor": 1, "mobile": px < 600}, nil)
}

// shoot keeps a picture of a part of the page, for people, when HALO_BROWSER_SHOTS names a directory.
func (p *tab) shoot(name, selector string) {
	p.t.Helper()
	dir := os.Getenv("HALO_BROWSER_SHOTS")
	if dir == "" {
		return
	}
	var box struct{ X, Y, Width, Height float64 }
	p.eval(fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return {x: 0, y: Math.max(0, r.y + scrollY), width: innerWidth, height: Math.min(r.height, 1500)} })()`, selector), &box)
	var shot struct{ Data []byte }
	p.do("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true,
		"clip": map[string]any{"x": box.X, "y": box.Y, "width": box.Width, "height": box.Height, "scale": 1}}, &shot)
	must(p.t, os.WriteFile(dir+"/"+strings.ReplaceAll(name, " ", "-")+".png", shot.Data, 0o644))
}
