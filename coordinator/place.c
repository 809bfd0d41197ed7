/* What operators want of single leaves: PLACE. */
#include "coordinator/internal.h"

#include <stdio.h>

static const char *shown(struct quadkey leaf, char *text)
{
    quadkey_text(leaf, text);
    return text[0] == '\0' ? "(root)" : text;
}

static enum terrane_error find(const struct coordinator *c, struct quadkey leaf, uint32_t *at, char *fault, size_t room)
{
    char text[LIMIT_QUADKEY_TEXT], other[LIMIT_QUADKEY_TEXT];
    *at = coordinator_leaf_find(c, leaf);
    if (*at != NONE) return TERRANE_ERR_OK;
    for (struct quadkey up = quadkey_parent(leaf); up.v != 0; up = quadkey_parent(up)) {
        if (coordinator_leaf_find(c, up) == NONE) continue;
        snprintf(fault, room, "%s lies in leaf %s, which moves as a whole", shown(leaf, text), shown(up, other));
        return TERRANE_ERR_CONFIG;
    }
    snprintf(fault, room, "%s is split into smaller leaves; status --regions shows them", shown(leaf, text));
    return TERRANE_ERR_CONFIG;
}

static enum terrane_error move(struct coordinator *c, uint32_t at, const char *name, struct done *done, char *fault,
                               size_t room)
{
    struct leaf *leaf = &c->leaves[at];
    char key[LIMIT_QUADKEY_TEXT];
    uint32_t to = member_named(c, name);
    shown(leaf->owner.leaf, key);
    if (to == NONE) {
        snprintf(fault, room, "no cell server has the name %.63s; status shows who is there", name);
        return TERRANE_ERR_CONFIG;
    }
    if (node_id_equal(leaf->owner.primary, c->members[to].info.node)) {
        snprintf(done->text, sizeof done->text, "%s is on %.60s", key, name);
        return TERRANE_ERR_OK;
    }
    if (c->options.no_standbys) {
        snprintf(fault, room, "a leaf moves by way of a standby, and standbys are switched off (--standbys 0)");
        return TERRANE_ERR_CONFIG;
    }
    bool on_way = migrate_is_on(leaf) && node_id_equal(leaf->course.target, c->members[to].info.node);
    if (!on_way && !migrate_start(c, at, to, "an operator asks for it")) {
        snprintf(fault, room, "%s can't go to %.60s now: one of both servers is silent or being emptied, or it moves",
                 key, name);
        return TERRANE_ERR_NOT_READY;
    }
    if (!on_way) {
        struct explained *e = explain_add(c, "move", leaf->owner.leaf, leaf->course.why);
        explain_servers(e, member_name(c, leaf->owner.primary), name);
        e->entities = leaf->load;
        e->load = leaf->load;
        outbox_log(c->out, LOG_INFO, "event=move leaf=\"%s\" from=\"%s\" to=\"%s\" entities=%u reason=\"%s\"", key,
                   e->from, e->to, e->entities, e->why);
    }
    done->count = 1;
    snprintf(done->text, sizeof done->text, "%s is on its way to %.60s", key, name);
    return TERRANE_ERR_OK;
}

static void pin(struct coordinator *c, uint32_t at, bool pinned, struct done *done)
{
    struct leaf *leaf = &c->leaves[at];
    char key[LIMIT_QUADKEY_TEXT];
    shown(leaf->owner.leaf, key);
    if (leaf->pinned != pinned) {
        struct explained *e =
            explain_add(c, pinned ? "pinned" : "unpinned", leaf->owner.leaf, "an operator asks for it");
        explain_servers(e, member_name(c, leaf->owner.primary), "");
        outbox_log(c->out, LOG_INFO, "event=%s leaf=\"%s\" reason=\"%s\"", e->kind, key, e->why);
    }
    leaf->pinned = pinned;
    snprintf(done->text, sizeof done->text, "%s %s", key, pinned ? "stays where it is" : "may be moved");
}

enum terrane_error place_ask(struct coordinator *c, const struct place *asked, struct done *done, char *fault,
                             size_t room)
{
    uint32_t at;
    if (!c->ready || !lead_is_fresh(c)) return TERRANE_ERR_NOT_READY;
    enum terrane_error error = find(c, asked->leaf, &at, fault, room);
    if (error != TERRANE_ERR_OK) return error;
    if (asked->what == PLACE_MOVE) return move(c, at, asked->name, done, fault, room);
    pin(c, at, asked->what == PLACE_PIN, done);
    return TERRANE_ERR_OK;
}
