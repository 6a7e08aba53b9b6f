package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// model stands in for the API of a model. Whatever it is asked, it answers with the next call of its script, and with a last word when
// the script is over; what the CLI says about a call it finds in the next request.
type model struct {
	script []Call

	mu      sync.Mutex
	results map[int]string
	tools   []string
	asked   int
	log     []string
}

// callPrefix starts the id of each call; its place in the script follows.
const callPrefix = "call_halo_"

// logLimit is how many requests are remembered, resultLimit how much of each answer to a call, in bytes: a program may say anything.
const (
	logLimit    = 1000
	resultLimit = 64 << 10
)

func (m *model) report(res *Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.script {
		text, ok := m.results[i]
		if !ok {
			break
		}
		res.Results = append(res.Results, text)
	}
	res.Tools = m.tools
	res.Asked = m.asked
	res.URLs = m.log
}

// ServeHTTP tells the four APIs apart by their paths.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 32<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	if len(m.log) < logLimit {
		m.log = append(m.log, r.Host+r.URL.Path)
	}
	m.mu.Unlock()
	var serve func(http.ResponseWriter, *http.Request, []byte) error
	switch p := r.URL.Path; {
	case r.Method != http.MethodPost:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"stand-in","object":"model"}]}`)
		return
	case strings.HasSuffix(p, "/messages"):
		serve = m.messages
	case strings.HasSuffix(p, "/responses"):
		serve = m.responses
	case strings.HasSuffix(p, "/chat/completions"):
		serve = m.completions
	case strings.Contains(p, "enerateContent"):
		serve = m.contents
	case strings.HasSuffix(p, "/count_tokens"), strings.HasSuffix(p, ":countTokens"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"input_tokens":1,"totalTokens":1}`)
		return
	default:
		http.NotFound(w, r)
		return
	}
	if err := serve(w, r, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// turn records what a request says and chooses the answer to it: a call, or nil for the last word. A request that offers no tool of the
// script is about something else (a title, a classifier) and gets the last word.
func (m *model) turn(tools []string, results map[int]string) (int, *Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	next := 0
	for i, text := range results {
		if i < len(m.script) {
			m.results[i] = strings.Clone(text[:min(len(text), resultLimit)])
		}
		next = max(next, i+1)
	}
	if len(tools) > len(m.tools) {
		m.tools = tools
		slices.Sort(m.tools)
	}
	if next >= len(m.script) || len(tools) == 0 {
		return 0, nil
	}
	return next, &m.script[next]
}

// place is the place in the script that a call id names, or -1.
func place(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, callPrefix))
	if err != nil || !strings.HasPrefix(id, callPrefix) {
		return -1
	}
	return n
}

// plain is the text in the many forms that the APIs give it: a string, or a list of parts with a text each.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	if json.Unmarshal(raw, &parts) == nil {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p.Text)
		}
		return b.String()
	}
	return string(raw)
}

type object = map[string]any

// events writes server-sent events. An event whose first element is "" has no name.
type events struct{ w http.ResponseWriter }

func stream(w http.ResponseWriter) events {
	w.Header().Set("Content-Type", "text/event-stream")
	return events{w}
}

