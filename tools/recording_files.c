#include "tools/recording_files.h"

#include "common/check.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MOST (64u << 20)

static int is_recording(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);
    return size > 4 && strcmp(entry->d_name + size - 4, ".txt") == 0;
}

static enum terrane_error add_file(struct recording *r, const char *path, struct recording_fault *fault)
{
    FILE *file = fopen(path, "re");
    char *text = file != NULL ? malloc(FILE_MOST + 1) : NULL;
    enum terrane_error error = TERRANE_ERR_CONFIG;
    if (file == NULL) {
        snprintf(fault->text, sizeof fault->text, "%.200s can't be opened: %s", path, strerror(errno));
        return error;
    }
    CHECK(text != NULL);
    size_t size = fread(text, 1, FILE_MOST + 1, file);
    if (ferror(file))
        snprintf(fault->text, sizeof fault->text, "%.200s can't be read: %s", path, strerror(errno));
    else if (size > FILE_MOST)
        snprintf(fault->text, sizeof fault->text, "%.200s is larger than %u MiB; split it", path, FILE_MOST >> 20);
    else
        error = recording_add(r, path, text, size, fault);
    free(text);
    (void)fclose(file);
    return error;
}

enum terrane_error recording_read_folder(struct recording *r, const char *folder, struct recording_fault *fault)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_recording, alphasort);
    if (count < 0) {
        snprintf(fault->text, sizeof fault->text,
                 "\"%.200s\" can't be opened as a folder of recorded crowds: %s; see --crowds", folder,
                 strerror(errno));
        return TERRANE_ERR_CONFIG;
    }
    enum terrane_error error = TERRANE_ERR_OK;
    if (count == 0) {
        snprintf(fault->text, sizeof fault->text,
                 "there is no *.txt in \"%.200s\"; a recording has rows of: frame person x y", folder);
        error = TERRANE_ERR_CONFIG;
    }
    for (int i = 0; i < count; i++) {
        char path[1024];
        int size = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (error == TERRANE_ERR_OK && size > 0 && (size_t)size < sizeof path) error = add_file(r, path, fault);
        free(entries[i]);
    }
    free(entries);
    return error;
}
