#include "io/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64

bool address_split(const char *text, char *host, uint16_t *port)
{
    const char *colon = strrchr(text, ':');
    if (strlen(text) >= LIMIT_URL || colon == NULL || colon == text) return false;
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > 5 || colon[1 + digits] != '\0') return false;
    unsigned long number = strtoul(colon + 1, NULL, 10);
    size_t size = (size_t)(colon - text);
    bool bracketed = text[0] == '[' && text[size - 1] == ']';
    if (number > 65535 || (!bracketed && memchr(text, ':', size) != NULL) || (bracketed && size < 3)) return false;
    memcpy(host, bracketed ? text + 1 : text, bracketed ? size - 2 : size);
    host[bracketed ? size - 2 : size] = '\0';
    *port = (uint16_t)number;
    return true;
}

static int bound(const struct addrinfo *at)
{
    int on = 1, fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 && bind(fd, at->ai_addr, at->ai_addrlen) == 0 &&
        listen(fd, BACKLOG) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static bool name_of(int fd, char *place)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char host[64], port[8];
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) return false;
    if (getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    bool six = strchr(host, ':') != NULL;
    snprintf(place, LIMIT_URL, "%s%s%s:%s", six ? "[" : "", host, six ? "]" : "", port);
    return true;
}

enum terrane_error address_listen(const char *text, int *fd, char *place, char *fault, size_t room)
{
    char host[LIMIT_URL], service[8];
    uint16_t port;
    if (!address_split(text, host, &port)) {
        snprintf(fault, room, "the address \"%.128s\" is not of the form HOST:PORT", text);
        return TERRANE_ERR_ADDRESS;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found = NULL;
    snprintf(service, sizeof service, "%u", (unsigned)port);
    int result = getaddrinfo(host, service, &hints, &found);
    if (result != 0) {
        snprintf(fault, room, "the host \"%.128s\" can't be found: %s", host, gai_strerror(result));
        return TERRANE_ERR_ADDRESS;
    }
    *fd = bound(found);
    if (*fd < 0)
        snprintf(fault, room, "can't listen on %.128s: %s; free it or choose another port (0: any free one)", text,
                 strerror(errno));
    freeaddrinfo(found);
    if (*fd < 0) return TERRANE_ERR_ADDRESS;
    if (name_of(*fd, place)) return TERRANE_ERR_OK;
    snprintf(fault, room, "no port is known for %.128s", text);
    close(*fd);
    return TERRANE_ERR_ADDRESS;
}
