/* terrane top: servers or regions, live, full screen; sorted, scrolled, and gone without a trace at q. */
#include "io/loop.h"
#include "io/program.h"
#include "tools/look.h"
#include "tools/target.h"

#include <inttypes.h>
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME    "terrane top"
#define COLUMNS 11u
#define NAMED   64u

static struct flags {
    struct target target;
    double interval;
    uint64_t count;
} flags;

static const struct config_field fields[] = {
    TARGET_FIELDS(flags.target, "1000", "No screen: one object a look, one line each, until --count or a signal."),
    {.name = "interval",
     .kind = CONFIG_DOUBLE,
     .value = &flags.interval,
     .preset = "1",
     .min = 0.1,
     .max = 3600,
     .unit = "SECONDS",
     .help = "Between two looks."},
    {.name = "count",
     .kind = CONFIG_UINT,
     .value = &flags.count,
     .preset = "0",
     .help = "Ends after so many looks; 0: at q, SIGINT or SIGTERM."},
};

struct row {
    char name[NAMED];
    double cells[COLUMNS];
    char state[32];
    bool answered;
};

/* The table of servers. */
static const struct column {
    const char *title;
    int width, digits;
} columns[COLUMNS] = {{"leaves", 7, 0},  {"standby", 8, 0}, {"owned", 8, 0}, {"ghosts", 8, 0},
                      {"moves/s", 9, 0}, {"hand/s", 8, 1},  {"kB/s", 9, 1},  {"ticks/s", 8, 1},
                      {"late/s", 8, 1},  {"cpu %", 7, 1},   {"gaps", 6, 0}};

struct before { /* the last look, by name: servers come and go */
    char name[NAMED];
    struct sample sample;
};

struct top {
    struct cluster cluster;
    struct row *rows;
    struct before *before;
    uint32_t count, before_count, sort, first; /* sort: 0 by name, else the column before it */
    uint64_t looked_us;
    enum terrane_error error;
    bool paused;
};

static volatile bool stop;

static const struct sample *before_of(const struct top *t, const char *name)
{
    for (uint32_t i = 0; i < t->before_count; i++)
        if (strcmp(t->before[i].name, name) == 0) return &t->before[i].sample;
    return NULL;
}

static struct row row_of(const struct top *t, const struct cluster_server *s, double seconds)
{
    const struct cluster *c = &t->cluster;
    struct row row = {.answered = s->answered};
    snprintf(row.name, sizeof row.name, "%s", s->name);
    snprintf(row.state, sizeof row.state, "%s", s->answered ? look_state(c, s) : "no answer");
    row.cells[0] = (double)document_count(&c->map, s->listed, "leaves");
    row.cells[1] = (double)document_count(&c->map, s->listed, "standby_leaves");
    if (!s->answered) return row;
    struct sample now = look_sample(s);
    const struct sample *before = before_of(t, s->name);
    row.cells[2] = (double)document_count(&s->status, 0, "owned");
    row.cells[3] = (double)document_count(&s->status, 0, "ghosts");
    row.cells[10] = (double)document_count(&s->status, 0, "gaps_open");
    if (before == NULL || seconds <= 0) return row;
    row.cells[4] = look_rate(before->moves, now.moves, seconds);
    row.cells[5] = look_rate(before->handoffs, now.handoffs, seconds);
    row.cells[6] = look_rate(before->bytes, now.bytes, seconds) / 1000;
    row.cells[7] = look_rate(before->ticks, now.ticks, seconds);
    row.cells[8] = look_rate(before->late, now.late, seconds);
    row.cells[9] = now.cpu_s > before->cpu_s ? (now.cpu_s - before->cpu_s) / seconds * 100 : 0;
    return row;
}

