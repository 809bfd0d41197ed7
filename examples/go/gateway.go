package main

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"go.nanomsg.org/mangos/v3"
	"go.nanomsg.org/mangos/v3/protocol/pull"
	"go.nanomsg.org/mangos/v3/protocol/push"
	_ "go.nanomsg.org/mangos/v3/transport/tcp"
)

// Message kinds (docs/PROTOCOL.md).
const (
	kindHello, kindWelcome, kindHeartbeat, kindBye, kindMap, kindMapRequest = 1, 2, 3, 4, 5, 6
	kindEnter, kindLeave, kindMoves, kindResult, kindOwner, kindViews       = 10, 11, 14, 15, 16, 17
)

const (
	viewChanges, viewMore = 0, 1
	roleCellserver        = 1
	roleGateway           = 2
	helloEvery            = 200 * time.Millisecond
	beatEvery             = 250 * time.Millisecond
	feedless              = "" // this gateway takes ids only: what entities look like travels in region frames
)

type world struct {
	originX, originY, cellSize float64
	depth, bits, radiusMax     uint64
}

func (w *world) unit() float64 {
	return w.cellSize * float64(uint64(1)<<w.depth) / float64(uint64(1)<<w.bits)
}

type leaf struct{ key, primary uint64 }

type peer struct {
	*session
	out chan []byte
	url string
}

// Entity is one of this gateway's own. See and unsee come in pairs, whatever happens between servers.
type entity struct {
	id, version uint64
	x, y        int64
	server      uint64 // 0: not entered yet
	sees        map[uint64]bool
	whole       map[uint64]bool // a whole view that has not come to its end
}

type gateway struct {
	sync.Mutex
	self, request, sequence     uint64
	inboxURL                    string
	coordinatorURL              string
	coordinator                 *peer
	peers                       map[uint64]*peer
	world                       *world
	term, rev                   uint64
	leaves                      map[uint64]leaf
	nodes                       map[uint64]string // cell servers: inbox
	entities                    map[uint64]*entity
	beat                        time.Time
	Entered, Left, Refused      int
	Sees, Unsees, OwnersChanged int
}

func openGateway(coordinatorURL string) (*gateway, error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	g := &gateway{self: binary.LittleEndian.Uint64(random[:]) | 1<<62, coordinatorURL: coordinatorURL, peers: map[uint64]*peer{},
		leaves: map[uint64]leaf{}, nodes: map[uint64]string{}, entities: map[uint64]*entity{}}
	inbox, err := pull.NewSocket()
	if err != nil {
		return nil, err
	}
	if err := inbox.SetOption(mangos.OptionMaxRecvSize, 1<<20); err != nil {
		return nil, err
	}
	listener, err := inbox.NewListener("tcp://127.0.0.1:0", nil)
	if err != nil {
		return nil, err
	}
	if err := listener.Listen(); err != nil {
		return nil, err
	}
	g.inboxURL = listener.Address()
	if g.coordinator, err = dial(&session{self: g.self}, coordinatorURL); err != nil {
		return nil, err
	}
	go g.listen(inbox)
	return g, nil
}

// A peer that does not take what it is sent delays nobody: its packets are dropped and the sure lane repeats them.
func dial(s *session, url string) (*peer, error) {
	socket, err := push.NewSocket()
	if err != nil {
		return nil, err
	}
	if err := socket.SetOption(mangos.OptionReconnectTime, 10*time.Millisecond); err != nil {
		return nil, err
	}
	if err := socket.DialOptions(url, map[string]interface{}{mangos.OptionDialAsynch: true}); err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	p := &peer{session: s, out: make(chan []byte, 128), url: url}
	go func() {
		for bytesOut := range p.out {
			_ = socket.Send(bytesOut)
		}
		_ = socket.Close()
	}()
	return p, nil
}

func (p *peer) send(bytesOut []byte) {
	select {
	case p.out <- bytesOut:
	default:
	}
}

func (g *gateway) listen(inbox mangos.Socket) {
	for {
		bytesIn, err := inbox.Recv()
		if err != nil {
			return
		}
		if p := parse(bytesIn); p != nil {
			g.Lock()
			g.arrived(p)
			g.flush(time.Now())
			g.Unlock()
		}
	}
}

func (g *gateway) arrived(p *packet) {
	if p.from != g.coordinator.peer && p.fastTotal < fastTotalByes {
		for _, m := range p.fast {
			if number(m[0]) == kindWelcome && len(m) == 5 {
				g.welcomed(m)
			}
		}
	}
	if p.to != g.self {
		return
	}
	if p.from == g.coordinator.peer {
		g.coordinator.receive(p, time.Now(), g.handle)
	} else if from := g.peers[p.from]; from != nil {
		from.receive(p, time.Now(), func(m message) { g.handleFrom(p.from, m) })
	}
}

// The first coordinator, or another one that leads now.
func (g *gateway) welcomed(m message) {
	w := items(m[3])
	if len(w) != 12 {
		return
	}
	f := func(i int) float64 {
		if v, ok := w[i].(float64); ok {
			return v
		}
		return float64(int64(number(w[i])))
	}
	g.world = &world{originX: f(0), originY: f(1), cellSize: f(2), depth: number(w[3]), bits: number(w[4]), radiusMax: number(w[7])}
	g.coordinator.session = newSession(g.self, number(m[1]))
	g.term, g.rev = number(m[2]), 0
}

