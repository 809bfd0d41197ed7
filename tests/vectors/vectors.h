/* The protocol's test vectors: what is in proto/vectors/, how it is made, how it is read back.
 *
 * A vector is one message of a lane: a name, its fields as JSON in the order of the wire, its bytes. The builders make
 * the bytes by the encoders; vector_fields makes the JSON by the decoders; the files are what both must agree with.
 * Memory: a vector_list owns all of its vectors. */
#ifndef TERRANE_TESTS_VECTORS_H
#define TERRANE_TESTS_VECTORS_H

#include "proto/frame.h"
#include "proto/messages.h"
#include "proto/packet.h"

enum vector_kind {
    VECTOR_MESSAGE, /* [kind, ...] */
    VECTOR_PACKET,  /* the inbox envelope */
    VECTOR_FRAME,   /* topic and body */
};

/* One builder. `file` is the base name under proto/vectors/; cases of one file stand together. */
struct vector_case {
    const char *file, *name;
    enum vector_kind kind;
    void (*build)(struct writer *w);
};
extern const struct vector_case vector_cases_member[], vector_cases_command[], vector_cases_view[],
    vector_cases_stream[], vector_cases_standby[], vector_cases_registry[], vector_cases_survey[], vector_cases_trace[],
    vector_cases_frame[]; /* each ends with a case without a file */
/* The tables in the order above; NULL behind the last. */
const struct vector_case *vector_table(size_t index);

struct vector {
    char file[32], name[96];
    enum vector_kind kind;
    char *fields; /* JSON, one line */
    uint8_t *bytes;
    size_t size;
};
struct vector_list {
    struct vector *items;
    uint32_t count, room;
};
/* Reads every vector of directory `path`, files in the order of their names. Ends the process with a message on stderr
 * if a file can't be understood. */
void vector_list_load(struct vector_list *list, const char *path);
void vector_list_close(struct vector_list *list);

/* JSON text that grows. */
struct text {
    struct writer out;
    bool more; /* a comma is due */
};
void text_open(struct text *t, const char *key, char bracket);
void text_close(struct text *t, char bracket);
void text_uint(struct text *t, const char *key, uint64_t v);
void text_bool(struct text *t, const char *key, bool v);
void text_int(struct text *t, const char *key, int64_t v);
void text_double(struct text *t, const char *key, double v);
void text_str(struct text *t, const char *key, const char *v, size_t size);
void text_bin(struct text *t, const char *key, const uint8_t *v, size_t size); /* lower-case hex */
void text_quadkey(struct text *t, const char *key, struct quadkey k);
void text_record(struct text *t, const char *key, const struct entity_record *record);
void text_position(struct text *t, struct position p);

/* Decodes with the protocol's decoders, walks every list to its end, and writes one JSON object. Errors: the decoder's;
 * fails the CHECK that a decoded list's length is the announced one. */
enum terrane_error vector_fields(enum vector_kind kind, const uint8_t *bytes, size_t size, struct text *t);
enum terrane_error message_fields(struct cursor message, struct text *t);
enum terrane_error frame_fields(const uint8_t *bytes, size_t size, struct text *t);
/* Parts of message_fields: each knows some kinds and says so. */
bool member_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error);
bool command_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error);
bool view_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error);
bool stream_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error);
bool standby_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error);
bool registry_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error);
bool survey_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error);
bool trace_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error);

#endif
