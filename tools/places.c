#include "tools/places.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ATTEMPTS   200u
#define PORT_FIRST 15000u
#define PORT_COUNT 15000u

/* Binds to the port and returns it; 0 if it is taken. */
static uint16_t probe(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1; /* connections that linger from before do not count */
    if (fd < 0) return 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    bool well =
        bind(fd, (struct sockaddr *)&address, size) == 0 && getsockname(fd, (struct sockaddr *)&address, &size) == 0;
    close(fd);
    return well ? ntohs(address.sin_port) : 0;
}

bool places_ports_free(uint16_t first, uint16_t count)
{
    for (uint16_t i = 0; i < count; i++)
        if (probe((uint16_t)(first + i)) == 0) return false;
    return true;
}

/* Below the ports that the system gives to connections: who redials a server that is down could otherwise be given the
 * server's own port, and it would find it taken when it comes back. */
uint16_t places_free_ports(uint16_t count)
{
    uint32_t at = (uint32_t)getpid() * 7919u;
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        uint16_t first = (uint16_t)(PORT_FIRST + (at + attempt * 131u) % PORT_COUNT);
        if (places_ports_free(first, count)) return first;
    }
    return 0;
}

uint16_t places_free_port(void)
{
    return places_free_ports(1);
}

bool places_listens(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool listens = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0) close(fd);
    return listens;
}

static bool is_program(const char *folder, size_t folder_size, const char *name)
{
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%.*s/%s", (int)folder_size, folder, name);
    return size > 0 && (size_t)size < sizeof path && access(path, X_OK) == 0;
}

bool places_programs(char *out, size_t room)
{
    ssize_t size = readlink("/proc/self/exe", out, room - 1);
    if (size <= 0) size = 0;
    out[size] = '\0';
    char *slash = strrchr(out, '/');
    if (slash == NULL) return false;
    *slash = '\0';
    return is_program(out, strlen(out), "terrane-coordinator") && is_program(out, strlen(out), "terrane-cellserver");
}

bool places_in_path(const char *program)
{
    const char *path = getenv("PATH");
    for (const char *at = path != NULL ? path : "/usr/bin:/bin"; *at != '\0';) {
        size_t size = strcspn(at, ":");
        if (size > 0 && is_program(at, size, program)) return true;
        at += size + (at[size] == ':');
    }
    return false;
}

static void remove_folder(const char *folder, bool nested)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[PATH_MAX];
        int size = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || size < 0 || (size_t)size >= sizeof path) continue;
        if (unlink(path) != 0 && nested) remove_folder(path, false);
    }
    closedir(dir);
    rmdir(folder);
}

void places_remove_folder(const char *folder)
{
    remove_folder(folder, true);
}
