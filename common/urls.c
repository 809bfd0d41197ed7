#include "common/urls.h"

#include <string.h>

bool urls_parse(const char *text, struct urls *out)
{
    *out = (struct urls){0};
    for (const char *at = text; at != NULL;) {
        size_t size = strcspn(at, ",");
        if (size == 0 || size >= LIMIT_URL || out->count == URLS_MAX) return false;
        memcpy(out->items[out->count++], at, size);
        at = at[size] == ',' ? at + size + 1 : NULL;
    }
    return out->count > 0;
}

const char *urls_now(const struct urls *urls)
{
    return urls->items[urls->at];
}

bool urls_turn(struct urls *urls, uint64_t now_us)
{
    if (urls->count < 2 || now_us < urls->turn_us) return false;
    urls->at = (urls->at + 1) % urls->count;
    urls->turn_us = now_us + URLS_TURN_US;
    return true;
}
