/* make_vectors DIRECTORY: writes every vector's file there. Look at the difference before you commit it: bytes that
 * change are a change of the protocol. */
#include "common/check.h"
#include "tests/vectors/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void case_write(FILE *file, const struct vector_case *c)
{
    static const char *const lanes[] = {
        [VECTOR_MESSAGE] = "message", [VECTOR_PACKET] = "packet", [VECTOR_FRAME] = "frame"};
    struct writer bytes = {0};
    struct text fields = {0};
    c->build(&bytes);
    CHECK(vector_fields(c->kind, bytes.data, bytes.size, &fields) == TERRANE_ERR_OK);
    fprintf(file, "  {\n    \"name\": \"%s\",\n    \"lane\": \"%s\",\n", c->name, lanes[c->kind]);
    if (c->kind == VECTOR_FRAME) {
        const char *body = strchr(strchr((const char *)bytes.data, '/') + 1, '/') + 1;
        fprintf(file, "    \"topic\": \"%.*s\",\n", (int)(body - (const char *)bytes.data), (const char *)bytes.data);
    }
    fprintf(file, "    \"fields\": %.*s,\n    \"hex\": \"", (int)fields.out.size, (const char *)fields.out.data);
    for (size_t i = 0; i < bytes.size; i++) fprintf(file, "%02x", bytes.data[i]);
    fprintf(file, "\"\n  }");
    writer_close(&bytes);
    writer_close(&fields.out);
}

/* The cases from *c on that belong to one file. */
static const struct vector_case *file_write(const char *directory, const struct vector_case *c)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.json", directory, c->file);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        fprintf(stderr, "make_vectors: %s can't be written\n", path);
        exit(3);
    }
    const char *name = c->file;
    fprintf(file, "[\n");
    for (; c->file != NULL && strcmp(c->file, name) == 0; c++) {
        case_write(file, c);
        fprintf(file, c[1].file != NULL && strcmp(c[1].file, name) == 0 ? ",\n" : "\n");
    }
    fprintf(file, "]\n");
    CHECK(fclose(file) == 0);
    return c;
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: make_vectors DIRECTORY\n");
        return 2;
    }
    for (size_t table = 0; vector_table(table) != NULL; table++) {
        const struct vector_case *c = vector_table(table);
        while (c->file != NULL) c = file_write(arguments[1], c);
    }
    return 0;
}
