#include "io/store.h"

#include "common/check.h"
#include "io/store_address.h"
#include "io/store_values.h"

#include <hiredis/adapters/libev.h>
#include <hiredis/async.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* States of the connection:
 *
 *   DOWN --retry timer--> CONNECTING --connected, AUTH answered--> UP
 *   CONNECTING --refused, watchdog--> DOWN      UP --broken, watchdog, not a master (any more)--> DOWN
 *
 * With sentinels it is DOWN --retry timer--> ASKING --the master's place--> CONNECTING, and ASKING --refused, watchdog,
 * no such master--> DOWN: each attempt asks the next sentinel, for what was true before the failure may be so no more.
 *
 * A context that we give up is first forgotten (s->redis = NULL) and then freed, so that every callback that hiredis
 * still makes for it finds itself a stranger and does nothing. An operation waits for UP until its own deadline. */

#define TIMEOUT_US   UINT64_C(1000000)
#define RETRY_US     UINT64_C(50000)
#define RETRY_MAX_US UINT64_C(1000000)
#define WORLD_MAX    63u
#define KEYS         4u
#define HEAD         7u /* EVAL script 4 KEY KEY KEY KEY */

enum store_state { STORE_DOWN, STORE_ASKING, STORE_CONNECTING, STORE_UP };

struct store {
    struct store_options options;
    struct store_counters counters;
    struct login {
        char user[128], password[256];
    } login, sentinel_login;
    struct store_address address;
    struct lookup *lookup; /* NULL: the address has no name in it */
    uint32_t place_next;
    struct store_place master; /* where the sentinels say it is */
    char keys[KEYS][96];
    enum store_state state;
    redisAsyncContext *redis;
    ev_timer retry, watchdog_connect, watchdog_operation;
    uint64_t backoff_us;
    bool told_down; /* the log knows that it is down */
    bool busy, sent;
    enum store_operation operation;
    uint64_t token;
    struct value_list arguments, values;
    struct writer answer;
};

static void store_connect(struct store *s);

static double seconds(uint64_t us)
{
    return (double)us / 1e6;
}

static __attribute__((format(printf, 3, 4))) void store_log(struct store *s, enum log_level level, const char *format,
                                                            ...)
{
    char line[384];
    va_list arguments;
    if (s->options.log == NULL) return;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size < 0) return;
    size_t length = (size_t)size < sizeof line ? (size_t)size : sizeof line - 1;
    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\n' || line[i] == '\r') line[i] = ' ';
    }
    s->options.log(s->options.log_context, level, line, length);
}

static void store_answer(struct store *s, enum terrane_error error)
{
    if (!s->busy) return;
    s->busy = s->sent = false;
    ev_timer_stop(s->options.loop, &s->watchdog_operation);
    if (error == TERRANE_ERR_OK)
        s->counters.answered++;
    else
        s->counters.failed++;
    bool read = error == TERRANE_ERR_OK && s->operation != STORE_SAVE;
    s->options.stored(s->options.context, s->token, error, read ? s->answer.data : NULL, read ? s->answer.size : 0);
}

/* Gives the connection up and tries again later. What had been sent may have happened: TIMED_OUT. */
static void store_drop(struct store *s, const char *reason)
{
    redisAsyncContext *redis = s->redis;
    s->redis = NULL;
    if (s->state == STORE_UP) s->counters.disconnects++;
    s->state = STORE_DOWN;
    ev_timer_stop(s->options.loop, &s->watchdog_connect);
    if (redis != NULL) redisAsyncFree(redis);
    if (!s->told_down)
        store_log(s, LOG_ERROR, "event=store_down address=\"%s\" reason=\"%s\"", s->options.address, reason);
    s->told_down = true;
    s->backoff_us = s->backoff_us == 0 ? RETRY_US : s->backoff_us * 2;
    if (s->backoff_us > RETRY_MAX_US) s->backoff_us = RETRY_MAX_US;
    ev_timer_stop(s->options.loop, &s->retry);
    ev_timer_set(&s->retry, seconds(s->backoff_us), 0);
    ev_timer_start(s->options.loop, &s->retry);
    if (s->lookup != NULL) lookup_start(s->lookup);
    if (s->sent) store_answer(s, TERRANE_ERR_TIMED_OUT);
}