func (e events) send(name string, v any) {
	b, _ := json.Marshal(v)
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	fmt.Fprintf(e.w, "data: %s\n\n", b)
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

// arguments is the JSON text of a call's arguments.
func arguments(c *Call) string {
	b, _ := json.Marshal(c.Args)
	return string(b)
}

const lastWord = "done"

// messages is Anthropic's Messages API.
func (m *model) messages(w http.ResponseWriter, _ *http.Request, body []byte) error {
	var q struct {
		Model    string
		Stream   bool
		Tools    []struct{ Name string }
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	var tools []string
	for _, t := range q.Tools {
		tools = append(tools, t.Name)
	}
	results := map[int]string{}
	for _, msg := range q.Messages {
		var parts []struct {
			Type      string
			ToolUseID string `json:"tool_use_id"`
			Content   json.RawMessage
		}
		if json.Unmarshal(msg.Content, &parts) != nil {
			continue
		}
		for _, p := range parts {
			if i := place(p.ToolUseID); i >= 0 {
				results[i] = plain(p.Content)
			}
		}
	}
	i, call := m.turn(tools, results)
	usage := object{"input_tokens": 1, "output_tokens": 1}
	block, stop := object{"type": "text", "text": lastWord}, "end_turn"
	if call != nil {
		block = object{"type": "tool_use", "id": callPrefix + strconv.Itoa(i), "name": call.Tool, "input": call.Args}
		stop = "tool_use"
	}
	if !q.Stream {
		return writeJSON(w, object{"id": "msg", "type": "message", "role": "assistant", "model": q.Model, "content": []any{block},
			"stop_reason": stop, "stop_sequence": nil, "usage": usage})
	}
	e := stream(w)
	e.send("message_start", object{"type": "message_start", "message": object{"id": "msg", "type": "message", "role": "assistant",
		"model": q.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}})
	delta := object{"type": "text_delta", "text": lastWord}
	if call != nil {
		delta = object{"type": "input_json_delta", "partial_json": arguments(call)}
		block["input"] = object{}
	} else {
		block["text"] = ""
	}
	e.send("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": block})
	e.send("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta})
	e.send("content_block_stop", object{"type": "content_block_stop", "index": 0})
	e.send("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": usage})
	e.send("message_stop", object{"type": "message_stop"})
	return nil
}

// responses is OpenAI's Responses API.
func (m *model) responses(w http.ResponseWriter, _ *http.Request, body []byte) error {
	var q struct {
		Tools []struct{ Type, Name string }
		Input json.RawMessage
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	var tools []string
	for _, t := range q.Tools {
		if t.Name == "" {
			t.Name = t.Type
		}
		tools = append(tools, t.Name)
	}
	var items []struct {
		Type   string
		CallID string `json:"call_id"`
		Output json.RawMessage
	}
	results := map[int]string{}
	if json.Unmarshal(q.Input, &items) == nil {
		for _, it := range items {
			if i := place(it.CallID); i >= 0 && strings.HasSuffix(it.Type, "_output") {
				results[i] = plain(it.Output)
			}
		}
	}
	i, call := m.turn(tools, results)
	item := object{"type": "message", "id": "msg", "role": "assistant", "content": []any{object{"type": "output_text", "text": lastWord}}}
	if call != nil {
		item = object{"type": "function_call", "id": "fc_" + strconv.Itoa(i), "call_id": callPrefix + strconv.Itoa(i), "name": call.Tool,
			"arguments": arguments(call)}
	}
	e := stream(w)
	e.send("response.created", object{"type": "response.created", "response": object{"id": "resp"}})
	e.send("response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item})
	e.send("response.completed", object{"type": "response.completed", "response": object{"id": "resp", "usage": object{
		"input_tokens": 1, "input_tokens_details": nil, "output_tokens": 1, "output_tokens_details": nil, "total_tokens": 2}}})
	return nil
}

// completions is OpenAI's Chat Completions API, as "OpenAI-compatible" providers have it.
func (m *model) completions(w http.ResponseWriter, _ *http.Request, body []byte) error {
	var q struct {
		Model  string
		Stream bool
		Tools  []struct{ Function struct{ Name string } }
		// The rest of a message is of no interest.
		Messages []struct {
			Role    string
			CallID  string `json:"tool_call_id"`
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	var tools []string
	for _, t := range q.Tools {
		tools = append(tools, t.Function.Name)
	}
	results := map[int]string{}
	for _, msg := range q.Messages {
		if i := place(msg.CallID); i >= 0 {
			results[i] = plain(msg.Content)
		}
	}
	i, call := m.turn(tools, results)
	msg, stop := object{"role": "assistant", "content": lastWord}, "stop"
	if call != nil {
		msg = object{"role": "assistant", "content": nil, "tool_calls": []any{object{"index": 0, "id": callPrefix + strconv.Itoa(i),
			"type": "function", "function": object{"name": call.Tool, "arguments": arguments(call)}}}}
		stop = "tool_calls"
	}
	usage := object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
	reply := object{"id": "chat", "created": 1, "model": q.Model}
	if !q.Stream {
		reply["object"] = "chat.completion"
		reply["choices"] = []any{object{"index": 0, "message": msg, "finish_reason": stop}}
		reply["usage"] = usage
		return writeJSON(w, reply)
	}
	e := stream(w)
	reply["object"] = "chat.completion.chunk"
	reply["choices"] = []any{object{"index": 0, "delta": msg, "finish_reason": nil}}
	e.send("", reply)
	reply["choices"] = []any{object{"index": 0, "delta": object{}, "finish_reason": stop}}
	reply["usage"] = usage
	e.send("", reply)
	_, err := io.WriteString(w, "data: [DONE]\n\n")
	return err
}

// contents is Google's Gemini API. Its calls may have no id; they are answered in the order in which they were asked for.
func (m *model) contents(w http.ResponseWriter, r *http.Request, body []byte) error {
	var q struct {
		Tools    []struct{ FunctionDeclarations []struct{ Name string } }
		Contents []struct {
			Parts []struct {
				FunctionResponse *struct {
					Name     string
					Response json.RawMessage
				}
			}
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	var tools []string
	for _, t := range q.Tools {
		for _, f := range t.FunctionDeclarations {
			tools = append(tools, f.Name)
		}
	}
	results := map[int]string{}
	for _, c := range q.Contents {
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				results[len(results)] = string(p.FunctionResponse.Response)
			}
		}
	}
	_, call := m.turn(tools, results)
	part := object{"text": lastWord}
	if call != nil {
		part = object{"functionCall": object{"name": call.Tool, "args": call.Args}}
	}
	reply := object{"candidates": []any{object{"content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
	if strings.HasSuffix(r.URL.Path, ":streamGenerateContent") {
		stream(w).send("", reply)
		return nil
	}
	return writeJSON(w, reply)
}
