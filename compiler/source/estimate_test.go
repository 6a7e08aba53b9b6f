package source

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// count counts the nodes of every document that decodes, up to the first error.
func count(text []byte) (n int) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var walk func(n *Node) int
	walk = func(n *Node) int {
		sum := 1
		for _, c := range n.Content {
			sum += walk(c)
		}
		return sum
	}
	for {
		var doc Node
		if dec.Decode(&doc) != nil {
			return n
		}
		n += walk(&doc)
	}
}

func bounds(t *testing.T, text string) int {
	t.Helper()
	n := count([]byte(text))
	if got := estimate([]byte(text), 0); got < n {
		t.Errorf("%q has %d nodes, the bound is %d", text, n, got)
	}
	return n
}

// TestEstimate holds the bound on nodes to texts made of everything that announces a node, alone and a hundred times over.
func TestEstimate(t *testing.T) {
	for _, unit := range []string{"a,", "a: b,", "\"a\":b,", "[a:b],", "[\"a\":b],", "{a},", "{\"a\":1},", "? a,", ":,", "a:,", "'a':,", "[]:a,", "{}:a,", "{? },", "[? a],", "[: a],", "&e :a,"} {
		for _, wrap := range []string{"[%]", "{%}", "x: [%]"} {
			bounds(t, strings.Replace(wrap, "%", strings.Repeat(unit, 100), 1))
		}
	}
	for _, unit := range []string{"a:\n", "- a\n", "- a: b\n", "- - a: b\n", "? a\n", "? a\n: b\n", "? - a\n", ": a\n", ": - a\n", ": : a\n", "? ? a\n", "? ? ? a\n", "-\n", "- - - -\n", "---\n", "--- a\n", "---\n...\n", "a:\r",
		"- a\u2028", "- a\u0085", "- ? a\n", "- : a\n", "- [a:, b:]\n", "a: {b: [c, d]}\n", "- ? - ? - a\n", "a:\u2028", "&e a:\u0085", "- |\n  a\n", "- &x a\n", "- !t a\n"} {
		bounds(t, strings.Repeat(unit, 100))
	}
	tokens := []string{"a", "b", "\"c\"", "'d'", ":", ": ", ", ", ",", "[", "]", "{", "}", "- ", "? ", "\n", "\n", "\n  ", " ", "---\n", "...\n", "\r", "\u2028", "&e ", "*e", "!t ", "#f\n", "|\n  g\n"}
	rnd := rand.New(rand.NewPCG(7, 8))
	nodes := 0
	for range 60_000 {
		var b strings.Builder
		for range 1 + rnd.IntN(14) {
			b.WriteString(tokens[rnd.IntN(len(tokens))])
		}
		nodes += bounds(t, b.String())
		if t.Failed() {
			return
		}
	}
	if nodes < 30_000 {
		t.Errorf("%d nodes in all: the texts say little", nodes)
	}
	// The short way out is a bound as well, and stays below the limit.
	for _, s := range []string{"", "a", "[[[[[[[["} {
		if n := estimate([]byte(s), 100); n < count([]byte(s)) || n > 100 {
			t.Errorf("%q: %d", s, n)
		}
	}
}
