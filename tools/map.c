/* terrane map: the quadtree in the terminal, or as a PNG: whose each region is, and how full. */
#include "io/program.h"
#include "tools/look.h"
#include "tools/target.h"

#include <errno.h>
#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NAME "terrane map"

static struct flags {
    struct target target;
    const char *png;
    uint64_t size, width;
    uint32_t colour;
} flags;

static const char *const colours[] = {"auto", "always", "never", NULL};

static const struct config_field fields[] = {
    TARGET_FIELDS(flags.target, "2000", "One object: every region with its square, servers and entities."),
    {.name = "png",
     .kind = CONFIG_TEXT,
     .value = &flags.png,
     .preset = "",
     .unit = "FILE",
     .help = "Writes a picture."},
    {.name = "size",
     .kind = CONFIG_UINT,
     .value = &flags.size,
     .preset = "1024",
     .min = 16,
     .max = 8192,
     .unit = "PIXELS",
     .help = "The picture's side."},
    {.name = "width",
     .kind = CONFIG_UINT,
     .value = &flags.width,
     .preset = "0",
     .min = 0,
     .max = 1000,
     .unit = "COLUMNS",
     .help = "The map's width in the terminal; 0: as much as fits."},
    {.name = "colour",
     .kind = CONFIG_CHOICE,
     .value = &flags.colour,
     .preset = "auto",
     .choices = colours,
     .help = "auto: on a terminal, unless NO_COLOR is set. Without colours each server is a letter."},
};

/* ---- terminal ---- */

static bool in_colour(void)
{
    const char *none = getenv("NO_COLOR"), *kind = getenv("TERM");
    if (flags.colour != 0) return flags.colour == 1;
    return isatty(STDOUT_FILENO) == 1 && (none == NULL || none[0] == '\0') && kind != NULL && strcmp(kind, "dumb") != 0;
}

/* Columns and rows of characters; each row shows two rows of the map where there are colours. */
static void terminal_size(uint32_t legend, uint32_t *columns, uint32_t *rows)
{
    struct winsize window = {.ws_col = 80, .ws_row = 24};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
    uint32_t width = window.ws_col > 0 ? window.ws_col : 80, height = window.ws_row > 0 ? window.ws_row : 24;
    height = height > legend + 3 ? height - legend - 2 : 8;
    *columns = flags.width > 0 ? (uint32_t)flags.width : width < 2 * height ? width : 2 * height;
    *rows = (*columns + 1) / 2;
}

static void print_coloured(struct mosaic *m, uint32_t columns, uint32_t rows)
{
    mosaic_paint(m, columns, 2 * rows);
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t column = 0; column < columns; column++) {
            const struct mosaic_tile *upper = mosaic_at(m, column, 2 * row), *lower = mosaic_at(m, column, 2 * row + 1);
            struct colour a = {0}, b = {0};
            if (upper != NULL) a = mosaic_colour(m, upper);
            if (lower != NULL) b = mosaic_colour(m, lower);
            printf("\x1b[38;2;%u;%u;%um\x1b[48;2;%u;%u;%um\xe2\x96\x80", a.red, a.green, a.blue, b.red, b.green,
                   b.blue);
        }
        printf("\x1b[0m\n");
    }
}

static char letter_of(uint32_t server)
{
    return server == MOSAIC_NOBODY ? '?' : server < 26 ? (char)('A' + server) : (char)('a' + server % 26);
}

/* A region without a level standby in small letters. */
static void print_plain(struct mosaic *m, uint32_t columns, uint32_t rows)
{
    mosaic_paint(m, columns, rows);
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t column = 0; column < columns; column++) {
            const struct mosaic_tile *tile = mosaic_at(m, column, row);
            char letter = tile == NULL ? ' ' : letter_of(tile->server);
            putchar(tile != NULL && tile->exposed && letter >= 'A' && letter <= 'Z' ? letter + ('a' - 'A') : letter);
        }
        putchar('\n');
    }
}

