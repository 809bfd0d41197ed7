/* Reads the vectors' files. Not a JSON parser: it relies on the layout that make_vectors writes, and stops where a
 * file has another one. */
#include "common/array.h"
#include "tests/vectors/vectors.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void refuse(const char *file, const char *what)
{
    fprintf(stderr, "vectors: %s: %s\n", file, what);
    exit(EXIT_FAILURE);
}

static char *file_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) refuse(path, "can't be opened");
    size_t room = 1u << 20;
    char *content = malloc(room);
    if (content == NULL) refuse(path, "out of memory");
    size_t size = fread(content, 1, room - 1, file);
    fclose(file);
    content[size] = '\0';
    return content;
}

/* What stands between `key` and the end of its line, less a comma; NULL if the key does not occur any more. */
static const char *line_of(const char *at, const char *key, size_t *size)
{
    const char *start = strstr(at, key);
    if (start == NULL) return NULL;
    start += strlen(key);
    *size = strcspn(start, "\n");
    if (*size > 0 && start[*size - 1] == ',') (*size)--;
    return start;
}

static uint8_t digit_of(const char *file, char digit)
{
    const char *digits = "0123456789abcdef";
    const char *at = digit == '\0' ? NULL : strchr(digits, digit);
    if (at == NULL) refuse(file, "a hex digit is wrong");
    return (uint8_t)(at - digits);
}

/* Text in quotes into out. */
static void quoted(const char *file, const char *at, size_t size, char *out, size_t room)
{
    if (size < 2 || size - 2 >= room || at[0] != '"' || at[size - 1] != '"') refuse(file, "quotes are missing");
    memcpy(out, at + 1, size - 2);
    out[size - 2] = '\0';
}

static const char *vector_read(const char *path, const char *at, struct vector *v)
{
    size_t size;
    char lane[16];
    const char *line = line_of(at, "\"name\": ", &size);
    if (line == NULL) return NULL;
    quoted(path, line, size, v->name, sizeof v->name);
    if ((line = line_of(line, "\"lane\": ", &size)) == NULL) refuse(path, "lane is missing");
    quoted(path, line, size, lane, sizeof lane);
    v->kind = strcmp(lane, "frame") == 0 ? VECTOR_FRAME : strcmp(lane, "packet") == 0 ? VECTOR_PACKET : VECTOR_MESSAGE;
    if ((line = line_of(line, "\"fields\": ", &size)) == NULL) refuse(path, "fields are missing");
    v->fields = strndup(line, size);
    if ((line = line_of(line, "\"hex\": ", &size)) == NULL) refuse(path, "hex is missing");
    if (size < 4 || size % 2 != 0) refuse(path, "hex has an odd length");
    v->size = size / 2 - 1;
    v->bytes = malloc(v->size);
    if (v->fields == NULL || v->bytes == NULL) refuse(path, "out of memory");
    for (size_t i = 0; i < v->size; i++)
        v->bytes[i] = (uint8_t)(digit_of(path, line[1 + 2 * i]) << 4 | digit_of(path, line[2 + 2 * i]));
    return line;
}

static void file_load(struct vector_list *list, const char *directory, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    char *content = file_read(path);
    struct vector v = {0};
    snprintf(v.file, sizeof v.file, "%.*s", (int)strcspn(name, "."), name);
    for (const char *at = content; (at = vector_read(path, at, &v)) != NULL;) {
        ARRAY_RESERVE(list->items, list->room, list->count + 1u);
        list->items[list->count++] = v;
    }
    free(content);
}

void vector_list_load(struct vector_list *list, const char *path)
{
    struct dirent **names;
    int count = scandir(path, &names, NULL, alphasort);
    if (count < 0) refuse(path, "can't be read");
    for (int i = 0; i < count; i++) {
        if (strstr(names[i]->d_name, ".json") != NULL) file_load(list, path, names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

void vector_list_close(struct vector_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        free(list->items[i].fields);
        free(list->items[i].bytes);
    }
    free(list->items);
    *list = (struct vector_list){0};
}
