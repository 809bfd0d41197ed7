/* Where things are on this machine: free ports, programs.
 * What it is not: no reservation: a free port may be taken by another before it is used. */
#ifndef TERRANE_TOOLS_PLACES_H
#define TERRANE_TOOLS_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ports of 127.0.0.1 that nobody listens on: one, or the first of `count` in a row. 0: none found. */
uint16_t places_free_port(void);
uint16_t places_free_ports(uint16_t count);
bool places_ports_free(uint16_t first, uint16_t count);
/* Whether somebody takes connections at that port of 127.0.0.1 now. */
bool places_listens(uint16_t port);
/* The folder of this program; false if the cluster's other programs are not beside it. */
bool places_programs(char *out, size_t room);
bool places_in_path(const char *program);
/* Removes a folder that holds files, and folders of files. */
void places_remove_folder(const char *folder);

#endif