static void print_legend(const struct cluster *c, const struct mosaic *m, bool coloured)
{
    uint32_t nobody = 0, exposed = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        nobody += m->tiles[i].server == MOSAIC_NOBODY;
        exposed += m->tiles[i].exposed;
    }
    for (uint32_t i = 0; i < c->server_count; i++) {
        struct colour at = mosaic_server_colour(i);
        if (coloured)
            printf("\x1b[48;2;%u;%u;%um  \x1b[0m", at.red, at.green, at.blue);
        else
            printf("%c", letter_of(i));
        printf(" %-12s %4" PRIu64 " regions %7" PRIu64 " entities  %s\n", c->servers[i].name,
               document_count(&c->map, c->servers[i].listed, "leaves"),
               document_count(&c->map, c->servers[i].listed, "owned"), look_state(c, &c->servers[i]));
    }
    printf("%u regions, the fullest holds %" PRIu64 "; %u without a server%s, %u without a level standby%s\n", m->count,
           m->load_max, nobody, coloured ? "" : " (?)", exposed, coloured ? "" : " (small letters)");
}

/* ---- PNG ---- */

static void pixel_at(const struct mosaic *m, uint32_t column, uint32_t row, png_byte *out)
{
    const struct mosaic_tile *tile = mosaic_at(m, column, row);
    struct colour c = {0};
    if (tile != NULL) c = mosaic_colour(m, tile);
    uint32_t keep = mosaic_borders(m, column, row) ? 1 : 2; /* borders are half as bright */
    out[0] = (png_byte)(c.red * keep / 2);
    out[1] = (png_byte)(c.green * keep / 2);
    out[2] = (png_byte)(c.blue * keep / 2);
}

/* libpng leaves by longjmp when it can't go on: what it needs later lies in the caller. */
static bool write_rows(png_structp png, png_infop info, FILE *file, struct mosaic *m, png_byte *row)
{
    if (setjmp(png_jmpbuf(png)) != 0) return false; /* NOLINT(cert-err52-cpp): libpng's way */
    png_init_io(png, file);
    png_set_IHDR(png, info, m->width, m->height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (uint32_t y = 0; y < m->height; y++) {
        for (uint32_t x = 0; x < m->width; x++) pixel_at(m, x, y, row + (size_t)3 * x);
        png_write_row(png, row);
    }
    png_write_end(png, NULL);
    return true;
}

static void write_png(struct mosaic *m)
{
    FILE *file = fopen(flags.png, "wb");
    if (file == NULL) program_fail(NAME, EXIT_USAGE, "--png: \"%.200s\": %s", flags.png, strerror(errno));
    mosaic_paint(m, (uint32_t)flags.size, (uint32_t)flags.size);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
    png_byte *row = malloc((size_t)3 * m->width);
    bool well = info != NULL && row != NULL && write_rows(png, info, file, m, row);
    if (png != NULL) png_destroy_write_struct(&png, &info);
    free(row);
    if (fclose(file) != 0 || !well) program_fail(NAME, EXIT_NOT_HELD, "\"%.200s\" can't be written whole", flags.png);
}

int command_map(int argc, char **argv)
{
    command_configure(NAME,
                      "Shows the world's regions: colour by server, lightness by entities (beside the fullest), grey\n"
                      "where nobody serves. North is up.\n\nExamples: terrane map; terrane map --png world.png",
                      NULL, fields, sizeof fields / sizeof *fields, argc, argv, NULL);
    struct cluster cluster;
    struct mosaic mosaic = {0};
    target_open(NAME, &flags.target, &cluster);
    target_refresh(NAME, &flags.target, &cluster);
    look_mosaic(&cluster, &mosaic);
    if (flags.png[0] != '\0') write_png(&mosaic);
    if (flags.target.json) {
        look_print_regions(&cluster);
    } else if (flags.png[0] == '\0') {
        bool coloured = in_colour();
        uint32_t columns, rows;
        terminal_size(cluster.server_count + 1, &columns, &rows);
        if (coloured)
            print_coloured(&mosaic, columns, rows);
        else
            print_plain(&mosaic, columns, rows);
        print_legend(&cluster, &mosaic, coloured);
    }
    mosaic_close(&mosaic);
    cluster_close(&cluster);
    return EXIT_WELL;
}
