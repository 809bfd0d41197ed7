/* Flags and environment variables of a program, from one table.
 *
 * A field is a flag `--name VALUE` (or `--name=VALUE`) and a variable TERRANE_NAME (upper case, '-' as '_'); the flag
 * wins over the variable, the variable over the default. `--help` is made from the same table. A boolean is `--name`
 * or `--no-name`, as a variable 1/0, true/false, yes/no, on/off.
 *
 * What it is not: it reads no environment, prints nothing and ends no process; the main.c does, with what it gets back.
 * Memory: values that are texts point into argv, the environment or the table; nothing is allocated. */
#ifndef TERRANE_COMMON_CONFIG_H
#define TERRANE_COMMON_CONFIG_H

#include "common/errors.h"
#include "common/types.h"

enum config_kind {
    CONFIG_TEXT,   /* const char * */
    CONFIG_UINT,   /* uint64_t */
    CONFIG_INT,    /* int64_t */
    CONFIG_DOUBLE, /* double, finite */
    CONFIG_BOOL,   /* bool */
    CONFIG_CHOICE, /* uint32_t: index into `choices` */
};

struct config_field {
    const char *name; /* lower case, words joined by '-' */
    enum config_kind kind;
    void *value;        /* where it goes; its type as the kind says */
    const char *preset; /* the default, written as on the command line; NULL: required (TEXT: "" is a default) */
    double min, max;    /* UINT, INT, DOUBLE; both 0: any value of the type */
    const char *const *choices; /* CHOICE: NULL-terminated */
    const char *unit;           /* what stands for the value in --help: "URL", "N", "SECONDS"; NULL: by kind */
    const char *help;           /* one sentence */
};

struct config {
    const char *program;  /* "terrane-cellserver" */
    const char *summary;  /* one sentence for --help */
    const char *version;  /* for --version */
    const char *operands; /* what may follow the flags, for --help; NULL: nothing may */
    const struct config_field *fields;
    size_t field_count;
    /* The environment: the value of a variable, or NULL. NULL: none is read. (main.c passes getenv's twin.) */
    const char *(*variable)(const char *name);
};

enum config_outcome {
    CONFIG_GO,   /* all values are filled */
    CONFIG_SHOW, /* --help, --version or --flags: print the text to stdout, exit 0 */
    CONFIG_BAD,  /* print the text to stderr, exit 2 */
};

/* Fills all fields' values. `text` (at least CONFIG_ROOM) gets the help, the version, or what is wrong: the value,
 * where it came from and what to do. The operands are argv[*operand .. argc); operand may be NULL if config->operands
 * is. A lone "--" ends the flags; the first word that is no flag does too. */
#define CONFIG_ROOM 16384u
struct config_text {
    char text[CONFIG_ROOM];
};
enum config_outcome config_read(const struct config *config, int argc, char *const *argv, int *operand,
                                struct config_text *out) TERRANE_MUST_CHECK;

/* The variable's name of a field: TERRANE_NAME. Into out[64]. */
void config_variable_name(const struct config_field *field, char *out);

#endif
