#include "io/store_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SENTINEL_SCHEME "redis-sentinel://"

static int port_of(const char *text)
{
    char *end = NULL;
    unsigned long port = strtoul(text, &end, 10);
    bool digits = text[0] >= '0' && text[0] <= '9' && *end == '\0';
    return digits && port >= 1 && port <= 65535 ? (int)port : 0;
}

bool store_place_numeric(const char *host, const char *port, struct store_place *out)
{
    uint8_t bytes[16];
    bool numeric = inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
    *out = (struct store_place){.port = port_of(port)};
    if (!numeric || out->port == 0 || strlen(host) >= sizeof out->host) return false;
    memcpy(out->host, host, strlen(host) + 1);
    return true;
}

static enum terrane_error look_up(struct store_address *a, const char *host, int port, char *fault, size_t room)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    uint8_t bytes[16];
    a->named |= inet_pton(AF_INET, host, bytes) != 1 && inet_pton(AF_INET6, host, bytes) != 1;
    int result = getaddrinfo(host, NULL, &hints, &found);
    for (const struct addrinfo *at = found; result == 0 && at != NULL && a->count < STORE_PLACES_MAX;
         at = at->ai_next) {
        struct store_place *place = &a->places[a->count++];
        place->port = port;
        result = getnameinfo(at->ai_addr, at->ai_addrlen, place->host, sizeof place->host, NULL, 0, NI_NUMERICHOST);
    }
    if (found != NULL) freeaddrinfo(found);
    if (result == 0) return TERRANE_ERR_OK;
    snprintf(fault, room, "the store's host \"%s\" can't be found: %s", host, gai_strerror(result));
    return TERRANE_ERR_ADDRESS;
}

/* One HOST:PORT of `size` bytes. */
static enum terrane_error add_place(struct store_address *a, const char *text, size_t size, char *fault, size_t room)
{
    char place[320], host[256];
    snprintf(place, sizeof place, "%.*s", (int)(size < sizeof place ? size : sizeof place - 1), text);
    const char *colon = strrchr(place, ':');
    size_t length = colon == NULL ? 0 : (size_t)(colon - place);
    int port = colon == NULL ? 0 : port_of(colon + 1);
    if (length == 0 || length >= sizeof host || size >= sizeof place || port == 0) {
        snprintf(fault, room,
                 "the store's address \"%.200s\" is neither HOST:PORT nor unix:PATH nor " SENTINEL_SCHEME
                 "HOST:PORT,HOST:PORT/MASTER",
                 place);
        return TERRANE_ERR_ADDRESS;
    }
    bool bracketed = length > 2 && place[0] == '[' && place[length - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(bracketed ? length - 2 : length), bracketed ? place + 1 : place);
    return look_up(a, host, port, fault, room);
}

static enum terrane_error parse_path(const char *path, struct store_address *out, char *fault, size_t room)
{
    snprintf(out->places[0].host, sizeof out->places[0].host, "%s", path);
    out->count = 1;
    if (strlen(path) > 0 && strlen(path) < 108) return TERRANE_ERR_OK;
    snprintf(fault, room, "the store's path \"%.128s\" is empty or longer than 107 bytes", path);
    return TERRANE_ERR_ADDRESS;
}

static enum terrane_error parse_sentinels(const char *text, struct store_address *out, char *fault, size_t room)
{
    const char *slash = strchr(text, '/');
    size_t length = slash == NULL ? 0 : strlen(slash + 1);
    if (length == 0 || length >= sizeof out->master || strpbrk(slash + 1, "/ ") != NULL) {
        snprintf(fault, room,
                 "the store's address \"" SENTINEL_SCHEME "%.128s\" must end in /MASTER, the name under "
                 "which the sentinels know the server",
                 text);
        return TERRANE_ERR_ADDRESS;
    }
    memcpy(out->master, slash + 1, length + 1);
    for (const char *at = text; at <= slash;) {
        size_t size = strcspn(at, ",/");
        enum terrane_error error = add_place(out, at, size, fault, room);
        if (error != TERRANE_ERR_OK) return error;
        at += size + 1;
    }
    return TERRANE_ERR_OK;
}

enum terrane_error store_address_parse(const char *text, struct store_address *out, char *fault, size_t room)
{
    size_t scheme = strlen(SENTINEL_SCHEME);
    *out = (struct store_address){0};
    if (strncmp(text, "unix:", 5) == 0) return parse_path(text + 5, out, fault, room);
    if (strncmp(text, SENTINEL_SCHEME, scheme) == 0) return parse_sentinels(text + scheme, out, fault, room);
    return add_place(out, text, strlen(text), fault, room);
}
