/* CHECK: a programmer's fault ends the process, in release builds too, with file, line and condition on stderr. */
#ifndef TERRANE_COMMON_CHECK_H
#define TERRANE_COMMON_CHECK_H

_Noreturn void check_failed(const char *file, int line, const char *condition);

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))

#endif
