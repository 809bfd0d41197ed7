/* The checked-in vectors, the encoders, the decoders and msgpack-c must all tell the same. */
#include "tests/unit/suite.h"
#include "tests/vectors/vectors.h"

#include <inttypes.h>
#include <msgpack.h>
#include <stdio.h>
#include <string.h>

static struct vector_list vectors;

static void vectors_need(void)
{
    if (vectors.count == 0) vector_list_load(&vectors, TERRANE_SOURCE_DIR "/proto/vectors");
    ck_assert_uint_gt(vectors.count, 50);
}

static const struct vector *vector_find(const char *file, const char *name)
{
    for (uint32_t i = 0; i < vectors.count; i++) {
        const struct vector *v = &vectors.items[i];
        if (strcmp(v->file, file) == 0 && strcmp(v->name, name) == 0) return v;
    }
    return NULL;
}

START_TEST(encoders_make_exactly_the_bytes_of_the_vectors)
{
    vectors_need();
    uint32_t cases = 0;
    struct writer w = {0};
    for (size_t table = 0; vector_table(table) != NULL; table++) {
        for (const struct vector_case *c = vector_table(table); c->file != NULL; c++, cases++) {
            const struct vector *v = vector_find(c->file, c->name);
            ck_assert_msg(v != NULL, "%s: %s is not in proto/vectors", c->file, c->name);
            writer_clear(&w);
            c->build(&w);
            ck_assert_msg(w.size == v->size && memcmp(w.data, v->bytes, v->size) == 0, "%s: %s", c->file, c->name);
        }
    }
    ck_assert_uint_eq(cases, vectors.count);
    writer_close(&w);
}
END_TEST

START_TEST(decoders_find_exactly_the_fields_of_the_vectors)
{
    vectors_need();
    for (uint32_t i = 0; i < vectors.count; i++) {
        const struct vector *v = &vectors.items[i];
        struct text t = {0};
        ck_assert_msg(vector_fields(v->kind, v->bytes, v->size, &t) == TERRANE_ERR_OK, "%s: %s", v->file, v->name);
        writer_raw(&t.out, "", 1);
        ck_assert_str_eq((const char *)t.out.data, v->fields);
        writer_close(&t.out);
    }
}
END_TEST

START_TEST(every_kind_of_message_has_a_vector_in_a_file_of_its_name)
{
    vectors_need();
#define X(NAME, name, number, lane)                                                                                    \
    {                                                                                                                  \
        uint32_t found = 0;                                                                                            \
        for (uint32_t i = 0; i < vectors.count; i++) {                                                                 \
            const struct vector *v = &vectors.items[i];                                                                \
            enum message_kind kind = MESSAGE_FAULT;                                                                    \
            if (v->kind != VECTOR_MESSAGE || strcmp(v->file, #name) != 0) continue;                                    \
            ck_assert_int_eq(message_kind_of(cursor_of(v->bytes, v->size), &kind), TERRANE_ERR_OK);                    \
            ck_assert_int_eq(kind, MESSAGE_##NAME);                                                                    \
            ck_assert_str_eq(message_kind_name(kind), #name);                                                          \
            found++;                                                                                                   \
        }                                                                                                              \
        ck_assert_msg(found > 0, "no vector of %s", #name);                                                            \
    }
    MESSAGE_KINDS(X)
#undef X
}
END_TEST

/* The scalars of a value in the order of the bytes, one a line. */
static void flatten_object(const msgpack_object *o, struct text *t)
{
    t->more = false;
    if (o->type == MSGPACK_OBJECT_ARRAY) {
        for (uint32_t i = 0; i < o->via.array.size; i++) flatten_object(&o->via.array.ptr[i], t);
        return;
    }
    if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        text_uint(t, NULL, o->via.u64);
    else if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        text_int(t, NULL, o->via.i64);
    else if (o->type == MSGPACK_OBJECT_FLOAT64)
        text_double(t, NULL, o->via.f64);
    else if (o->type == MSGPACK_OBJECT_BOOLEAN)
        text_bool(t, NULL, o->via.boolean);
    else if (o->type == MSGPACK_OBJECT_STR)
        text_str(t, NULL, o->via.str.ptr, o->via.str.size);
    else if (o->type == MSGPACK_OBJECT_BIN)
        text_bin(t, NULL, (const uint8_t *)o->via.bin.ptr, o->via.bin.size);
    else
        ck_abort_msg("a type that never occurs");
    writer_raw(&t->out, "\n", 1);
}

/* The same of the JSON of a vector: every value that is no object or array. */
static void flatten_json(const char *at, struct text *t)
{
    while (*at != '\0') {
        size_t size = 1;
        if (*at == '"') {
            while (at[size] != '"') size += at[size] == '\\' ? 2 : 1;
            size++;
        } else if (strchr("-0123456789", *at) != NULL) {
            size = strspn(at, "-+.e0123456789");
        } else if (*at == 't' || *at == 'f') {
            size = *at == 't' ? 4 : 5;
        } else {
            at++;
            continue;
        }
        if (at[size] != ':') {
            writer_raw(&t->out, at, size);
            writer_raw(&t->out, "\n", 1);
        }
        at += size;
    }
}

START_TEST(msgpack_c_reads_the_same_values_in_the_same_order)
{
    vectors_need();
    for (uint32_t i = 0; i < vectors.count; i++) {
        const struct vector *v = &vectors.items[i];
        struct topic topic = {0};
        if (v->kind == VECTOR_FRAME) ck_assert_int_eq(topic_decode(v->bytes, v->size, &topic), TERRANE_ERR_OK);
        msgpack_unpacked unpacked;
        msgpack_unpacked_init(&unpacked);
        size_t offset = topic.size;
        msgpack_unpack_return result = msgpack_unpack_next(&unpacked, (const char *)v->bytes, v->size, &offset);
        ck_assert_int_eq(result, MSGPACK_UNPACK_SUCCESS);
        ck_assert_uint_eq(offset, v->size);
        struct text wire = {0}, json = {0};
        flatten_object(&unpacked.data, &wire);
        flatten_json(v->fields, &json);
        writer_raw(&wire.out, "", 1);
        writer_raw(&json.out, "", 1);
        ck_assert_str_eq((const char *)wire.out.data, (const char *)json.out.data);
        writer_close(&wire.out);
        writer_close(&json.out);
        msgpack_unpacked_destroy(&unpacked);
    }
}
END_TEST

START_TEST(teardown)
{
    vector_list_close(&vectors);
    ck_assert_uint_eq(vectors.count, 0);
}
END_TEST

SUITE_MAIN("vectors", encoders_make_exactly_the_bytes_of_the_vectors, decoders_find_exactly_the_fields_of_the_vectors,
           every_kind_of_message_has_a_vector_in_a_file_of_its_name, msgpack_c_reads_the_same_values_in_the_same_order,
           teardown)
