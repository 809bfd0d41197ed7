/* What agents and operators tell the coordinator on the query lane: DEATH, DRAIN, EXPLAIN, PLACE, and the
 * answer DONE. */
#include "proto/codec.h"
#include "proto/frame.h"

void death_encode(struct writer *w, const struct death *m)
{
    head_write(w, MESSAGE_DEATH, 1);
    writer_uint(w, m->node.v);
}

enum terrane_error death_decode(struct cursor c, struct death *m)
{
    head_read(&c, MESSAGE_DEATH, 1);
    m->node = node_read(&c);
    return cursor_end(&c);
}

void drain_encode(struct writer *w, const struct drain *m)
{
    head_write(w, MESSAGE_DRAIN, 1);
    writer_str(w, m->name);
}

enum terrane_error drain_decode(struct cursor c, struct drain *m)
{
    head_read(&c, MESSAGE_DRAIN, 1);
    text_plain_read(&c, m->name, sizeof m->name);
    if (m->name[0] == '\0') cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    return cursor_end(&c);
}

void done_encode(struct writer *w, const struct done *m)
{
    head_write(w, MESSAGE_DONE, 2);
    writer_uint(w, m->count);
    writer_str(w, m->text);
}

enum terrane_error done_decode(struct cursor c, struct done *m)
{
    head_read(&c, MESSAGE_DONE, 2);
    m->count = word_read(&c);
    cursor_str(&c, m->text, sizeof m->text);
    return cursor_end(&c);
}

void explain_encode(struct writer *w, const struct explain *m)
{
    head_write(w, MESSAGE_EXPLAIN, 2);
    writer_uint(w, (uint64_t)m->what);
    writer_uint(w, m->since);
}

enum terrane_error explain_decode(struct cursor c, struct explain *m)
{
    head_read(&c, MESSAGE_EXPLAIN, 2);
    m->what = (enum explain_what)choice_read(&c, EXPLAIN_PLAN);
    m->since = number_read(&c);
    return cursor_end(&c);
}

void place_encode(struct writer *w, const struct place *m)
{
    head_write(w, MESSAGE_PLACE, 3);
    writer_uint(w, (uint64_t)m->what);
    writer_uint(w, m->leaf.v);
    writer_str(w, m->name);
}

enum terrane_error place_decode(struct cursor c, struct place *m)
{
    head_read(&c, MESSAGE_PLACE, 3);
    m->what = (enum place_what)choice_read(&c, PLACE_UNPIN);
    m->leaf = quadkey_read(&c);
    text_plain_read(&c, m->name, sizeof m->name);
    if ((m->name[0] != '\0') != (m->what == PLACE_MOVE)) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    return cursor_end(&c);
}
