/* Where the store is: the words of --redis, and what they come to.
 *
 *   HOST:PORT, [IPV6]:PORT                                a Redis server
 *   unix:PATH                                             the same, on this machine
 *   redis-sentinel://HOST:PORT,HOST:PORT.../MASTER        sentinels that know where MASTER is
 *
 * Names are looked up here, which blocks: in the loop it is lookup.h's work. Memory: a value, nothing to free. */
#ifndef TERRANE_IO_STORE_ADDRESS_H
#define TERRANE_IO_STORE_ADDRESS_H

#include "common/errors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_PLACES_MAX 16u
#define STORE_HOST_ROOM  112u

struct store_place {
    char host[STORE_HOST_ROOM]; /* numeric, or a path */
    int port;                   /* 0: a path */
};

struct store_address {
    struct store_place places[STORE_PLACES_MAX]; /* of the server (all its addresses), or of the sentinels */
    uint32_t count;
    char master[64]; /* "": the places are the server's */
    bool named;      /* some host was a name, and may mean another address later */
};

/* `fault` says what is wrong with which part. Errors: ADDRESS. */
enum terrane_error store_address_parse(const char *text, struct store_address *out, char *fault,
                                       size_t room) TERRANE_MUST_CHECK;
/* A numeric host as it stands, without a look-up. False: it is none, or the port is out of its range. */
bool store_place_numeric(const char *host, const char *port, struct store_place *out);

#endif
