#include "console/consoles.h"

#include "proto/json.h"

#include <stdio.h>
#include <string.h>

/* What a host and port are made of; nothing that could end a policy's source or a header. */
static bool authority(const char *text, size_t size)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";
    for (size_t i = 0; i < size; i++)
        if (strchr(allowed, text[i]) == NULL) return false;
    return size > 0;
}

bool consoles_parse(const char *text, struct consoles *out)
{
    *out = (struct consoles){0};
    for (const char *at = text; *at != '\0';) {
        size_t size = strcspn(at, ",");
        size_t scheme = strncmp(at, "http://", 7) == 0 ? 7 : strncmp(at, "https://", 8) == 0 ? 8 : 0;
        size_t kept = size > scheme && at[size - 1] == '/' ? size - 1 : size;
        if (scheme == 0 || kept >= LIMIT_URL || out->count == CONSOLES_MAX) return false;
        if (kept <= scheme || !authority(at + scheme, kept - scheme)) return false;
        snprintf(out->urls[out->count++], LIMIT_URL, "%.*s", (int)kept, at);
        at += size;
        if (*at == ',' && *++at == '\0') return false;
    }
    return true;
}

void consoles_policy(const struct consoles *consoles, char policy[CONSOLES_POLICY])
{
    size_t size = (size_t)snprintf(policy, CONSOLES_POLICY,
                                   "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
                                   "frame-ancestors 'none'; connect-src 'self'");
    for (uint32_t i = 0; i < consoles->count; i++)
        size += (size_t)snprintf(policy + size, CONSOLES_POLICY - size, " %s", consoles->urls[i]);
}

void consoles_write(const struct consoles *consoles, struct writer *json)
{
    json_open(json, '[');
    for (uint32_t i = 0; i < consoles->count; i++) json_text(json, consoles->urls[i]);
    json_close(json, ']');
}
