#include "common/errors.h"

#include "common/check.h"

#include <stdio.h>
#include <stdlib.h>

const char *terrane_error_text(enum terrane_error error)
{
    switch (error) {
#define X(NAME, name, number, text)                                                                                    \
    case TERRANE_ERR_##NAME: return text;
        TERRANE_ERRORS(X)
#undef X
    }
    return "unknown error";
}

const char *terrane_error_name(enum terrane_error error)
{
    switch (error) {
#define X(NAME, name, number, text)                                                                                    \
    case TERRANE_ERR_##NAME: return #name;
        TERRANE_ERRORS(X)
#undef X
    }
    return "unknown";
}

_Noreturn void check_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, condition);
    abort();
}
