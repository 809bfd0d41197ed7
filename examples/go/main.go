// A gateway in Go, from the protocol's page alone: walkers cross the world's middle to and fro and see each other.
//
// Usage: gateway COORDINATOR_URL [WALKERS [SECONDS [FIRST_ID]]]
// Prints what came of it; exit code 1 if somebody did not enter or leave, or a see has no unsee.
package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"time"
)

const (
	step     = 50 * time.Millisecond
	patience = 15 * time.Second
	radiusM  = 20.0
	swingM   = 40.0 // to each side of the middle
	swingS   = 12.0 // for one swing to and fro
)

func argument(i int, preset uint64) uint64 {
	if len(os.Args) <= i {
		return preset
	}
	n, err := strconv.ParseUint(os.Args[i], 10, 64)
	if err != nil {
		fmt.Fprintf(os.Stderr, "gateway: %q is no number\n", os.Args[i])
		os.Exit(2)
	}
	return n
}

// Waits until the condition holds; false: it has not come in time.
func (g *gateway) await(holds func() bool) bool {
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(step) {
		g.tick(time.Now())
		g.Lock()
		done := holds()
		g.Unlock()
		if done {
			return true
		}
	}
	return false
}

// Where a walker is after so many seconds, in position units. Neighbours walk 3 m apart, half a swing behind each other.
func (g *gateway) place(walker int, seconds float64) (int64, int64) {
	middle, unit := int64(1)<<(g.world.bits-1), g.world.unit()
	phase := 2 * math.Pi * (seconds/swingS + float64(walker%2)/2)
	return middle + int64(swingM*math.Sin(phase)/unit), middle + int64((3*float64(walker)+1)/unit)
}

func (g *gateway) enterAll(walkers int, firstID uint64) {
	for i := 0; i < walkers; i++ {
		e := &entity{id: firstID + uint64(i), sees: map[uint64]bool{}}
		e.x, e.y = g.place(i, 0)
		g.entities[e.id] = e
		g.request++
		g.sequence++
		radius := int64(radiusM / g.world.unit())
		record := message{e.id, uint64(time.Now().UnixMicro()), 1, 0, 0, e.x, e.y, 0, 0, radius, []byte("go")}
		g.peers[g.ownerAt(e.x, e.y)].say(message{kindEnter, g.request, g.sequence, record})
	}
}

// One MOVES message a server, with the newest positions.
func (g *gateway) moveAll(walkers int, firstID uint64, seconds float64) {
	g.sequence++
	moves := map[uint64]message{}
	for i := 0; i < walkers; i++ {
		e := g.entities[firstID+uint64(i)]
		if e == nil || e.server == 0 {
			continue
		}
		e.x, e.y = g.place(i, seconds)
		moves[e.server] = append(moves[e.server], e.id, e.x, e.y, 0, 0)
	}
	for server, list := range moves {
		if p := g.peers[server]; p != nil {
			p.sayFast(message{kindMoves, g.sequence, list})
		}
	}
}

func (g *gateway) leaveAll() {
	for _, e := range g.entities {
		if p := g.peers[e.server]; p != nil {
			g.request++
			g.sequence++
			p.say(message{kindLeave, g.request, g.sequence, e.id})
		}
	}
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: gateway COORDINATOR_URL [WALKERS [SECONDS [FIRST_ID]]]")
		os.Exit(2)
	}
	walkers, seconds, firstID := int(argument(2, 10)), argument(3, 10), argument(4, 1)
	g, err := openGateway(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(3)
	}
	ready := g.await(func() bool {
		if g.world == nil || g.rev == 0 {
			return false
		}
		for i := 0; i < walkers; i++ {
			if g.peers[g.ownerAt(g.place(i, 0))] == nil {
				return false
			}
		}
		return true
	})
	if !ready {
		fmt.Fprintf(os.Stderr, "gateway: no map from %s within %v: is a coordinator there?\n", g.coordinatorURL, patience)
		os.Exit(3)
	}
	g.Lock()
	g.enterAll(walkers, firstID)
	g.Unlock()
	entered := g.await(func() bool { return g.Entered+g.Refused == walkers })
	for began := time.Now(); time.Since(began) < time.Duration(seconds)*time.Second; time.Sleep(step) {
		g.Lock()
		g.moveAll(walkers, firstID, time.Since(began).Seconds())
		g.Unlock()
		g.tick(time.Now())
	}
	g.Lock()
	g.leaveAll()
	g.Unlock()
	left := g.await(func() bool { return len(g.entities) == 0 })
	g.Lock()
	g.coordinator.say(message{kindBye})
	g.Unlock()
	g.tick(time.Now())
	time.Sleep(2 * step) // what has been handed to the sockets goes out
	g.Lock()
	defer g.Unlock()
	fmt.Printf("entered=%d refused=%d left=%d sees=%d unsees=%d owners_changed=%d\n", g.Entered, g.Refused, g.Left, g.Sees, g.Unsees,
		g.OwnersChanged)
	if !entered || !left || g.Refused > 0 || g.Sees != g.Unsees || g.Sees == 0 && walkers > 1 {
		os.Exit(1)
	}
}
