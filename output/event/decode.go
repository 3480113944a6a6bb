package event

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// envelope is how the common keys of a line are read.
type envelope struct {
	V               int             `json:"v"`
	Seq             int64           `json:"seq"`
	Time            time.Time       `json:"ts"`
	Type            string          `json:"type"`
	RunID           string          `json:"run_id"`
	SessionID       string          `json:"session_id"`
	ParentSessionID string          `json:"parent_session_id"`
	Agent           string          `json:"agent"`
	Turn            int             `json:"turn"`
	ItemID          string          `json:"item_id"`
	Replayed        bool            `json:"replayed"`
	Ext             json.RawMessage `json:"ext"`
}

// Decode reads one line of a stream. Keys that this version does not know are
// ignored, and a type that it does not know becomes a body of type Unknown. A
// line of another major version is an error, because its keys may mean
// something else.
func Decode(line []byte) (Event, error) {
	var env envelope
	if err := json.Unmarshal(line, &env); err != nil {
		return Event{}, fmt.Errorf("decode event: %w", err)
	}
	if env.Type == "" {
		return Event{}, errors.New("decode event: it has no type")
	}
	if env.V != Version {
		return Event{}, fmt.Errorf("decode %s event: version %d is not known, only %d", env.Type, env.V, Version)
	}
	e := Event{
		Seq: env.Seq, Time: env.Time, RunID: env.RunID, Replayed: env.Replayed, Ext: env.Ext,
		Origin: Origin{
			SessionID: env.SessionID, ParentSessionID: env.ParentSessionID,
			Agent: env.Agent, Turn: env.Turn, ItemID: env.ItemID,
		},
	}
	k, ok := kinds[env.Type]
	if !ok {
		e.Body = Unknown{Name: env.Type, Raw: bytes.Clone(line)}
		return e, nil
	}
	body, err := k.decode(line)
	if err != nil {
		return Event{}, fmt.Errorf("decode %s event: %w", env.Type, err)
	}
	e.Body = body
	return e, nil
}

// kind is what this package knows about one type of event.
type kind struct {
	zero   Body
	decode func([]byte) (Body, error)
}

// allKinds is every type, in the order of types.go and jobs.go.
var allKinds = []kind{
	kindOf[RunStartedEvent](), kindOf[RunFinishedEvent](), kindOf[SessionStartedEvent](),
	kindOf[SessionFinishedEvent](), kindOf[TurnStartedEvent](), kindOf[TurnFinishedEvent](),
	kindOf[MessageDeltaEvent](), kindOf[MessageEvent](), kindOf[ReasoningDeltaEvent](), kindOf[ReasoningEvent](),
	kindOf[ToolCallStartEvent](), kindOf[ToolCallArgsDeltaEvent](), kindOf[ToolCallEvent](),
	kindOf[ToolDecisionEvent](), kindOf[ToolApprovalRequestEvent](), kindOf[ToolApprovalResponseEvent](), kindOf[ToolStatusEvent](), kindOf[ToolResultEvent](), kindOf[ToolIncompleteEvent](),
	kindOf[TerminalNewRunningEvent](), kindOf[TerminalAppendStringEvent](), kindOf[TerminalInputEvent](), kindOf[TerminalCompletedEvent](),
	kindOf[FileChangedEvent](), kindOf[PlanUpdatedEvent](), kindOf[GoalUpdatedEvent](),
	kindOf[InputRequestedEvent](), kindOf[InputResolvedEvent](), kindOf[UsageEvent](), kindOf[ProviderRetryEvent](),
	kindOf[ContextCompactedEvent](), kindOf[LimitWarningEvent](), kindOf[LimitReachedEvent](), kindOf[HookFinishedEvent](), kindOf[NoticeEvent](), kindOf[ErrorEvent](),
	kindOf[HeartbeatEvent](),
	kindOf[JobStartedEvent](), kindOf[JobItemStartedEvent](), kindOf[JobItemFinishedEvent](), kindOf[JobProgressEvent](), kindOf[JobFinishedEvent](),
}

// kinds is every type by its name.
var kinds = byName(allKinds)

func kindOf[B Body]() kind {
	var zero B
	return kind{zero: zero, decode: func(line []byte) (Body, error) {
		var b B
		if err := json.Unmarshal(line, &b); err != nil {
			return nil, err
		}
		return b, nil
	}}
}

func byName(all []kind) map[string]kind {
	m := make(map[string]kind, len(all))
	for _, k := range all {
		m[k.zero.Type()] = k
	}
	return m
}

// ErrTorn is the error for a last line that ends without its newline and is
// not a whole event: its writer was stopped in the middle.
var ErrTorn = errors.New("the last line is torn")

// ErrLineTooLong is the error for a line that no version of drover writes.
var ErrLineTooLong = errors.New("the line is too long")

// maxReadLine is far above the 1 MiB that a line may have, so that streams of
// later versions and of other writers can be read too.
const maxReadLine = 64 << 20

// Reader reads the events of a stream, line by line.
type Reader struct {
	src    *bufio.Reader
	line   []byte
	number int
	offset int64
	torn   bool
	err    error
}

// NewReader returns a reader of the stream r.
func NewReader(r io.Reader) *Reader {
	return &Reader{src: bufio.NewReaderSize(r, 64<<10)}
}

// Next returns the next event, and io.EOF after the last one. Blank lines are
// skipped. An error about one line, ErrTorn and ErrLineTooLong among them, names the
// line and does not end the reading; an error of the source does.
func (r *Reader) Next() (Event, error) {
	for {
		line, err := r.next()
		if err != nil {
			return Event{}, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		e, err := Decode(line)
		if err == nil {
			return e, nil
		}
		if r.torn {
			err = fmt.Errorf("%w: %w", ErrTorn, err)
		}
		return Event{}, fmt.Errorf("line %d: %w", r.number, err)
	}
}

// Bytes returns the line of the latest event without its newline. It is valid
// until the next call of Next.
func (r *Reader) Bytes() []byte { return r.line }

// Line returns the number of the latest line, from 1.
func (r *Reader) Line() int { return r.number }

// Offset returns how many bytes of whole lines have been read: a writer that
// wants to append after a torn line cuts the file there.
func (r *Reader) Offset() int64 { return r.offset }

// Torn tells whether the stream ended without a newline, also when what was
// there is a whole event.
func (r *Reader) Torn() bool { return r.torn }

// next reads one line, however long, without its line ending.
func (r *Reader) next() ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	r.line = r.line[:0]
	size, tooLong := int64(0), false
	for {
		part, err := r.src.ReadSlice('\n')
		size += int64(len(part))
		if size > maxReadLine {
			tooLong, r.line = true, r.line[:0]
		} else {
			r.line = append(r.line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			r.err = fmt.Errorf("read events: %w", err)
			return nil, r.err
		}
		if err != nil {
			r.err = io.EOF
			if size == 0 {
				return nil, io.EOF
			}
			r.torn = true
		}
		break
	}
	r.number++
	if !r.torn {
		r.offset += size
	}
	if tooLong {
		return nil, fmt.Errorf("line %d: %w: %d bytes", r.number, ErrLineTooLong, size)
	}
	r.line = bytes.TrimSuffix(bytes.TrimSuffix(r.line, []byte("\n")), []byte("\r"))
	return r.line, nil
}

// typeNames returns the names of all types in the order of types.go.
func typeNames() []string {
	names := make([]string, len(allKinds))
	for i, k := range allKinds {
		names[i] = k.zero.Type()
	}
	return names
}
