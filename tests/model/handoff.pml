/* Hand-off and fail-over as a model: two leaves, each with a primary and a standby, one entity, one fault, every order.
 *
 * The entity begins in leaf A, whose primary is P and whose standby is S. It crosses into leaf B, whose primary is D and
 * whose standby is T. Meanwhile its state is set once, and one server dies or is cut off (FAULTS=1; 2: one of
 * each leaf's two). The coordinator promotes standbys. With SAME=1 one server is the standby
 * of both leaves; with LOCAL=1 both leaves have the same primary.
 *
 * What holds in every state: at most one server answers for the entity. When nothing more can happen: exactly one
 * does, nothing is on its way, and a state that was acknowledged is there.
 *
 * How far it goes: messages between two servers are in order and exactly once while both live (the sure lane's
 * promise); those of a server that has died may still arrive or not. Servers learn of map changes at any time.
 * The lease is one fact: a server that is cut off is fenced before anybody is promoted in its place (docs/adr/0005).
 * BREAK=n leaves out one rule of the protocol; then the model must find a state that should not be (run.py). */

#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef SAME
#define SAME 0
#endif
#ifndef LOCAL
#define LOCAL 0
#endif
#ifndef BREAK
#define BREAK 0
#endif

#define SERVERS 4
#define P 0
#define S 1
#define D (LOCAL -> 0 : 2)
#define T (SAME -> 1 : 3)
#define A 0
#define B 1
#define NOBODY 9

mtype = { put, mark, pending, drop, ack_mark, ack_pending, ack_state, offer, accept, refuse };

/* kind, leaf (offer, refuse: since of leaf B), version of the entity, its state, epoch of the leaf (offer: since of A) */
chan lane[16] = [6] of { mtype, byte, byte, byte, byte };
#define LANE(from, to) lane[(from) * SERVERS + (to)]

/* The map, as the coordinator has it, and as each server knows it. */
byte primary[2], standby[2], since[2], epoch[2];
typedef view { byte primary[2]; byte standby[2]; byte since[2]; byte epoch[2]; bool dead[SERVERS] };
view known[SERVERS];

bool dead[SERVERS], cut[SERVERS], fenced[SERVERS];
byte faults;
bool failed[2]; /* one of P and S, one of D and T */

/* The entity at each server. */
#define ABSENT 0
#define OWNED 1
#define LEAVING 2
byte at[SERVERS], version[SERVERS], state[SERVERS], leaf_of[SERVERS];
bool marked[SERVERS];                       /* leaving: the standby knows, the OFFER may go */
byte offered_to[SERVERS], offered_since[SERVERS]; /* the last OFFER; NOBODY: none yet */
/* Offered to this server, not committed. */
bool waits[SERVERS];
byte waits_version[SERVERS], waits_state[SERVERS], asker[SERVERS];
byte fence_a[SERVERS]; /* the highest since of leaf A that this server has heard of */
/* What it holds as a standby. */
#define HELD 1
#define HELD_MARKED 2
#define HELD_PENDING 3
typedef replica { byte what[2]; byte version[2]; byte state[2] };
replica held[SERVERS];

bool crossed, state_set, state_acknowledged, refused_once;

inline serves(x, l, yes) { yes = known[x].primary[l] == x && !fenced[x] && !dead[x] }

inline tell_standby(x, kind, l)
{
    if
    :: known[x].standby[l] != NOBODY -> LANE(x, known[x].standby[l])!kind, l, version[x], state[x], known[x].epoch[l]
    :: else
    fi
}

/* OFFER to whoever has leaf B as far as x knows; to itself without a message. */
inline send_offer(x)
{
    offered_to[x] = known[x].primary[B];
    offered_since[x] = known[x].since[B];
    LANE(x, offered_to[x])!offer, known[x].since[B], version[x], state[x], known[x].since[A]
}

inline take_over(x)
{
    if
    :: at[x] == LEAVING && leaf_of[x] == A -> tell_standby(x, drop, A)
    :: else
    fi;
    waits[x] = false;
    at[x] = OWNED;
    leaf_of[x] = B;
    version[x] = waits_version[x] + 1;
    state[x] = waits_state[x];
    offered_to[x] = NOBODY;
    tell_standby(x, put, B);
    if
    :: asker[x] != x -> LANE(x, asker[x])!accept, B, version[x], 0, 0
    :: else
    fi
}