func (g *gateway) handle(m message) {
	if number(m[0]) == kindMap && len(m) == 10 {
		g.mapped(m)
	}
}

func (g *gateway) mapped(m message) {
	rev, base, part, parts := number(m[2]), number(m[3]), number(m[4]), number(m[5])
	if base != 0 && base != g.rev {
		g.coordinator.say(message{kindMapRequest, g.rev})
		return
	}
	if base == 0 && part == 0 {
		g.leaves, g.nodes = map[uint64]leaf{}, map[uint64]string{}
	}
	for _, item := range items(m[6]) {
		if info := items(item); len(info) == 9 && number(info[0]) == roleCellserver {
			g.nodes[number(info[1])] = text(info[4])
		}
	}
	for _, item := range items(m[7]) {
		if l := items(item); len(l) == 6 {
			g.leaves[number(l[0])] = leaf{key: number(l[0]), primary: number(l[3])}
		}
	}
	for _, node := range items(m[8]) {
		delete(g.nodes, number(node))
	}
	for _, key := range items(m[9]) {
		delete(g.leaves, number(key))
	}
	if base != 0 || part+1 == parts {
		g.rev = rev
	}
	g.meet()
}

// A session with each cell server of the map, and none with others.
func (g *gateway) meet() {
	for node, p := range g.peers {
		if _, there := g.nodes[node]; !there {
			close(p.out)
			delete(g.peers, node)
		}
	}
	for node, url := range g.nodes {
		if g.peers[node] != nil {
			continue
		}
		if p, err := dial(newSession(g.self, node), url); err == nil {
			g.peers[node] = p
		}
	}
}

func (g *gateway) handleFrom(node uint64, m message) {
	switch number(m[0]) {
	case kindResult:
		g.answered(node, m)
	case kindOwner:
		if e := g.entities[number(m[1])]; e != nil && number(m[2]) > e.version {
			if e.server != node && e.server != 0 {
				g.OwnersChanged++
			}
			e.server, e.version = node, number(m[2])
		}
	case kindViews:
		for _, item := range items(m[2]) {
			g.viewed(items(item))
		}
	}
}

func (g *gateway) answered(node uint64, m message) {
	e := g.entities[number(m[2])]
	if e == nil {
		return
	}
	switch {
	case number(m[3]) != 0:
		g.Refused++
	case e.server == 0:
		e.server, e.version = node, number(m[4])
		g.Entered++
	default:
		g.Unsees += len(e.sees)
		delete(g.entities, e.id)
		g.Left++
	}
}

// Changes name who comes and goes; a whole view is compared with what is known, so no see comes twice.
func (g *gateway) viewed(item []interface{}) {
	if len(item) != 5 {
		return
	}
	e := g.entities[number(item[0])]
	if e == nil || number(item[1]) < e.version {
		return
	}
	if number(item[2]) == viewChanges {
		for _, id := range items(item[3]) {
			g.unsee(e, number(id))
		}
		for _, id := range items(item[4]) {
			g.see(e, number(id))
		}
		return
	}
	if e.whole == nil {
		e.whole = map[uint64]bool{}
	}
	for _, id := range items(item[4]) {
		e.whole[number(id)] = true
	}
	if number(item[2]) == viewMore {
		return
	}
	for id := range e.sees {
		if !e.whole[id] {
			g.unsee(e, id)
		}
	}
	for id := range e.whole {
		g.see(e, id)
	}
	e.whole = nil
}

func (g *gateway) see(e *entity, id uint64) {
	if !e.sees[id] {
		e.sees[id] = true
		g.Sees++
	}
}

func (g *gateway) unsee(e *entity, id uint64) {
	if e.sees[id] {
		delete(e.sees, id)
		g.Unsees++
	}
}

// The server of the leaf at that place; 0: none yet. Keys are a leading 1 and two bits a level, y before x.
func (g *gateway) ownerAt(x, y int64) uint64 {
	key := uint64(1)
	for level := uint64(0); ; level++ {
		if l, there := g.leaves[key]; there {
			return l.primary
		}
		if level == g.world.bits {
			return 0
		}
		bit := g.world.bits - 1 - level
		key = key<<2 | uint64(y>>bit&1)<<1 | uint64(x>>bit&1)
	}
}

// Sends what is due to everybody. With the lock held.
func (g *gateway) flush(now time.Time) {
	if g.coordinator.peer != 0 {
		if p := g.coordinator.packet(now); p != nil {
			g.coordinator.send(p)
		}
	}
	for _, p := range g.peers {
		if bytesOut := p.packet(now); bytesOut != nil {
			p.send(bytesOut)
		}
	}
}

// Tick is called some ten times a second: HELLO until WELCOME, then heartbeats; and what waits goes out.
func (g *gateway) tick(now time.Time) {
	g.Lock()
	defer g.Unlock()
	if g.coordinator.peer == 0 && now.Sub(g.beat) >= helloEvery {
		info := message{roleGateway, g.self, "example-go", "localhost", g.inboxURL, feedless, "", "", message{}}
		hello := message{kindHello, info, 0, 0}
		g.coordinator.send(encode(message{protocol, g.self, 0, 0, 0, 1, message{}, message{hello}}))
		g.beat = now
	} else if g.coordinator.peer != 0 && now.Sub(g.beat) >= beatEvery {
		g.coordinator.sayFast(message{kindHeartbeat, g.term, g.rev, 0, 0, 0, 0, 0, message{}, message{}})
		g.beat = now
	}
	g.flush(now)
}