static void take_values(struct store *s, const redisReply *reply)
{
    value_list_clear(&s->values);
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *value = reply->element[i];
        bool text = value->type == REDIS_REPLY_STRING || value->type == REDIS_REPLY_STATUS;
        value_list_add(&s->values, text ? value->str : "", text ? (size_t)value->len : 0);
    }
}

static const char *operation_name(enum store_operation operation)
{
    switch (operation) {
    case STORE_LOAD: return "load";
    case STORE_SAVE: return "save";
    case STORE_LEAD: return "lead";
    }
    return "";
}

static const char *operation_script(enum store_operation operation)
{
    switch (operation) {
    case STORE_LOAD: return store_script_load();
    case STORE_SAVE: return store_script_save();
    case STORE_LEAD: return store_script_lead();
    }
    return "";
}

static enum terrane_error reply_error(struct store *s, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        bool conflict = strncmp(reply->str, "CONFLICT", 8) == 0;
        if (conflict) s->counters.conflicts++;
        store_log(s, LOG_ERROR, "event=store_refused operation=%s reason=\"%.200s\"", operation_name(s->operation),
                  reply->str);
        return conflict ? TERRANE_ERR_STORE_CONFLICT : TERRANE_ERR_STORE_UNAVAILABLE;
    }
    if (s->operation == STORE_SAVE)
        return reply->type == REDIS_REPLY_STATUS ? TERRANE_ERR_OK : TERRANE_ERR_MESSAGE_TYPE;
    if (reply->type != REDIS_REPLY_ARRAY) return TERRANE_ERR_MESSAGE_TYPE;
    take_values(s, reply);
    writer_clear(&s->answer);
    return s->operation == STORE_LOAD ? map_of_values(&s->values, &s->answer)
                                      : leader_of_values(&s->values, &s->answer);
}

static void on_reply(redisAsyncContext *redis, void *message, void *token)
{
    struct store *s = redis->data;
    const redisReply *reply = message;
    if (redis != s->redis || !s->busy || !s->sent || (uint64_t)(uintptr_t)token != (uint64_t)(uintptr_t)s->token)
        return;
    /* Without a reply the connection is ending; store_drop answers. */
    if (reply == NULL) return;
    bool demoted = reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "READONLY") != NULL;
    store_answer(s, reply_error(s, reply));
    if (demoted && redis == s->redis) store_drop(s, "the server is a replica");
}

static void store_send(struct store *s)
{
    if (!s->busy || s->sent || s->state != STORE_UP) return;
    uint32_t count = s->arguments.count;
    const char **argv = calloc(HEAD + count, sizeof *argv);
    size_t *sizes = calloc(HEAD + count, sizeof *sizes);
    CHECK(argv != NULL && sizes != NULL);
    const char *head[HEAD] = {"EVAL",    operation_script(s->operation), "4", s->keys[0], s->keys[1], s->keys[2],
                              s->keys[3]};
    for (uint32_t i = 0; i < HEAD; i++) {
        argv[i] = head[i];
        sizes[i] = strlen(head[i]);
    }
    for (uint32_t i = 0; i < count; i++) argv[HEAD + i] = value_list_get(&s->arguments, i, &sizes[HEAD + i]);
    s->sent = true;
    int result =
        redisAsyncCommandArgv(s->redis, on_reply, (void *)(uintptr_t)s->token, (int)(HEAD + count), argv, sizes);
    free(argv);
    free(sizes);
    if (result != REDIS_OK) store_drop(s, "the connection is closing");
}

static void store_is_up(struct store *s)
{
    s->state = STORE_UP;
    s->backoff_us = 0;
    s->counters.connects++;
    ev_timer_stop(s->options.loop, &s->watchdog_connect);
    store_log(s, LOG_INFO, "event=store_up address=\"%s\"", s->options.address);
    s->told_down = false;
    store_send(s);
}

static void on_auth(redisAsyncContext *redis, void *message, void *unused)
{
    struct store *s = redis->data;
    const redisReply *reply = message;
    (void)unused;
    if (redis != s->redis || reply == NULL) return;
    if (reply->type == REDIS_REPLY_ERROR)
        store_drop(s, reply->str);
    else if (s->state == STORE_CONNECTING)
        store_is_up(s);
}

static void store_attach(struct store *s, const struct store_place *place);

