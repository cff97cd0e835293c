#define _GNU_SOURCE
#include "runner/supervisor/changes.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#include "base/banned.h"

static dt_status put(dt_session *session, dt_store_write_fn *write, const void *what, size_t bytes,
                     dt_error *err)
{
    if (session->writer == NULL)
        return write(session->store, what, err);
    dt_store_writer_add(session->writer, write, what, bytes);
    return DT_OK;
}

static const char *keep(dt_session *session, const char *text)
{
    return session->writer != NULL ? dt_store_writer_text(session->writer, text) : text;
}

/* --- a point of a curve */

typedef struct metric {
    const char *run, *name;
    int64_t attempt, step, time_ms;
    double value;
} metric;

static dt_status write_metric(dt_store *store, const void *what, dt_error *err)
{
    const metric *point = what;

    return dt_store_metric_add(store, point->run, point->attempt, point->step, point->name,
                               point->value, point->time_ms, err);
}

dt_status dt_change_metric(dt_session *session, int64_t step, const char *name, double value,
                           int64_t time_ms, dt_error *err)
{
    const metric point = {.run = session->run,
                          .name = keep(session, name),
                          .attempt = session->attempt,
                          .step = step,
                          .time_ms = time_ms,
                          .value = value};

    return put(session, write_metric, &point, sizeof(point), err);
}

/* --- an event */

typedef struct event {
    const char *run;
    dt_store_event row;
} event;

static dt_status write_event(dt_store *store, const void *what, dt_error *err)
{
    const event *one = what;

    return dt_store_event_add(store, one->run, &one->row, err);
}

dt_status dt_change_event(dt_session *session, const dt_store_event *row, dt_error *err)
{
    event one = {.run = session->run, .row = *row};

    one.row.kind = keep(session, row->kind);
    one.row.json = keep(session, row->json);
    return put(session, write_event, &one, sizeof(one), err);
}

/* --- a checkpoint */

typedef struct checkpoint {
    const char *run;
    dt_store_checkpoint row;
} checkpoint;

static dt_status write_checkpoint(dt_store *store, const void *what, dt_error *err)
{
    const checkpoint *one = what;

    return dt_store_checkpoint_add(store, one->run, &one->row, err);
}

dt_status dt_change_checkpoint(dt_session *session, const dt_store_checkpoint *row, dt_error *err)
{
    checkpoint one = {.run = session->run, .row = *row};

    one.row.path = keep(session, row->path);
    one.row.digest = keep(session, row->digest);
    return put(session, write_checkpoint, &one, sizeof(one), err);
}

/* --- a node, a rank */

typedef struct node {
    const char *run;
    int64_t attempt;
    dt_node row;
} node;

static dt_status write_node(dt_store *store, const void *what, dt_error *err)
{
    const node *one = what;

    return dt_store_node_set(store, one->run, one->attempt, &one->row, err);
}

dt_status dt_change_node(dt_session *session, int64_t attempt, const dt_node *row, dt_error *err)
{
    node one = {.run = session->run, .attempt = attempt, .row = *row};

    one.row.name = keep(session, row->name);
    one.row.state = keep(session, row->state);
    one.row.boot_id = keep(session, row->boot_id);
    return put(session, write_node, &one, sizeof(one), err);
}

typedef struct rank {
    const char *run;
    int64_t attempt;
    dt_rank row;
    const dt_supervised_rank *supervised;
} rank;

static dt_status write_rank(dt_store *store, const void *what, dt_error *err)
{
    rank one = *(const rank *)what;

    one.row.log_bytes = one.supervised->log.bytes;
    return dt_store_rank_set(store, one.run, one.attempt, &one.row, err);
}

dt_status dt_change_rank(dt_session *session, dt_supervised_rank *supervised, dt_error *err)
{
    rank one = {.run = session->run,
                .attempt = session->attempt,
                .row = supervised->row,
                .supervised = supervised};

    one.row.device = keep(session, supervised->row.device);
    one.row.state = keep(session, supervised->row.state);
    return put(session, write_rank, &one, sizeof(one), err);
}

/* --- the run */

typedef struct run {
    const char *run;
    int64_t step, steps_total, now_ms;
    double loss, valid_loss, tokens_per_second;
    dt_run_state state;
} run;

