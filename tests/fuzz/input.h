/* The fuzzer's bytes as a source of choices. Behind their end every choice is 0. */
#ifndef TERRANE_TESTS_FUZZ_INPUT_H
#define TERRANE_TESTS_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input {
    const uint8_t *at, *end;
};

static inline bool input_ended(const struct input *in)
{
    return in->at == in->end;
}

static inline uint8_t input_byte(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static inline uint32_t input_word(struct input *in)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) v = v << 8 | input_byte(in);
    return v;
}

static inline uint64_t input_long(struct input *in)
{
    uint64_t high = input_word(in);
    return high << 32 | input_word(in);
}

/* 0 to count - 1. */
static inline uint32_t input_choice(struct input *in, uint32_t count)
{
    return input_byte(in) % count;
}

/* At most `most` bytes; *size is how many there are. */
static inline const uint8_t *input_bytes(struct input *in, size_t most, size_t *size)
{
    size_t left = (size_t)(in->end - in->at);
    const uint8_t *bytes = in->at;
    *size = most < left ? most : left;
    in->at += *size;
    return bytes;
}

#endif