static void look(struct top *t)
{
    uint64_t now_us = loop_now_us();
    double seconds = t->looked_us == 0 ? 0 : (double)(now_us - t->looked_us) / 1e6;
    t->error = cluster_refresh_all(&t->cluster, (uint32_t)flags.target.patience);
    if (t->error != TERRANE_ERR_OK) return;
    uint32_t count = t->cluster.server_count;
    struct row *rows = calloc(count + 1, sizeof *rows);
    struct before *before = calloc(count + 1, sizeof *before);
    if (rows == NULL || before == NULL) abort();
    for (uint32_t i = 0; i < count; i++) {
        const struct cluster_server *s = &t->cluster.servers[i];
        rows[i] = row_of(t, s, seconds);
        snprintf(before[i].name, sizeof before[i].name, "%s", s->name);
        if (s->answered) before[i].sample = look_sample(s);
    }
    free(t->rows);
    free(t->before);
    t->rows = rows;
    t->before = before;
    t->count = t->before_count = count;
    t->looked_us = now_us;
}

static uint32_t sorted_by; /* qsort has no context */

static int compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (sorted_by > 0) {
        double p = x->cells[sorted_by - 1], q = y->cells[sorted_by - 1];
        if (p != q) return p > q ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

/* ---- the screen ---- */

static void draw_head(const struct top *t)
{
    const struct document *map = &t->cluster.map;
    if (t->error != TERRANE_ERR_OK) {
        attron(A_BOLD | COLOR_PAIR(1));
        mvprintw(0, 0, "no coordinator answers at %.80s: %s", t->cluster.query_url, terrane_error_text(t->error));
        attroff(A_BOLD | COLOR_PAIR(1));
        return;
    }
    uint64_t unowned = document_count(map, 0, "unowned"), exposed = document_count(map, 0, "unprotected");
    mvprintw(0, 0, "coordinator %s  term %" PRIu64 "  revision %" PRIu64 "  %s%s", document_text(map, 0, "name"),
             document_count(map, 0, "term"), document_count(map, 0, "rev"),
             document_bool(map, 0, "ready") ? "ready" : "NOT READY", t->paused ? "  PAUSED" : "");
    uint32_t regions = document_member(map, 0, "regions");
    mvprintw(1, 0, "%u servers  %u regions  %" PRIu64 " entities  %" PRIu64 " promotions", t->count,
             regions == DOCUMENT_NONE ? 0 : map->values[regions].count, cluster_sums(&t->cluster).owned,
             document_count(map, 0, "promotions"));
    if (unowned + exposed == 0) return;
    attron(A_BOLD | COLOR_PAIR(unowned > 0 ? 1 : 2));
    printw("  %" PRIu64 " without a server, %" PRIu64 " unprotected", unowned, exposed);
    attroff(A_BOLD | COLOR_PAIR(unowned > 0 ? 1 : 2));
}

static void draw_table(const struct top *t, int first_line)
{
    int lines = getmaxy(stdscr) - first_line - 2;
    attron(A_REVERSE);
    mvhline(first_line, 0, ' ', getmaxx(stdscr));
    mvprintw(first_line, 0, "%-14s", t->sort == 0 ? "server*" : "server");
    for (uint32_t i = 0; i < COLUMNS; i++)
        printw("%*s%s", columns[i].width - (t->sort == i + 1), columns[i].title, t->sort == i + 1 ? "*" : "");
    printw("  state");
    attroff(A_REVERSE);
    for (uint32_t i = t->first; i < t->count && (int)(i - t->first) < lines; i++) {
        const struct row *row = &t->rows[i];
        int line = first_line + 1 + (int)(i - t->first), attribute = COLOR_PAIR(row->state[0] == '\0' ? 0 : 2);
        attron(attribute);
        mvprintw(line, 0, "%-14.14s", row->name);
        for (uint32_t k = 0; k < COLUMNS; k++) {
            if (row->answered || k < 2)
                printw("%*.*f", columns[k].width, columns[k].digits, row->cells[k]);
            else
                printw("%*s", columns[k].width, "-");
        }
        printw("  %s", row->state);
        attroff(attribute);
    }
}

static void draw(struct top *t)
{
    sorted_by = t->sort;
    if (t->count > 0) qsort(t->rows, t->count, sizeof *t->rows, compare);
    erase();
    draw_head(t);
    draw_table(t, 3);
    attron(A_DIM);
    mvprintw(getmaxy(stdscr) - 1, 0, "q quit   < > sort   up down scroll   p pause   space now");
    attroff(A_DIM);
    refresh();
}

/* Obeys what has been typed until the next look is due. */
static void wait_keys(struct top *t, uint64_t until_us)
{
    for (uint64_t now_us = loop_now_us(); !stop && now_us < until_us; now_us = loop_now_us()) {
        uint64_t left_ms = (until_us - now_us) / 1000 + 1;
        timeout(left_ms < 100 ? (int)left_ms : 100);
        int key = getch();
        if (key == ERR) continue;
        if (key == 'q' || key == 'Q') stop = true;
        if (key == ' ') return;
        if (key == 'p') t->paused = !t->paused;
        if (key == '>' || key == KEY_RIGHT) t->sort = (t->sort + 1) % (COLUMNS + 1);
        if (key == '<' || key == KEY_LEFT) t->sort = (t->sort + COLUMNS) % (COLUMNS + 1);
        if (key == KEY_DOWN && t->first + 1 < t->count) t->first++;
        if (key == KEY_UP && t->first > 0) t->first--;
        draw(t);
    }
}

static void run_screen(struct top *t)
{
    setlocale(LC_ALL, "");
    if (initscr() == NULL) program_fail(NAME, EXIT_MISSING, "no screen: is TERM right?");
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    if (has_colors()) {
        start_color();
        use_default_colors();
        init_pair(1, COLOR_RED, -1);
        init_pair(2, COLOR_YELLOW, -1);
    }
    for (uint64_t looks = 0; !stop && (flags.count == 0 || looks < flags.count); looks++) {
        uint64_t until_us = loop_now_us() + (uint64_t)(flags.interval * 1e6);
        if (!t->paused) look(t);
        draw(t);
        wait_keys(t, until_us);
    }
    endwin();
}

/* ---- lines for scripts ---- */

static void print_line(const struct top *t)
{
    static const char *const names[COLUMNS] = {"leaves",      "standby_leaves", "owned",           "ghosts",
                                               "moves_per_s", "handoffs_per_s", "kilobytes_per_s", "ticks_per_s",
                                               "late_per_s",  "cpu_percent",    "gaps_open"};
    printf("{\"reached\":%s,\"servers\":[", t->error == TERRANE_ERR_OK ? "true" : "false");
    for (uint32_t i = 0; i < t->count && t->error == TERRANE_ERR_OK; i++) {
        printf("%s{\"name\":\"%s\",\"answered\":%s", i == 0 ? "" : ",", t->rows[i].name,
               t->rows[i].answered ? "true" : "false");
        for (uint32_t k = 0; k < COLUMNS; k++) printf(",\"%s\":%.*f", names[k], columns[k].digits, t->rows[i].cells[k]);
        printf(",\"state\":\"%s\"}", t->rows[i].state);
    }
    printf("]}\n");
    fflush(stdout);
}

static void run_lines(struct top *t)
{
    for (uint64_t looks = 0; !stop && (flags.count == 0 || looks < flags.count); looks++) {
        if (looks > 0) usleep((useconds_t)(flags.interval * 1e6));
        look(t);
        print_line(t);
    }
}

int command_top(int argc, char **argv)
{
    command_configure(NAME,
                      "Shows all cell servers live: what they own, their rates, CPU time, late ticks, states.\n"
                      "Keys: q quit, < > sort by another column, arrows scroll, p pause, space looks at once.",
                      NULL, fields, sizeof fields / sizeof *fields, argc, argv, NULL);
    if (!flags.target.json && (isatty(STDOUT_FILENO) == 0 || isatty(STDIN_FILENO) == 0))
        program_fail(NAME, EXIT_USAGE, "this is no terminal; for scripts: --json, or terrane status");
    command_heed_signals(&stop);
    struct top top = {.error = TERRANE_ERR_OK};
    target_open(NAME, &flags.target, &top.cluster);
    if (flags.target.json)
        run_lines(&top);
    else
        run_screen(&top);
    bool well = top.error == TERRANE_ERR_OK;
    free(top.rows);
    free(top.before);
    cluster_close(&top.cluster);
    return well ? EXIT_WELL : EXIT_MISSING;
}
