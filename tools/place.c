/* terrane move LEAF SERVER and terrane pin LEAF: where an operator wants single leaves to be. */
#include "common/geometry.h"
#include "io/program.h"
#include "tools/answer.h"
#include "tools/target.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct move_flags {
    struct target target;
    bool wait;
} move_flags;

static struct pin_flags {
    struct target target;
    bool off;
} pin_flags;

static const struct config_field move_fields[] = {
    TARGET_FIELDS(move_flags.target, "15000", "One object at the end."),
    {.name = "wait",
     .kind = CONFIG_BOOL,
     .value = &move_flags.wait,
     .preset = "0",
     .help = "Ends when the leaf has arrived."},
};

static const struct config_field pin_fields[] = {
    TARGET_FIELDS(pin_flags.target, "2000", "One object at the end."),
    {.name = "off",
     .kind = CONFIG_BOOL,
     .value = &pin_flags.off,
     .preset = "0",
     .help = "It may be moved, cut and joined again."},
};

static volatile bool stop;

static struct quadkey leaf_of(const char *name, const char *text)
{
    struct quadkey key;
    if (quadkey_parse(text, strlen(text), &key) != TERRANE_ERR_OK)
        program_fail(name, EXIT_USAGE, "\"%.40s\" is no quadkey: digits 0 to 3, as terrane status --regions shows them",
                     text);
    return key;
}

static struct answer ask(struct cluster *c, const struct place *place, uint64_t patience_ms)
{
    struct writer w = {0};
    place_encode(&w, place);
    struct answer answer = answer_wait(c, &w, patience_ms, &stop);
    writer_close(&w);
    return answer;
}

static int finish(const char *name, const char *leaf, const struct target *target, const struct answer *answer)
{
    bool well = answer->error == TERRANE_ERR_OK;
    if (target->json)
        printf("{\"leaf\":\"%s\",\"accepted\":%s,\"on_its_way\":%s}\n", leaf, well ? "true" : "false",
               well && answer->done.count > 0 ? "true" : "false");
    if (!well) return answer_failed(name, answer);
    if (!target->json) printf("%s\n", answer->text);
    return EXIT_WELL;
}

int command_move(int argc, char **argv)
{
    static const char name[] = "terrane move";
    int operand;
    command_configure(name,
                      "Moves a leaf to another cell server, entity by entity unnoticed. Later it may be moved on,\n"
                      "unless it is pinned (terrane pin) or the coordinator runs with --balance 0.",
                      "LEAF SERVER", move_fields, sizeof move_fields / sizeof *move_fields, argc, argv, &operand);
    if (argc - operand != 2) program_fail(name, EXIT_USAGE, "a leaf's quadkey and a server's name");
    struct place place = {.what = PLACE_MOVE, .leaf = leaf_of(name, argv[operand])};
    if (strlen(argv[operand + 1]) >= LIMIT_NAME || argv[operand + 1][0] == '\0')
        program_fail(name, EXIT_USAGE, "\"%.80s\" is no server's name", argv[operand + 1]);
    snprintf(place.name, sizeof place.name, "%s", argv[operand + 1]);
    command_heed_signals(&stop);
    struct cluster cluster;
    target_open(name, &move_flags.target, &cluster);
    struct answer answer = ask(&cluster, &place, move_flags.target.patience);
    for (uint64_t ms = 0; move_flags.wait && answer.error == TERRANE_ERR_OK && answer.done.count > 0 && !stop;
         ms += 100) {
        if (ms >= move_flags.target.patience) {
            answer.error = TERRANE_ERR_NOT_READY;
            break;
        }
        usleep(100000);
        answer = ask(&cluster, &place, 1000);
    }
    return finish(name, argv[operand], &move_flags.target, &answer);
}

int command_pin(int argc, char **argv)
{
    static const char name[] = "terrane pin";
    int operand;
    command_configure(
        name,
        "Keeps a leaf where and as it is: the planner neither moves, cuts nor joins it. Deaths and drains\n"
        "do. Pins are forgotten when another coordinator begins to lead.",
        "LEAF", pin_fields, sizeof pin_fields / sizeof *pin_fields, argc, argv, &operand);
    if (argc - operand != 1) program_fail(name, EXIT_USAGE, "one leaf's quadkey");
    struct place place = {.what = pin_flags.off ? PLACE_UNPIN : PLACE_PIN, .leaf = leaf_of(name, argv[operand])};
    command_heed_signals(&stop);
    struct cluster cluster;
    target_open(name, &pin_flags.target, &cluster);
    struct answer answer = ask(&cluster, &place, pin_flags.target.patience);
    return finish(name, argv[operand], &pin_flags.target, &answer);
}