static void on_master(redisAsyncContext *redis, void *message, void *unused)
{
    struct store *s = redis->data;
    const redisReply *reply = message;
    char reason[160];
    (void)unused;
    if (redis != s->redis || reply == NULL) return;
    bool pair = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1]->type == REDIS_REPLY_STRING;
    if (!pair) {
        const char *why = reply->type == REDIS_REPLY_ERROR ? reply->str : "the sentinel knows no such master";
        snprintf(reason, sizeof reason, "%s: %s", s->address.master, why);
        store_drop(s, reason);
        return;
    }
    if (!store_place_numeric(reply->element[0]->str, reply->element[1]->str, &s->master)) {
        snprintf(reason, sizeof reason, "the sentinel names %.80s, which is no address", reply->element[0]->str);
        store_drop(s, reason);
        return;
    }
    s->redis = NULL;
    redisAsyncFree(redis);
    s->state = STORE_CONNECTING;
    store_attach(s, &s->master);
}

static void on_connect(const redisAsyncContext *redis, int status)
{
    struct store *s = redis->data;
    if (redis != s->redis) return;
    if (status != REDIS_OK) {
        char reason[160];
        snprintf(reason, sizeof reason, "%s", redis->errstr);
        s->redis = NULL; /* hiredis frees it when this callback is over */
        store_drop(s, reason);
        return;
    }
    /* The first answer counts, not the connection: a stopped server's kernel still accepts. If the command can't be
     * queued no answer comes, and the watchdog ends it. */
    bool asks = s->state == STORE_ASKING;
    const struct login *login = asks ? &s->sentinel_login : &s->login;
    if (login->user[0] != '\0')
        (void)redisAsyncCommand(s->redis, on_auth, NULL, "AUTH %s %s", login->user, login->password);
    else if (login->password[0] != '\0')
        (void)redisAsyncCommand(s->redis, on_auth, NULL, "AUTH %s", login->password);
    else if (!asks)
        (void)redisAsyncCommand(s->redis, on_auth, NULL, "PING");
    if (asks)
        (void)redisAsyncCommand(s->redis, on_master, NULL, "SENTINEL get-master-addr-by-name %s", s->address.master);
}

static void on_disconnect(const redisAsyncContext *redis, int status)
{
    struct store *s = redis->data;
    char reason[160];
    (void)status;
    if (redis != s->redis) return;
    snprintf(reason, sizeof reason, "%s", redis->errstr != NULL && redis->err != 0 ? redis->errstr : "closed");
    s->redis = NULL; /* hiredis frees it when this callback is over */
    store_drop(s, reason);
}

static void store_attach(struct store *s, const struct store_place *place)
{
    redisAsyncContext *redis =
        place->port == 0 ? redisAsyncConnectUnix(place->host) : redisAsyncConnect(place->host, place->port);
    CHECK(redis != NULL);
    s->redis = redis;
    redis->data = s;
    if (redis->err != 0) {
        char reason[160];
        snprintf(reason, sizeof reason, "%s", redis->errstr);
        store_drop(s, reason);
        return;
    }
    redisLibevAttach(s->options.loop, redis);
    redisAsyncSetConnectCallback(redis, on_connect);
    redisAsyncSetDisconnectCallback(redis, on_disconnect);
    ev_timer_stop(s->options.loop, &s->watchdog_connect);
    ev_timer_set(&s->watchdog_connect, seconds(s->options.timeout_us), 0);
    ev_timer_start(s->options.loop, &s->watchdog_connect);
}

static void store_connect(struct store *s)
{
    /* All sentinels, or all addresses of a name, have their turn: "localhost" may be two, with a server on one. */
    const struct store_place *place = &s->address.places[s->place_next++ % s->address.count];
    s->state = s->address.master[0] == '\0' ? STORE_CONNECTING : STORE_ASKING;
    store_attach(s, place);
}

static void on_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    store_connect(timer->data);
}

static void on_watchdog_connect(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    store_drop(timer->data, "no answer to the connection in time");
}

static void on_watchdog_operation(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct store *s = timer->data;
    (void)loop;
    (void)events;
    if (!s->sent) {
        store_answer(s, TERRANE_ERR_STORE_UNAVAILABLE);
        return;
    }
    s->counters.timeouts++;
    store_drop(s, "no answer to an operation in time");
}

