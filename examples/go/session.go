package main

import (
	"bytes"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// What one side of a conversation keeps (docs/PROTOCOL.md, "delivery rules"): sure messages are numbered, repeated until
// they are acknowledged, and handled once and in order; fast ones ride along and may be lost.

const (
	protocol      = 2
	repeatAfter   = 250 * time.Millisecond
	packetTarget  = 32 << 10 // of a gateway's 64 KiB
	fastTotalByes = 1 << 62  // a BYE outside any session counts from there
)

type message = []interface{}

type session struct {
	self, peer         uint64
	unacked            [][]byte // encoded; the first has the number `first`
	first, expected    uint64   // expected: the next number from the other side
	sent               uint64   // up to this one has been sent once
	fastTotal          uint64
	fast               [][]byte
	progress           time.Time
	ackDue             bool
	gaps, repeats, ret uint64
}

func newSession(self, peer uint64) *session {
	return &session{self: self, peer: peer, first: 1, expected: 1}
}

func encode(m interface{}) []byte {
	var out bytes.Buffer
	encoder := msgpack.NewEncoder(&out)
	encoder.UseCompactInts(true)
	encoder.UseCompactFloats(false)
	if err := encoder.Encode(m); err != nil {
		panic(err) // only values that msgpack knows are ever given to it
	}
	return out.Bytes()
}

func decode(bytesIn []byte) (message, error) {
	decoder := msgpack.NewDecoder(bytes.NewReader(bytesIn))
	decoder.UseLooseInterfaceDecoding(true)
	return decoder.DecodeSlice()
}

func (s *session) say(m message)     { s.unacked = append(s.unacked, encode(m)) }
func (s *session) sayFast(m message) { s.fast = append(s.fast, encode(m)) }

// The next packet, or nil if there is nothing to say.
func (s *session) packet(now time.Time) []byte {
	from := s.sent + 1
	if len(s.unacked) > 0 && s.sent >= s.first && now.Sub(s.progress) >= repeatAfter {
		from, s.progress = s.first, now
		s.ret++
	}
	last := s.first + uint64(len(s.unacked)) - 1
	var sure []msgpack.RawMessage
	size := 0
	for n := from; n <= last && size < packetTarget; n++ {
		raw := s.unacked[n-s.first]
		sure, size = append(sure, raw), size+len(raw)
	}
	if len(sure) == 0 && len(s.fast) == 0 && !s.ackDue {
		return nil
	}
	sureFirst := uint64(0)
	if len(sure) > 0 {
		sureFirst = from
		if end := from + uint64(len(sure)) - 1; end > s.sent {
			if s.sent < s.first {
				s.progress = now
			}
			s.sent = end
		}
	}
	fast := make([]msgpack.RawMessage, 0, len(s.fast))
	for _, raw := range s.fast {
		fast = append(fast, raw)
	}
	if len(fast) > 0 {
		s.fastTotal++
	}
	s.fast, s.ackDue = nil, false
	if sure == nil {
		sure = []msgpack.RawMessage{}
	}
	return encode(message{protocol, s.self, s.peer, sureFirst, s.expected - 1, s.fastTotal, sure, fast})
}

// Takes a packet of the peer; `handle` gets each message that is new.
func (s *session) receive(p *packet, now time.Time, handle func(m message)) {
	for s.first <= p.sureAck && len(s.unacked) > 0 {
		s.unacked, s.first, s.progress = s.unacked[1:], s.first+1, now
	}
	if s.sent+1 < s.first {
		s.sent = s.first - 1
	}
	if len(p.sure) > 0 {
		s.ackDue = true
		if p.sureFirst > s.expected { // a gap: nothing in it is handled
			s.gaps++
			return
		}
	}
	for i, m := range p.sure {
		if p.sureFirst+uint64(i) < s.expected {
			s.repeats++
			continue
		}
		s.expected++
		handle(m)
	}
	for _, m := range p.fast {
		handle(m)
	}
}

type packet struct {
	from, to, sureFirst, sureAck, fastTotal uint64
	sure, fast                              []message
}

// nil: not a packet of this protocol.
func parse(bytesIn []byte) *packet {
	fields, err := decode(bytesIn)
	if err != nil || len(fields) != 8 || number(fields[0]) != protocol {
		return nil
	}
	p := &packet{from: number(fields[1]), to: number(fields[2]), sureFirst: number(fields[3]), sureAck: number(fields[4]),
		fastTotal: number(fields[5])}
	for i, list := range []*[]message{&p.sure, &p.fast} {
		for _, item := range items(fields[6+i]) {
			if m, ok := item.(message); ok && len(m) > 0 {
				*list = append(*list, m)
			}
		}
	}
	return p
}

func number(v interface{}) uint64 {
	switch n := v.(type) {
	case int64:
		return uint64(n)
	case uint64:
		return n
	}
	return 0
}

func items(v interface{}) []interface{} {
	list, _ := v.([]interface{})
	return list
}

func text(v interface{}) string {
	s, _ := v.(string)
	return s
}
