/* A relay that delays TCP: what the kernel lacks here (netem). Connections come to it by a packet filter's redirect; it
 * asks the kernel where they were going, goes there, and passes on every byte `delay` (and a random part of `jitter`)
 * later, in order, both ways.
 *
 * Usage: relay PORT DELAY_MS JITTER_MS. Says "ready" when it listens. It runs until it is killed. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_BYTES  65536u
#define QUEUED_MOST  (4u << 20) /* a direction that holds more is not read from */
#define EVENTS       64
#define SECOND_US    1000000u
#define LOOK_MS_MOST 100

struct chunk {
    struct chunk *next;
    uint64_t due_us;
    size_t size, sent;
    uint8_t bytes[];
};

/* One direction: bytes read from one end wait here until they are written to the other. */
struct way {
    struct chunk *first, *last;
    size_t queued;
    uint64_t due_us; /* of the last chunk: order is kept */
    bool ended;      /* nothing more will come */
    bool closed;     /* the end has been passed on */
};

struct end {
    int fd;
    bool is_first, connecting;
    struct pair *pair;
};

struct pair {
    struct end ends[2];
    struct way ways[2]; /* ways[0]: from ends[0] to ends[1] */
    struct pair *next, *before;
    bool broken;
};

static struct relay {
    int epoll, listener;
    uint64_t delay_us, jitter_us, dice;
    struct pair *pairs;
} relay;

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_US + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t random_below(uint64_t bound)
{
    relay.dice = relay.dice * 6364136223846793005u + 1442695040888963407u;
    return bound == 0 ? 0 : (relay.dice >> 33) % bound;
}

static void watch(struct end *end, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = end};
    epoll_ctl(relay.epoll, operation, end->fd, &event);
}

static void set_up(int fd)
{
    int yes = 1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static void accept_one(void)
{
    struct sockaddr_in wanted;
    socklen_t size = sizeof wanted;
    int from = accept4(relay.listener, NULL, NULL, SOCK_CLOEXEC);
    if (from < 0) return;
    int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pair *pair = calloc(1, sizeof *pair);
    if (to < 0 || pair == NULL || getsockopt(from, SOL_IP, SO_ORIGINAL_DST, &wanted, &size) != 0) {
        close(from);
        if (to >= 0) close(to);
        free(pair);
        return;
    }
    set_up(from);
    set_up(to);
    pair->ends[0] = (struct end){.fd = from, .is_first = true, .pair = pair};
    pair->ends[1] = (struct end){.fd = to, .connecting = true, .pair = pair};
    if (connect(to, (struct sockaddr *)&wanted, sizeof wanted) != 0 && errno != EINPROGRESS) pair->broken = true;
    pair->next = relay.pairs;
    if (relay.pairs != NULL) relay.pairs->before = pair;
    relay.pairs = pair;
    watch(&pair->ends[0], EPOLL_CTL_ADD, EPOLLIN);
    watch(&pair->ends[1], EPOLL_CTL_ADD, EPOLLOUT);
}

/* Reads what there is into the way that begins at this end. */
static void read_end(struct end *end)
{
    struct way *way = &end->pair->ways[end->is_first ? 0 : 1];
    uint8_t bytes[CHUNK_BYTES];
    ssize_t got = read(end->fd, bytes, sizeof bytes);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got < 0) end->pair->broken = true;
    if (got <= 0) {
        way->ended = true;
        return;
    }
    struct chunk *chunk = malloc(sizeof *chunk + (size_t)got);
    if (chunk == NULL) {
        end->pair->broken = true;
        return;
    }
    uint64_t due_us = now_us() + relay.delay_us + random_below(relay.jitter_us);
    *chunk = (struct chunk){.due_us = due_us > way->due_us ? due_us : way->due_us, .size = (size_t)got};
    memcpy(chunk->bytes, bytes, (size_t)got);
    way->due_us = chunk->due_us;
    way->queued += chunk->size;
    if (way->last != NULL)
        way->last->next = chunk;
    else
        way->first = chunk;
    way->last = chunk;
}

