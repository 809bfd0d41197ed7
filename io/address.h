/* "HOST:PORT" made a listening TCP socket, for what is not nng's (link.h).
 *
 * Memory: the caller's. */
#ifndef TERRANE_IO_ADDRESS_H
#define TERRANE_IO_ADDRESS_H

#include "common/errors.h"
#include "common/limits.h"

#include <stdbool.h>
#include <stddef.h>

/* Splits "HOST:PORT" or "[HOST]:PORT"; brackets are left out of host[LIMIT_URL]. False: neither form, or no port. */
bool address_split(const char *text, char *host, uint16_t *port);
/* A non-blocking listening socket. place[LIMIT_URL] gets what was bound, "HOST:PORT" with the real port.
 * `fault` says what is wrong and what to do. Errors: ADDRESS. */
enum terrane_error address_listen(const char *text, int *fd, char *place, char *fault, size_t room) TERRANE_MUST_CHECK;

#endif
