/* The two server programs as people and scripts meet them: flags, exit codes, the ready line, a cluster that comes up
 * in any order and goes down on SIGTERM. */
#include "ends.h"

#include "proto/messages.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <poll.h>

struct program {
    pid_t pid;
    FILE *out, *err;
    char ready[1024];
};

/* argv[0] is the path. The environment is empty but for `variable` (or NULL). */
static void program_start(struct program *p, const char *const *argv, const char *variable)
{
    int out[2], err[2];
    posix_spawn_file_actions_t actions;
    ck_assert_int_eq(pipe(out), 0);
    ck_assert_int_eq(pipe(err), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    for (int i = 0; i < 2; i++) {
        posix_spawn_file_actions_addclose(&actions, out[i]);
        posix_spawn_file_actions_addclose(&actions, err[i]);
    }
    char *const environment[] = {(char *)(uintptr_t)variable, NULL};
    *p = (struct program){0};
    ck_assert_int_eq(posix_spawn(&p->pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(err[1]);
    p->out = fdopen(out[0], "r");
    p->err = fdopen(err[0], "r");
    ck_assert(p->out != NULL && p->err != NULL);
}

/* Waits for its end; returns the exit code and gives what it wrote. */
static int program_end(struct program *p, char *out, char *err, size_t room)
{
    int status;
    out[fread(out, 1, room - 1, p->out)] = '\0';
    err[fread(err, 1, room - 1, p->err)] = '\0';
    ck_assert_int_eq(waitpid(p->pid, &status, 0), p->pid);
    fclose(p->out);
    fclose(p->err);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void wait_ready(struct program *p)
{
    ck_assert_ptr_nonnull(fgets(p->ready, sizeof p->ready, p->out));
    ck_assert_int_eq(strncmp(p->ready, "ready program=", 14), 0);
}

/* The value of a key in the ready line. */
static void ready_value(const struct program *p, const char *key, char *out, size_t room)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, " %s=", key);
    const char *at = strstr(p->ready, wanted);
    ck_assert_msg(at != NULL, "no %s in %s", key, p->ready);
    at += strlen(wanted);
    snprintf(out, room, "%.*s", (int)strcspn(at, " \n"), at);
}

static char out[32768], err[32768];

#define ENDS_WITH_CODE(code, variable, ...)                                                                            \
    do {                                                                                                               \
        struct program ended;                                                                                          \
        program_start(&ended, (const char *const[]){__VA_ARGS__, NULL}, variable);                                     \
        int got = program_end(&ended, out, err, sizeof out);                                                           \
        ck_assert_msg(got == (code), "exit code %d, not %d\n%s\n%s", got, code, out, err);                             \
    } while (0)

START_TEST(help_and_version_go_to_stdout_with_code_0)
{
    const char *const programs[] = {COORDINATOR, CELLSERVER};
    for (int i = 0; i < 2; i++) {
        ENDS_WITH_CODE(0, NULL, programs[i], "--help");
        ck_assert_ptr_nonnull(strstr(out, "--log-level"));
        ck_assert_str_eq(err, "");
        ENDS_WITH_CODE(0, NULL, programs[i], "--version");
        ck_assert_ptr_nonnull(strstr(out, "terrane-"));
    }
}
END_TEST

START_TEST(bad_usage_is_explained_on_stderr_with_code_2)
{
    ENDS_WITH_CODE(2, NULL, CELLSERVER, "--feeds", "9");
    ck_assert_ptr_nonnull(strstr(err, "\"9\""));
    ENDS_WITH_CODE(2, "TERRANE_FEEDS=many", CELLSERVER);
    ck_assert_ptr_nonnull(strstr(err, "TERRANE_FEEDS"));
    ENDS_WITH_CODE(2, "TERRANE_NODE_ID=xyz", CELLSERVER);
    ck_assert_ptr_nonnull(strstr(err, "\"xyz\" is no id"));
    ENDS_WITH_CODE(2, NULL, CELLSERVER, "--node-id", "f");
    ck_assert_ptr_nonnull(strstr(err, "at least 10"));
    ENDS_WITH_CODE(2, NULL, CELLSERVER, "--listen", "0.0.0.0");
    ck_assert_ptr_nonnull(strstr(err, "advertise"));
    ENDS_WITH_CODE(2, NULL, COORDINATOR, "--storeless", "--inbox", "http://x");
    ck_assert_ptr_nonnull(strstr(err, "http://x"));
    ENDS_WITH_CODE(2, NULL, COORDINATOR, "--storeless", "--inbox", ANY, "--depth", "9", "--resolution-bits", "8");
    ck_assert_ptr_nonnull(strstr(err, "--resolution-bits 8"));
    ENDS_WITH_CODE(2, NULL, COORDINATOR, "--storeless", "--inbox", ANY, "--leaves", "0,1,2");
    ck_assert_ptr_nonnull(strstr(err, "hole at 3"));
    ENDS_WITH_CODE(2, NULL, COORDINATOR, "--storeless", "--inbox", ANY, "--leaves", "0,4");
    ck_assert_ptr_nonnull(strstr(err, "\"4\""));
    ENDS_WITH_CODE(2, NULL, COORDINATOR, "--inbox", ANY, "--redis", "nonsense");
    ck_assert_ptr_nonnull(strstr(err, "--storeless"));
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(a_taken_port_is_named_with_code_2)
{
    struct end taken;
    end_open(&taken, (struct link_options){.inbox_url = ANY});
    const char *url = link_urls(taken.link)->inbox;
    ENDS_WITH_CODE(2, NULL, COORDINATOR, "--storeless", "--inbox", url);
    ck_assert_ptr_nonnull(strstr(err, url));
    end_close(&taken);
}
END_TEST

/* The JSON of a STATUS answer; the caller frees it. */
static char *status_of(const char *url)
{
    nng_socket req;
    nng_msg *got;
    struct writer ask = {0};
    struct status status;
    ck_assert_int_eq(nng_req0_open(&req), 0);
    ck_assert_int_eq(nng_dial(req, url, NULL, 0), 0);
    status_request_encode(&ask);
    ck_assert_int_eq(nng_send(req, ask.data, ask.size, 0), 0);
    writer_close(&ask);
    ck_assert_int_eq(nng_recvmsg(req, &got, 0), 0);
    ck_assert_int_eq(status_decode(cursor_of(nng_msg_body(got), nng_msg_len(got)), &status), TERRANE_ERR_OK);
    char *json = strndup(status.json, status.size);
    nng_msg_free(got);
    nng_close(req);
    return json;
}

static void wait_status(const char *url, const char *says)
{
    uint64_t until_us = loop_now_us() + 20000000u;
    for (bool found = false; !found;) {
        char *json = status_of(url);
        found = strstr(json, says) != NULL;
        ck_assert_msg(found || loop_now_us() < until_us, "the status never says %s:\n%s", says, json);
        free(json);
        poll(NULL, 0, found ? 0 : 20);
    }
}

static void stop(struct program *p)
{
    kill(p->pid, SIGTERM);
    int code = program_end(p, out, err, sizeof out);
    ck_assert_msg(code == 0, "exit code %d\n%s", code, err);
}

START_TEST(servers_that_start_before_their_coordinator_find_it_and_all_stop_on_sigterm)
{
    struct program coordinator, servers[2];
    char inbox[LIMIT_URL], query[LIMIT_URL];
    /* The first one shows which port to come back to. */
    const char *const first[] = {COORDINATOR, "--storeless", "--inbox", ANY, NULL};
    program_start(&coordinator, first, NULL);
    wait_ready(&coordinator);
    ready_value(&coordinator, "inbox", inbox, sizeof inbox);
    stop(&coordinator);
    for (int i = 0; i < 2; i++) {
        const char *const argv[] = {CELLSERVER, "--coordinator", inbox, "--name", i == 0 ? "a" : "b", NULL};
        program_start(&servers[i], argv, "TERRANE_FEEDS=2");
        wait_ready(&servers[i]);
    }
    const char *const again[] = {COORDINATOR, "--storeless", "--inbox",          inbox, "--query",  ANY,
                                 "--feed",    ANY,           "--expect-servers", "2",   "--leaves", "0,1,2,30,31,32,33",
                                 NULL};
    program_start(&coordinator, again, NULL);
    wait_ready(&coordinator);
    ready_value(&coordinator, "query", query, sizeof query);
    wait_status(query, "\"quadkey\":\"33\",\"epoch\":1,\"server\":\"");
    wait_status(query, "\"unowned\":0");
    wait_status(query, "\"io\":{\"terrane_io_received_total");
    ready_value(&servers[0], "query", query, sizeof query);
    wait_status(query, "\"terrane_ticks_total\":");
    stop(&servers[0]);
    stop(&servers[1]);
    stop(&coordinator);
}
END_TEST

START_TEST(log_lines_can_be_json)
{
    struct program coordinator;
    const char *const argv[] = {COORDINATOR, "--storeless", "--inbox", ANY, "--log-format", "json", NULL};
    program_start(&coordinator, argv, NULL);
    wait_ready(&coordinator);
    stop(&coordinator);
    ck_assert_int_eq(strncmp(err, "{\"time\":\"", 9), 0);
    ck_assert_ptr_nonnull(
        strstr(err, "\"program\":\"terrane-coordinator\",\"event\":\"stop\",\"cause\":\"signal\"}\n"));
}
END_TEST

START_TEST(an_incarnation_has_the_id_that_its_agent_gave_it)
{
    struct program server;
    char id[32];
    const char *const argv[] = {CELLSERVER, "--coordinator", "tcp://127.0.0.1:9", NULL};
    program_start(&server, argv, "TERRANE_NODE_ID=00c0ffee00c0ffee");
    wait_ready(&server);
    ready_value(&server, "node", id, sizeof id);
    ck_assert_str_eq(id, "00c0ffee00c0ffee");
    stop(&server);
}
END_TEST

SUITE_MAIN("programs", help_and_version_go_to_stdout_with_code_0, bad_usage_is_explained_on_stderr_with_code_2,
           a_taken_port_is_named_with_code_2,
           servers_that_start_before_their_coordinator_find_it_and_all_stop_on_sigterm, log_lines_can_be_json,
           an_incarnation_has_the_id_that_its_agent_gave_it)