/* Writes what is due; true: it would take more but the socket is full. */
static bool write_way(struct pair *pair, uint32_t at, uint64_t now)
{
    struct way *way = &pair->ways[at];
    const struct end *to = &pair->ends[at == 0 ? 1 : 0];
    while (way->first != NULL && way->first->due_us <= now && !to->connecting) {
        struct chunk *chunk = way->first;
        ssize_t sent = send(to->fd, chunk->bytes + chunk->sent, chunk->size - chunk->sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) return true;
        if (sent < 0) {
            pair->broken = true;
            return false;
        }
        chunk->sent += (size_t)sent;
        if (chunk->sent < chunk->size) return true;
        way->queued -= chunk->size;
        way->first = chunk->next;
        if (way->first == NULL) way->last = NULL;
        free(chunk);
    }
    if (way->first == NULL && way->ended && !way->closed && !to->connecting) {
        shutdown(to->fd, SHUT_WR);
        way->closed = true;
    }
    return false;
}

static void drop_pair(struct pair *pair)
{
    for (uint32_t i = 0; i < 2; i++) {
        close(pair->ends[i].fd);
        while (pair->ways[i].first != NULL) {
            struct chunk *chunk = pair->ways[i].first;
            pair->ways[i].first = chunk->next;
            free(chunk);
        }
    }
    if (pair->before != NULL)
        pair->before->next = pair->next;
    else
        relay.pairs = pair->next;
    if (pair->next != NULL) pair->next->before = pair->before;
    free(pair);
}

/* Writes all that is due, forgets what is over; returns when the next chunk is due. */
static uint64_t turn(void)
{
    uint64_t now = now_us(), next_us = UINT64_MAX;
    for (struct pair *pair = relay.pairs, *after; pair != NULL; pair = after) {
        after = pair->next;
        bool full[2];
        for (uint32_t i = 0; i < 2; i++) full[i] = write_way(pair, i, now);
        if (pair->broken || (pair->ways[0].closed && pair->ways[1].closed)) {
            drop_pair(pair);
            continue;
        }
        for (uint32_t i = 0; i < 2; i++) {
            const struct way *from = &pair->ways[i], *to = &pair->ways[1 - i];
            uint32_t events = pair->ends[i].connecting || full[1 - i] ? EPOLLOUT : 0;
            if (!from->ended && from->queued < QUEUED_MOST && !pair->ends[i].connecting) events |= EPOLLIN;
            watch(&pair->ends[i], EPOLL_CTL_MOD, events);
            if (to->first != NULL && !full[1 - i] && to->first->due_us < next_us) next_us = to->first->due_us;
        }
    }
    return next_us;
}

static void handle(const struct epoll_event *event)
{
    struct end *end = event->data.ptr;
    if (end == NULL) {
        accept_one();
        return;
    }
    if (end->connecting && (event->events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(end->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        end->connecting = false;
        if (error != 0) end->pair->broken = true;
        return;
    }
    if ((event->events & EPOLLERR) != 0) end->pair->broken = true;
    if ((event->events & (EPOLLIN | EPOLLHUP)) != 0) read_end(end);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: relay PORT DELAY_MS JITTER_MS\n", stderr);
        return 2;
    }
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10))};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    relay.delay_us = strtoull(argv[2], NULL, 10) * 1000;
    relay.jitter_us = strtoull(argv[3], NULL, 10) * 1000;
    relay.epoll = epoll_create1(EPOLL_CLOEXEC);
    relay.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (bind(relay.listener, (struct sockaddr *)&here, sizeof here) != 0 || listen(relay.listener, 256) != 0) {
        perror("relay");
        return 3;
    }
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(relay.epoll, EPOLL_CTL_ADD, relay.listener, &event);
    puts("ready");
    fflush(stdout);
    for (uint64_t next_us = UINT64_MAX;; next_us = turn()) {
        struct epoll_event events[EVENTS];
        uint64_t now = now_us();
        int wait_ms = next_us <= now                        ? 0
                      : next_us - now > LOOK_MS_MOST * 1000 ? LOOK_MS_MOST
                                                            : (int)((next_us - now) / 1000) + 1;
        int count = epoll_wait(relay.epoll, events, EVENTS, wait_ms);
        for (int i = 0; i < count; i++) handle(&events[i]);
    }
}
