package report

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// markup is text that is HTML already. Only constants of this package become markup: a text of a release is a string, and every string is escaped on its way into
// the page.
type markup string

// page is HTML as it grows.
type page struct {
	out []byte
	// tables counts the tables, which are named by number.
	tables int
}

// put writes m, in which each {} stands for the next argument: a string or a number is escaped, markup is not.
func (p *page) put(m markup, args ...any) {
	rest := string(m)
	for _, a := range args {
		before, after, _ := strings.Cut(rest, "{}")
		p.out = append(p.out, before...)
		switch a := a.(type) {
		case markup:
			p.out = append(p.out, a...)
		case string:
			p.out = escape(p.out, a)
		case int:
			p.out = strconv.AppendInt(p.out, int64(a), 10)
		case int64:
			p.out = strconv.AppendInt(p.out, a, 10)
		}
		rest = after
	}
	p.out = append(p.out, rest...)
}

// escape appends s so that it is text in any element and any quoted attribute, and shows as what it is: characters that a reader cannot see, or that turn the
// direction of the text around them, are spelled out as \u{202E}.
func escape(out []byte, s string) []byte {
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case r == '<':
			out = append(out, "&lt;"...)
		case r == '>':
			out = append(out, "&gt;"...)
		case r == '&':
			out = append(out, "&amp;"...)
		case r == '"':
			out = append(out, "&#34;"...)
		case r == '\'':
			out = append(out, "&#39;"...)
		case r == '\n' || r == '\t' || r == '\r':
			out = append(out, ' ')
		case r == utf8.RuneError && size == 1:
			out = append(out, `\x`...)
			out = append(out, strings.ToUpper(strconv.FormatUint(uint64(s[i]), 16))...)
		case !unicode.IsPrint(r):
			out = append(out, `\u{`...)
			out = append(out, strings.ToUpper(strconv.FormatUint(uint64(r), 16))...)
			out = append(out, '}')
		default:
			out = append(out, s[i:i+size]...)
		}
		i += size
	}
	return out
}

// table is a table being written. Its first column names the row.
type table struct {
	page  *page
	heads []markup
	// stacked tables become a list of labelled values on a narrow screen; the others scroll sideways.
	stacked bool
}

// table begins a table with a caption, which may have arguments as for put.
func (p *page) table(class, caption markup, args []any, heads ...markup) *table {
	p.tables++
	t := &table{p, heads, strings.HasPrefix(string(class), "stack")}
	p.put(`<div class=wrap tabindex=0 role=group aria-labelledby=t{}><table class="{}"{}><caption id=t{}>`, p.tables, class, t.role("table"), p.tables)
	p.put(caption, args...)
	p.put("</caption>\n<thead{}><tr{}>", t.role("rowgroup"), t.role("row"))
	for _, h := range heads {
		p.put("<th scope=col{}>{}", t.role("columnheader"), h)
	}
	p.put("</thead>\n<tbody{}>\n", t.role("rowgroup"))
	return t
}

// role repeats the role of an element, which some browsers forget when its display changes.
func (t *table) role(name markup) markup {
	if !t.stacked {
		return ""
	}
	return " role=" + name
}

// row writes a row of strings, numbers, markup, and functions that write a cell's content.
func (t *table) row(cells ...any) {
	p := t.page
	p.put("<tr{}>", t.role("row"))
	for i, c := range cells {
		switch {
		case i == 0:
			p.put("<th scope=row{}>", t.role("rowheader"))
		case t.stacked:
			p.put(`<td role=cell data-l="{}">`, t.heads[i])
		default:
			p.put("<td>")
		}
		if write, ok := c.(func()); ok {
			write()
		} else {
			p.put("{}", c)
		}
	}
	p.put("\n")
}

func (t *table) end() { t.page.put("</table></div>\n") }

// section begins a section of the page.
func (p *page) section(id, title markup) {
	p.put("<section id={} aria-labelledby={}-h>\n<h2 id={}-h>{}</h2>\n", id, id, id, title)
}

func (p *page) endSection() { p.put("</section>\n") }

// count writes a number with its noun.
func (p *page) count(n int, one, many markup) {
	if n == 1 {
		p.put("1 {}", one)
		return
	}
	p.put("{} {}", n, many)
}

// words writes names between commas.
func (p *page) words(names []string) {
	for i, n := range names {
		if i > 0 {
			p.put(", ")
		}
		p.put("{}", n)
	}
}