/* Who is not the owner (any more) does not answer: the source asks again when it hears who is. */
inline receive_offer(x, from, v, value, since_from)
{
    if
    :: BREAK != 1 && since_from < fence_a[x]
    :: else ->
        fence_a[x] = since_from;
        if
        :: known[x].primary[B] != x && BREAK == 9 -> LANE(x, from)!refuse, l, v, 0, 0
        :: known[x].primary[B] != x && BREAK != 9
        :: known[x].primary[B] == x && !refused_once && !(at[x] == OWNED && version[x] > v) && (!waits[x] || BREAK == 10) ->
            /* It is full: the source keeps it. What it has already, or waits for, it can't refuse. */
            refused_once = true;
            LANE(x, from)!refuse, l, v, 0, 0
        :: known[x].primary[B] == x && at[x] == OWNED && version[x] > v && BREAK != 2 ->
            LANE(x, from)!accept, B, version[x], 0, 0
        :: known[x].primary[B] == x && (at[x] != OWNED || version[x] <= v || BREAK == 2) ->
            waits[x] = true;
            waits_version[x] = v;
            waits_state[x] = value;
            asker[x] = from;
            if
            :: known[x].standby[B] != NOBODY && BREAK != 3 ->
                LANE(x, known[x].standby[B])!pending, B, v, value, known[x].epoch[B]
            :: else -> take_over(x)
            fi
        fi
    fi
}

/* A standby hears its primary. Promoted or replaced, it says nothing: the sender must not count on it. */
inline receive_put(x, from, kind, l, v, value, e)
{
    if
    :: known[x].primary[l] == x || e < known[x].epoch[l]
    :: else ->
        if
        :: kind == drop -> held[x].what[l] = 0
        :: kind == mark -> held[x].what[l] = (BREAK == 4 -> HELD : HELD_MARKED)
        :: kind == pending -> held[x].what[l] = HELD_PENDING
        :: kind == put -> held[x].what[l] = HELD
        fi;
        held[x].version[l] = v;
        held[x].state[l] = value;
        if
        :: kind == mark -> LANE(x, from)!ack_mark, l, v, 0, 0
        :: kind == pending -> LANE(x, from)!ack_pending, l, v, 0, 0
        :: kind == put && value -> LANE(x, from)!ack_state, l, v, 0, 0
        :: else
        fi
    fi
}

inline receive(x, from)
{
    LANE(from, x)?kind, l, v, value, e;
    if
    :: kind == offer -> receive_offer(x, from, v, value, e)
    :: kind == put || kind == mark || kind == pending || kind == drop -> receive_put(x, from, kind, l, v, value, e)
    :: kind == ack_mark ->
        if
        :: at[x] == LEAVING && !marked[x] && version[x] == v -> marked[x] = true
        :: else
        fi
    :: kind == ack_pending ->
        if
        :: waits[x] && waits_version[x] == v && known[x].primary[B] == x && !fenced[x] -> take_over(x)
        :: else
        fi
    :: kind == ack_state ->
        if
        :: at[x] != ABSENT && state[x] -> state_acknowledged = true
        :: else
        fi
    :: kind == accept ->
        if
        :: at[x] == LEAVING && v > version[x] -> tell_standby(x, drop, A); at[x] = ABSENT
        :: else
        fi
    :: kind == refuse ->
        if
        :: at[x] == LEAVING && v == version[x] && offered_to[x] == from && offered_since[x] == l ->
            at[x] = OWNED;
            marked[x] = false;
            offered_to[x] = NOBODY;
            crossed = false; /* it is still past the border: tried again */
            tell_standby(x, put, A)
        :: else
        fi
    fi;
    kind = put; l = 0; v = 0; value = 0; e = 0
}

inline lose_rest(from, x)
{
    do
    :: nempty(LANE(from, x)) -> LANE(from, x)?kind, l, v, value, e
    :: empty(LANE(from, x)) -> break
    od;
    kind = put; l = 0; v = 0; value = 0; e = 0
}