void store_execute(struct store *s, enum store_operation operation, uint64_t token, const uint8_t *bytes, size_t size)
{
    s->counters.operations++;
    if (s->busy) {
        s->counters.failed++;
        s->options.stored(s->options.context, token, TERRANE_ERR_QUEUE_FULL, NULL, 0);
        return;
    }
    s->busy = true;
    s->sent = false;
    s->operation = operation;
    s->token = token;
    value_list_clear(&s->arguments);
    enum terrane_error error = TERRANE_ERR_OK;
    if (operation == STORE_SAVE) error = values_of_map(bytes, size, &s->arguments);
    if (operation == STORE_LEAD) error = values_of_lead(bytes, size, &s->arguments);
    if (error != TERRANE_ERR_OK) {
        store_answer(s, error);
        return;
    }
    ev_now_update(s->options.loop);
    ev_timer_set(&s->watchdog_operation, seconds(s->options.timeout_us), 0);
    ev_timer_start(s->options.loop, &s->watchdog_operation);
    store_send(s);
}

static bool take_login(struct login *login, const char *user, const char *password)
{
    int user_size = snprintf(login->user, sizeof login->user, "%s", user == NULL ? "" : user);
    int size = snprintf(login->password, sizeof login->password, "%s", password == NULL ? "" : password);
    return (size_t)user_size < sizeof login->user && (size_t)size < sizeof login->password;
}

static enum terrane_error take_options(struct store *s, const struct store_options *options, char *fault, size_t room)
{
    static const char *const parts[KEYS] = {"map", "meta", "servers", "leader"};
    size_t length = options->world == NULL ? 0 : strlen(options->world);
    if (length == 0 || length > WORLD_MAX || strpbrk(options->world, "{}") != NULL) {
        snprintf(fault, room, "the world's name \"%s\" must have 1 to %u characters and no braces",
                 length == 0 ? "" : options->world, WORLD_MAX);
        return TERRANE_ERR_CONFIG;
    }
    if (!take_login(&s->login, options->user, options->password) ||
        !take_login(&s->sentinel_login, options->sentinel_user, options->sentinel_password)) {
        snprintf(fault, room, "the user or password of the store or its sentinels is too long");
        return TERRANE_ERR_CONFIG;
    }
    /* The braces make the keys of one world one slot of a cluster, as a script needs it. */
    for (uint32_t i = 0; i < KEYS; i++)
        snprintf(s->keys[i], sizeof s->keys[i], "terrane:{%s}:%s", options->world, parts[i]);
    return s->options.resolve(options->address, &s->address, fault, room);
}

static void found_again(void *context, const struct store_address *address)
{
    struct store *s = context;
    s->address = *address;
}

enum terrane_error store_open(const struct store_options *options, struct store **out, char *fault, size_t room)
{
    struct store *s = calloc(1, sizeof *s);
    CHECK(s != NULL && options->loop != NULL && options->stored != NULL && options->address != NULL);
    *out = NULL;
    s->options = *options;
    if (s->options.timeout_us == 0) s->options.timeout_us = TIMEOUT_US;
    if (s->options.resolve == NULL) s->options.resolve = store_address_parse;
    enum terrane_error error = take_options(s, options, fault, room);
    if (error != TERRANE_ERR_OK) {
        free(s);
        return error;
    }
    s->options.address = strdup(options->address);
    CHECK(s->options.address != NULL);
    ev_timer_init(&s->retry, on_retry, 0, 0);
    ev_timer_init(&s->watchdog_connect, on_watchdog_connect, 0, 0);
    ev_timer_init(&s->watchdog_operation, on_watchdog_operation, 0, 0);
    s->retry.data = s->watchdog_connect.data = s->watchdog_operation.data = s;
    if (s->address.named)
        s->lookup = lookup_open(s->options.loop, s->options.address, s->options.resolve, found_again, s);
    store_connect(s);
    *out = s;
    return TERRANE_ERR_OK;
}

void store_close(struct store *s)
{
    if (s == NULL) return;
    redisAsyncContext *redis = s->redis;
    s->redis = NULL;
    if (redis != NULL) redisAsyncFree(redis);
    ev_timer_stop(s->options.loop, &s->retry);
    ev_timer_stop(s->options.loop, &s->watchdog_connect);
    ev_timer_stop(s->options.loop, &s->watchdog_operation);
    lookup_close(s->lookup);
    value_list_close(&s->arguments);
    value_list_close(&s->values);
    writer_close(&s->answer);
    free((char *)s->options.address);
    free(s);
}

void store_counters(const struct store *s, struct store_counters *out)
{
    *out = s->counters;
    out->connected = s->state == STORE_UP;
}
