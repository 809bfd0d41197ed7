/* What the messages' codecs share: heads, and fields that occur in many messages. Private to proto/.
 *
 * Reading is sticky (wire.h): a decoder reads straight through and asks cursor_end once. */
#ifndef TERRANE_PROTO_CODEC_H
#define TERRANE_PROTO_CODEC_H

#include "proto/messages.h"

/* [kind, `fields` more...]. */
void head_write(struct writer *w, enum message_kind kind, uint32_t fields);
/* Fails with MESSAGE_RANGE unless the head says exactly that. */
void head_read(struct cursor *c, enum message_kind kind, uint32_t fields);
/* The same where a message may be of two kinds. */
void head_read_either(struct cursor *c, enum message_kind a, enum message_kind b, uint32_t fields);

/* A value from 0 to last. */
uint32_t choice_read(struct cursor *c, uint32_t last);
uint32_t word_read(struct cursor *c);
uint64_t number_read(struct cursor *c);
struct entity_id id_read(struct cursor *c); /* not 0 */
struct node_id node_read(struct cursor *c); /* not NODE_NONE */
struct node_id node_or_none_read(struct cursor *c);
uint64_t version_read(struct cursor *c);         /* at most VERSION_MAX */
uint32_t radius_read(struct cursor *c);          /* at most INT32_MAX */
enum terrane_error error_read(struct cursor *c); /* one of the list */
enum stream_kind stream_read(struct cursor *c);
void parts_read(struct cursor *c, uint32_t *part, uint32_t *parts); /* part < parts */

/* `list` becomes a cursor over exactly what has been read between open and close. */
struct cursor list_open(const struct cursor *c);
void list_close(struct cursor *list, const struct cursor *c);
bool list_more(const struct cursor *list);

/* A list of entity ids, none 0; ascending: each above the one before. */
struct cursor ids_read(struct cursor *c, bool ascending, uint32_t *count);

void text_plain_read(struct cursor *c, char *out, size_t room); /* printable ASCII but \" and \\ */
void world_write(struct writer *w, const struct world *world);
void world_read(struct cursor *c, struct world *world); /* as world_check allows it */
/* The six fields, without an array around them. Read: since <= epoch, and 0 only where epoch is 0. */
void leaf_owner_write(struct writer *w, const struct leaf_owner *leaf);
void leaf_owner_read(struct cursor *c, struct leaf_owner *leaf);
void node_info_write(struct writer *w, const struct node_info *info);
void node_info_read(struct cursor *c, struct node_info *info);

#endif
