/* Which cluster a command asks, and how: the flags that all commands of that kind share, so that they have the same
 * names, defaults and help everywhere.
 *
 *     static struct flags { struct target target; bool wait; } flags;
 *     static const struct config_field fields[] = {TARGET_FIELDS(flags.target, "2000", "One object."), ...};
 *
 * Memory: texts point into argv, the environment or the tables. */
#ifndef TERRANE_TOOLS_TARGET_H
#define TERRANE_TOOLS_TARGET_H

#include "tools/cluster.h"
#include "tools/command.h"

struct target {
    const char *coordinator, *query;
    uint64_t patience;
    bool json;
};

/* clang-format off */
#define TARGET_URL_FIELDS(target)                                                                                      \
    {.name = "coordinator", .kind = CONFIG_TEXT, .value = &(target).coordinator, .preset = "tcp://127.0.0.1:7070",     \
     .unit = "URL", .help = "The coordinator's inbox; several, separated by commas."},                                 \
    {.name = "query", .kind = CONFIG_TEXT, .value = &(target).query, .preset = "", .unit = "URL",                      \
     .help = "The coordinators' query sockets; none: the ports behind their inboxes."}
/* `patience_ms` and `json_help` are texts: the default, and what --json prints. */
#define TARGET_FIELDS(target, patience_ms, json_help)                                                                  \
    TARGET_URL_FIELDS(target),                                                                                         \
    {.name = "patience", .kind = CONFIG_UINT, .value = &(target).patience, .preset = patience_ms, .min = 10,           \
     .max = 3600000, .unit = "MS", .help = "How long an answer, or what is waited for, may take."},                    \
    {.name = "json", .kind = CONFIG_BOOL, .value = &(target).json, .preset = "0", .help = json_help}
/* clang-format on */

/* Opens the cluster that the flags name; ends with EXIT_USAGE if they can't be used. */
static inline void target_open(const char *name, const struct target *target, struct cluster *out)
{
    cluster_open(out, command_query_urls(name, target->coordinator, target->query));
}

/* cluster_refresh_all, or, if nobody answers, ends with EXIT_MISSING and says where it asked; an answer that makes no
 * sense ends with EXIT_NOT_HELD. */
void target_refresh(const char *name, const struct target *target, struct cluster *c);

#endif
