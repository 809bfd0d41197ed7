#include "tools/questions.h"

#include "common/check.h"

#include <stdlib.h>
#include <string.h>

struct asked {
    struct question question;
    uint64_t request; /* 0: free */
    uint32_t session;
    uint8_t *found; /* of each bot */
};

struct questions {
    const struct checker *checker;
    uint32_t bots, open;
    uint64_t first_id;
    struct asked asked[QUESTIONS_OPEN];
    struct question_counts counts;
};

struct questions *questions_open(const struct checker *checker, uint32_t bots, uint64_t first_id)
{
    struct questions *q = calloc(1, sizeof *q);
    CHECK(q != NULL);
    *q = (struct questions){.checker = checker, .bots = bots, .first_id = first_id};
    for (uint32_t i = 0; i < QUESTIONS_OPEN; i++) {
        q->asked[i].found = calloc(bots, 1);
        CHECK(q->asked[i].found != NULL);
    }
    return q;
}

void questions_close(struct questions *q)
{
    if (q == NULL) return;
    for (uint32_t i = 0; i < QUESTIONS_OPEN; i++) free(q->asked[i].found);
    free(q);
}

static struct asked *asked_of(struct questions *q, uint32_t session, uint64_t request)
{
    for (uint32_t i = 0; i < QUESTIONS_OPEN && request != 0; i++)
        if (q->asked[i].request == request && q->asked[i].session == session) return &q->asked[i];
    return NULL;
}

bool questions_begin(struct questions *q, uint32_t session, uint64_t request, const struct question *question)
{
    for (uint32_t i = 0; i < QUESTIONS_OPEN; i++) {
        struct asked *a = &q->asked[i];
        if (a->request != 0) continue;
        memset(a->found, 0, q->bots);
        a->question = *question;
        a->request = request;
        a->session = session;
        q->open++;
        q->counts.asked++;
        return true;
    }
    return false;
}

static bool holds(const struct questions *q, const struct question *question, uint32_t bot)
{
    struct position p = checker_position(q->checker, bot);
    if (question->kind == QUESTION_FIND) return bot == question->bot;
    if (question->kind == QUESTION_RECTANGLE)
        return p.x >= question->min.x && p.x <= question->max.x && p.y >= question->min.y && p.y <= question->max.y;
    int64_t dx = (int64_t)p.x - question->min.x, dy = (int64_t)p.y - question->min.y;
    return dx * dx + dy * dy <= (int64_t)question->radius * question->radius;
}

void questions_found(struct questions *q, uint32_t session, uint64_t request, uint64_t id, struct position position)
{
    struct asked *a = asked_of(q, session, request);
    uint64_t bot = id - q->first_id;
    if (a == NULL) q->counts.unknown++;
    if (a == NULL || bot >= q->bots) return;
    struct position p = checker_position(q->checker, (uint32_t)bot);
    bool right = position.x == p.x && position.y == p.y && position.z == p.z && a->found[bot] == 0 &&
                 holds(q, &a->question, (uint32_t)bot);
    q->counts.false_found += !right;
    a->found[bot] = 1;
}

void questions_done(struct questions *q, uint32_t session, uint64_t request, bool failed)
{
    struct asked *a = asked_of(q, session, request);
    if (a == NULL) {
        q->counts.unknown++;
        return;
    }
    q->counts.answered++;
    q->counts.failed += failed;
    for (uint32_t bot = 0; bot < q->bots && !failed; bot++)
        q->counts.missing += a->found[bot] == 0 && holds(q, &a->question, bot);
    a->request = 0;
    q->open--;
}

uint32_t questions_open_count(const struct questions *q)
{
    return q->open;
}

void questions_give_up(struct questions *q)
{
    for (uint32_t i = 0; i < QUESTIONS_OPEN; i++) {
        if (q->asked[i].request == 0) continue;
        q->asked[i].request = 0;
        q->open--;
        q->counts.failed++;
    }
}

const struct question_counts *questions_counts(const struct questions *q)
{
    return &q->counts;
}
