package report

import (
	"fmt"
	"io"
	"time"
)

// patience is how many ticks pass before a progress line appears.
const patience = 4

// Ticks is how often a progress line changes: it appears after a second.
const Ticks = time.Second / patience

// Progress shows one line on a terminal while work goes on, made anew at each tick after the first few; short work shows none. The function that it returns takes the
// line away and must be called before anything else is written to w.
func Progress(w io.Writer, ticks <-chan time.Time, line func() string) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; ; n++ {
			select {
			case <-quit:
				if n > patience {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case <-ticks:
				if n >= patience {
					fmt.Fprintf(w, "\r%s\x1b[K", printable(line()))
				}
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