static dt_status write_progress(dt_store *store, const void *what, dt_error *err)
{
    const run *one = what;

    return dt_store_run_set_progress(store, one->run, one->step, one->loss, one->valid_loss,
                                     one->tokens_per_second, one->now_ms, err);
}

dt_status dt_change_progress(dt_session *session, dt_error *err)
{
    const run one = {.run = session->run,
                     .step = session->step,
                     .loss = session->loss,
                     .valid_loss = session->valid_loss,
                     .tokens_per_second = session->tokens_per_second,
                     .now_ms = dt_clock_wall_ms()};

    return put(session, write_progress, &one, sizeof(one), err);
}

static dt_status write_steps_total(dt_store *store, const void *what, dt_error *err)
{
    const run *one = what;

    return dt_store_run_set_steps_total(store, one->run, one->steps_total, err);
}

dt_status dt_change_steps_total(dt_session *session, int64_t steps, dt_error *err)
{
    const run one = {.run = session->run, .steps_total = steps};

    return put(session, write_steps_total, &one, sizeof(one), err);
}

static dt_status write_state(dt_store *store, const void *what, dt_error *err)
{
    const run *one = what;

    return dt_store_run_set_state(store, one->run, one->state, -1, "", one->now_ms, err);
}

dt_status dt_change_state(dt_session *session, dt_run_state state, dt_error *err)
{
    const run one = {.run = session->run, .state = state, .now_ms = dt_clock_wall_ms()};

    return put(session, write_state, &one, sizeof(one), err);
}

/* --- the attempt, beside the store */

typedef struct kept {
    const char *folder;
    dt_kept attempt;
} kept;

static dt_status write_kept(dt_store *store, const void *what, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const kept *one = what;

    if (dt_kept_write(&one->attempt, one->folder, &problem) != DT_OK)
        dt_log_warn("what the history says of the attempt is not kept beside it: %s",
                    problem.message);
    return DT_OK;
}

/* Whoever writes it reads them on another thread. */
static void copy_nodes(dt_session *session)
{
    dt_node *nodes =
        dt_arena_alloc_array(&session->arena, (size_t)session->node_count, sizeof(*nodes));

    DT_ASSERT(nodes != NULL);
    for (int64_t i = 0; i < session->node_count; i++)
        nodes[i] = session->nodes[i].row;
    session->kept.nodes = nodes;
    session->kept.node_count = session->node_count;
}

static kept kept_now(dt_session *session)
{
    dt_run *row = &session->kept.run;

    row->step = session->step > row->step ? session->step : row->step;
    row->loss = isnan(session->loss) ? row->loss : session->loss;
    row->valid_loss = isnan(session->valid_loss) ? row->valid_loss : session->valid_loss;
    row->tokens_per_second =
        isnan(session->tokens_per_second) ? row->tokens_per_second : session->tokens_per_second;
    if (row->first_step_ms == 0 && session->step > 0)
        row->first_step_ms = dt_clock_wall_ms();
    if (session->steps_total > 0)
        row->steps_total = session->steps_total;
    copy_nodes(session);
    return (kept){session->folder, session->kept};
}

dt_status dt_change_kept(dt_session *session, dt_error *err)
{
    const kept one = kept_now(session);

    return put(session, write_kept, &one, sizeof(one), err);
}

void dt_change_kept_now(dt_session *session)
{
    const kept one = kept_now(session);

    (void)write_kept(session->store, &one, NULL);
}

/* --- a line of a rank's log */

typedef struct line {
    dt_supervised_rank *rank;
    const char *folder, *text;
    size_t length;
} line;

static dt_status write_line(dt_store *store, const void *what, dt_error *err)
{
    const line *one = what;

    return dt_rank_log_write(&one->rank->log, one->folder, one->rank->row.rank, one->text,
                             one->length, err);
}

dt_status dt_change_log(dt_session *session, dt_supervised_rank *to, const char *text,
                        size_t length, dt_error *err)
{
    const line one = {
        .rank = to, .folder = session->folder, .text = keep(session, text), .length = length};

    to->changed = true;
    return put(session, write_line, &one, sizeof(one), err);
}
