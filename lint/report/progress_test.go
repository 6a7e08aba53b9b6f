package report

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	for ticks, want := range []string{"", "", "", "", "\rline 1\x1b[K\r\x1b[K", "\rline 1\x1b[K\rline 2\x1b[K\r\x1b[K"} {
		var b strings.Builder
		tick := make(chan time.Time)
		n := 0
		stop := Progress(&b, tick, func() string { n++; return fmt.Sprintf("line %d", n) })
		for range ticks {
			tick <- time.Time{}
		}
		stop()
		if b.String() != want {
			t.Errorf("after %d ticks %q, want %q", ticks, b.String(), want)
		}
	}
}
