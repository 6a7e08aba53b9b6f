//go:build linux

package real

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os/exec"
	"strconv"
)

type message struct {
	ID     *int            `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// converse starts cmd, sends it the requests of run and ends it by closing its standard input. A CLI that stops early has answered
// fewer requests than it was asked, and that is no error here.
func converse(cmd *exec.Cmd, run script, res *conversation) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := bufio.NewReader(out)
	for i, q := range run.Requests {
		err := send(in, run.Framed, map[string]any{"jsonrpc": "2.0", "id": i, "method": q.Method, "params": q.Params})
		if err == nil {
			err = answer(r, run.Framed, i, res)
		}
		if err != nil {
			break
		}
	}
	err = in.Close()
	_, _ = io.Copy(io.Discard, r)
	return errors.Join(err, cmd.Wait())
}

// answer reads up to the answer to request id and records what comes before it.
func answer(r *bufio.Reader, framed bool, id int, res *conversation) error {
	for {
		raw, err := receive(r, framed)
		if err != nil {
			return err
		}
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return fmt.Errorf("decode %q: %w", raw, err)
		}
		if m.ID == nil || m.Method != "" {
			res.Notes = append(res.Notes, raw)
			continue
		}
		if *m.ID != id {
			continue
		}
		if m.Error != nil {
			m.Result = json.RawMessage(`{"error":` + string(m.Error) + `}`)
		}
		res.Answers = append(res.Answers, m.Result)
		return nil
	}
}

func send(w io.Writer, framed bool, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if framed {
		_, err = fmt.Fprintf(w, "Content-Length: %d\r\n\r\n%s", len(b), b)
	} else {
		_, err = fmt.Fprintf(w, "%s\n", b)
	}
	return err
}

func receive(r *bufio.Reader, framed bool) ([]byte, error) {
	if !framed {
		return r.ReadBytes('\n')
	}
	h, err := textproto.NewReader(r).ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(h.Get("Content-Length"))
	if err != nil || n < 0 || n > 16<<20 {
		return nil, fmt.Errorf("message of length %q", h.Get("Content-Length"))
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}