/* What x holds of leaf l becomes what it answers for. */
inline promote(x, l)
{
    if
    :: held[x].what[l] == 0
    :: held[x].what[l] == HELD && (at[x] == ABSENT || version[x] <= held[x].version[l]) ->
        at[x] = OWNED; leaf_of[x] = l; version[x] = held[x].version[l] + 1; state[x] = held[x].state[l];
        offered_to[x] = NOBODY; waits[x] = false
    :: held[x].what[l] == HELD_MARKED && (at[x] == ABSENT || version[x] < held[x].version[l]) ->
        at[x] = LEAVING; leaf_of[x] = l; version[x] = held[x].version[l]; state[x] = held[x].state[l];
        marked[x] = true; offered_to[x] = NOBODY
    :: held[x].what[l] == HELD_PENDING && (at[x] == ABSENT || version[x] <= held[x].version[l]) ->
        at[x] = OWNED; leaf_of[x] = l; version[x] = held[x].version[l] + 1; state[x] = held[x].state[l];
        offered_to[x] = NOBODY; waits[x] = false
    :: else
    fi;
    held[x].what[l] = 0
}

/* x hears of the map as it is now. */
inline learn(x)
{
    byte_l = 0;
    do
    :: byte_l < 2 ->
        if
        :: known[x].primary[byte_l] == x && primary[byte_l] != x -> /* given up */
            if
            :: at[x] != ABSENT && leaf_of[x] == byte_l -> at[x] = ABSENT
            :: else
            fi;
            if
            :: byte_l == B -> waits[x] = false
            :: else
            fi
        :: else
        fi;
        byte_l++
    :: else -> break
    od;
    byte_l = 0;
    do
    :: byte_l < 2 ->
        was = known[x].primary[byte_l];
        known[x].primary[byte_l] = primary[byte_l];
        known[x].standby[byte_l] = standby[byte_l];
        known[x].since[byte_l] = since[byte_l];
        known[x].epoch[byte_l] = epoch[byte_l];
        if
        :: byte_l == A && since[A] > fence_a[x] -> fence_a[x] = since[A]
        :: else
        fi;
        if
        :: was != x && primary[byte_l] == x -> promote(x, byte_l)
        :: else
        fi;
        byte_l++
    :: else -> break
    od;
    was = 0; byte_l = 0;
    /* Without a standby nobody needs to be waited for. */
    if
    :: at[x] == LEAVING && known[x].standby[A] == NOBODY -> marked[x] = true
    :: else
    fi;
    if
    :: at[x] != ABSENT && state[x] && known[x].primary[leaf_of[x]] == x && known[x].standby[leaf_of[x]] == NOBODY ->
        state_acknowledged = true
    :: else
    fi;
    if
    :: waits[x] && known[x].standby[B] == NOBODY && known[x].primary[B] == x && !fenced[x] -> take_over(x)
    :: else
    fi
}

#define BEHIND(x) (known[x].epoch[A] != epoch[A] || known[x].epoch[B] != epoch[B])
#define OFFER_DUE(x) (at[x] == LEAVING && marked[x] && known[x].primary[A] == x && known[x].primary[B] != NOBODY && \
    (offered_to[x] == NOBODY || (BREAK != 5 && (offered_to[x] != known[x].primary[B] || offered_since[x] != known[x].since[B]))))

/* An OFFER under a later since than is known here waits until the map is known: what is held for that leaf may hold the
 * entity already. */
#define READABLE(from, x) (nempty(LANE(from, x)) && \
    (BREAK == 9 || !((LANE(from, x)?[offer, 2, _, _, _] && known[x].since[B] < 2) || \
                     (LANE(from, x)?[offer, 3, _, _, _] && known[x].since[B] < 3))))

proctype server(byte x)
{
    mtype kind = put;
    byte l, v, value, e, byte_l, was;
    bool yes;
end:
    do
    :: atomic { !dead[x] && !fenced[x] && READABLE(0, x) -> receive(x, 0) }
    :: atomic { !dead[x] && !fenced[x] && READABLE(1, x) -> receive(x, 1) }
    :: atomic { !dead[x] && !fenced[x] && READABLE(2, x) -> receive(x, 2) }
    :: atomic { !dead[x] && !fenced[x] && READABLE(3, x) -> receive(x, 3) }
    /* What a server that has died had sent may be lost, from some message on. */
    :: atomic { !dead[x] && dead[0] && nempty(LANE(0, x)) -> lose_rest(0, x) }
    :: atomic { !dead[x] && dead[1] && nempty(LANE(1, x)) -> lose_rest(1, x) }
    :: atomic { !dead[x] && dead[2] && nempty(LANE(2, x)) -> lose_rest(2, x) }
    :: atomic { !dead[x] && dead[3] && nempty(LANE(3, x)) -> lose_rest(3, x) }
    :: atomic { !dead[x] && !cut[x] && BEHIND(x) -> learn(x); fenced[x] = false }
    /* Past the border. */
    :: atomic { !dead[x] && !fenced[x] && !crossed && at[x] == OWNED && leaf_of[x] == A && known[x].primary[A] == x ->
        crossed = true;
        at[x] = LEAVING;
        marked[x] = known[x].standby[A] == NOBODY || BREAK == 6;
        offered_to[x] = NOBODY;
        tell_standby(x, mark, A) }
    :: atomic { !dead[x] && !fenced[x] && OFFER_DUE(x) -> send_offer(x) }
    /* The player sets the state. */
    :: atomic { !dead[x] && !fenced[x] && !state_set && at[x] == OWNED && known[x].primary[leaf_of[x]] == x ->
        state_set = true;
        state[x] = 1;
        tell_standby(x, put, leaf_of[x]);
        if
        :: known[x].standby[leaf_of[x]] == NOBODY || BREAK == 7 -> state_acknowledged = true
        :: else
        fi }
    :: dead[x] -> break
    od
}

