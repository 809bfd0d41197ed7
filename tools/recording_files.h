/* Recordings from files: every *.txt of a folder, in the order of their names.
 * Memory: as recording.h. */
#ifndef TERRANE_TOOLS_RECORDING_FILES_H
#define TERRANE_TOOLS_RECORDING_FILES_H

#include "tools/recording.h"

/* Adds all recordings of the folder. Errors: CONFIG (no such folder, nothing in it, unreadable, malformed), LIMIT;
 * `fault` says which file and line. */
enum terrane_error recording_read_folder(struct recording *r, const char *folder,
                                         struct recording_fault *fault) TERRANE_MUST_CHECK;

#endif
