/* The commands of `terrane`: each reads its own flags, does its work, returns its exit code (io/program.h).
 * argv[0] is the command's full name, "terrane up", for messages. */
#ifndef TERRANE_TOOLS_COMMAND_H
#define TERRANE_TOOLS_COMMAND_H

#include "common/config.h"

int command_up(int argc, char **argv);
int command_bots(int argc, char **argv);
int command_status(int argc, char **argv);
int command_watch(int argc, char **argv);
int command_agent(int argc, char **argv);
int command_drain(int argc, char **argv);
int command_ready(int argc, char **argv);
int command_map(int argc, char **argv);
int command_top(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_find(int argc, char **argv);
int command_trace(int argc, char **argv);
int command_events(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_move(int argc, char **argv);
int command_pin(int argc, char **argv);

/* config_read with this process's environment, for a command's table of fields. Flags may also stand between and behind
 * the operands, unless those are another command ("-- PROGRAM"). */
void command_configure(const char *name, const char *summary, const char *operands, const struct config_field *fields,
                       size_t field_count, int argc, char **argv, int *operand);

/* The one operand of a command that is about one entity: its id. Ends with EXIT_USAGE if it is none. */
uint64_t command_entity(const char *name, int argc, char *const *argv, int operand);

/* Sets *flag at SIGINT and SIGTERM; a second signal ends the process at once. */
void command_heed_signals(volatile bool *flag);

/* The coordinators' query urls, separated by commas: `query` if it is not empty, else the ports behind the inboxes'.
 * Ends with EXIT_USAGE if they can't be used. Static memory, or `query`. */
const char *command_query_urls(const char *name, const char *coordinator, const char *query);

#endif
