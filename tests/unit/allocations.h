/* Counts what the project's libraries allocate while `allocations_counted` is set (libcheck allocates in its asserts):
 * the test's program is linked with --wrap for these three. */
#ifndef TERRANE_TESTS_UNIT_ALLOCATIONS_H
#define TERRANE_TESTS_UNIT_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static uint64_t allocations;
static bool allocations_counted;

void *__wrap_malloc(size_t size)
{
    allocations += allocations_counted;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations += allocations_counted;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    allocations += allocations_counted;
    return __real_realloc(old, size);
}

#endif
