/* Counts the heap allocations of the whole program, for "the steady state allocates nothing".
 *
 * Include it in one file of a program only: it defines malloc and its kin, or, where a sanitizer owns them, installs
 * the sanitizer's hook. Call allocations_start once, first. */
#ifndef TERRANE_TESTS_UNIT_ALLOCATIONS_H
#define TERRANE_TESTS_UNIT_ALLOCATIONS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define ALLOCATIONS_BY_HOOK 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATIONS_BY_HOOK 1
#endif

static uint64_t allocations;

#ifdef ALLOCATIONS_BY_HOOK

int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *, size_t),
                                              void (*freed)(const volatile void *));

static void allocations_allocated(const volatile void *memory, size_t size)
{
    (void)memory;
    (void)size;
    allocations++;
}
static void allocations_freed(const volatile void *memory)
{
    (void)memory;
}

static inline void allocations_start(void)
{
    (void)__sanitizer_install_malloc_and_free_hooks(allocations_allocated, allocations_freed);
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    allocations++;
    return __libc_realloc(memory, size);
}

static inline void allocations_start(void) {}

#endif

#endif