/* One change of the map for all that follows from one loss. */
inline lose(x)
{
    byte_l = 0;
    do
    :: byte_l < 2 ->
        if
        :: primary[byte_l] == x && standby[byte_l] != NOBODY ->
            primary[byte_l] = standby[byte_l];
            standby[byte_l] = NOBODY;
            epoch[byte_l]++;
            since[byte_l] = epoch[byte_l]
        :: standby[byte_l] == x ->
            standby[byte_l] = NOBODY;
            epoch[byte_l]++
        :: else
        fi;
        byte_l++
    :: else -> break
    od;
    byte_l = 0
}

#define IS_MEMBER(x) (x == P || x == S || x == D || x == T)
/* Never both servers of one leaf. */
#define MAY_FAIL(x) (IS_MEMBER(x) && !failed[(x) / 2])

proctype coordinator()
{
    byte byte_l, x;
    do
    :: faults < FAULTS ->
        if
        :: x = 0
        :: x = 1
        :: x = 2
        :: x = 3
        fi;
        atomic {
            if
            :: MAY_FAIL(x) -> dead[x] = true
            :: MAY_FAIL(x) -> cut[x] = true
            :: else -> goto over
            fi;
            faults++;
            failed[x / 2] = true
        };
        /* A server that is cut off stops by itself before anybody takes its place. */
        if
        :: cut[x] && BREAK != 8 -> fenced[x] = true
        :: else
        fi;
        atomic { lose(x) };
        cut[x] = false /* it hears of it when it is back */
    :: break
    od;
over: skip
}

#define ANSWERS(x) (!dead[x] && !fenced[x] && at[x] == OWNED && known[x].primary[leaf_of[x]] == x)
#define COUNT (ANSWERS(0) + ANSWERS(1) + ANSWERS(2) + ANSWERS(3))
#define ALL_OWNED ((!dead[0] && at[0] != ABSENT) + (!dead[1] && at[1] != ABSENT) + (!dead[2] && at[2] != ABSENT) + (!dead[3] && at[3] != ABSENT))

/* Always, and at the end: timeout means that nobody has anything left to do. */
proctype watch()
{
    do
    :: COUNT > 1 -> assert(false)
    :: timeout ->
        assert(COUNT == 1);
        assert(ALL_OWNED == 1);
        assert(!state_acknowledged || (ANSWERS(0) && state[0]) || (ANSWERS(1) && state[1]) ||
               (ANSWERS(2) && state[2]) || (ANSWERS(3) && state[3]));
        break
    od
}

init
{
    byte x;
    atomic {
        primary[A] = P; standby[A] = S; since[A] = 1; epoch[A] = 1;
        primary[B] = D; standby[B] = T; since[B] = 1; epoch[B] = 1;
        x = 0;
        do
        :: x < SERVERS ->
            known[x].primary[A] = P; known[x].standby[A] = S; known[x].since[A] = 1; known[x].epoch[A] = 1;
            known[x].primary[B] = D; known[x].standby[B] = T; known[x].since[B] = 1; known[x].epoch[B] = 1;
            offered_to[x] = NOBODY;
            fence_a[x] = 1;
            x++
        :: else -> break
        od;
        at[P] = OWNED; version[P] = 1; leaf_of[P] = A;
        held[S].what[A] = HELD; held[S].version[A] = 1;
        x = 0;
        do
        :: x < SERVERS -> run server(x); x++
        :: else -> break
        od;
        run coordinator();
        run watch()
    }
}
