#define _GNU_SOURCE
#include "runner/supervisor/collect/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/supervisor/folder/task_folder.h"
#include "store/repair.h"

#include "base/banned.h"

#define LOOP_PATIENCE_MS 1000 /* longest wait for a locked store on the loop */

struct dt_history {
    dt_history_setup setup;
    dt_store_writer *writer; /* NULL: not started, or ended */
    bool in_transaction;     /* of the store, if there is no writer */
};

dt_history *dt_history_open(const dt_history_setup *setup)
{
    dt_history *history = calloc(1, sizeof(*history));

    DT_ASSERT(history != NULL);
    history->setup = *setup;
    return history;
}

void dt_history_close(dt_history *history)
{
    if (history == NULL)
        return;
    dt_history_end_writer(history);
    dt_history_rollback(history);
    free(history);
}

/* --- transactions and batches */

dt_status dt_history_begin(dt_history *history, dt_error *err)
{
    dt_status st = DT_OK;

    if (history->setup.mode == DT_HISTORY_FOLLOW && history->writer == NULL &&
        !history->in_transaction) {
        st = dt_store_begin(history->setup.store, err);
        history->in_transaction = st == DT_OK;
    }
    return st;
}

bool dt_history_is_open(const dt_history *history)
{
    return history->writer != NULL || history->in_transaction;
}

dt_status dt_history_commit(int64_t *batch, dt_history *history, dt_error *err)
{
    dt_status st = DT_OK;

    *batch = 0;
    if (history->writer != NULL)
        *batch = dt_store_writer_submit(history->writer);
    else if (history->in_transaction)
        st = dt_store_commit(history->setup.store, err);
    if (st == DT_OK)
        history->in_transaction = false;
    return st;
}

void dt_history_rollback(dt_history *history)
{
    if (history->in_transaction)
        dt_store_rollback(history->setup.store);
    history->in_transaction = false;
}

dt_status dt_history_begin_writer(dt_history *history, uv_loop_t *loop,
                                  const dt_store_writer_calls *calls, void *context, dt_error *err)
{
    /* for the few changes that still run on the loop */
    dt_store_set_patience(history->setup.store, LOOP_PATIENCE_MS);
    return dt_store_writer_open(&history->writer, NULL, loop, calls, context, err);
}

void dt_history_end_writer(dt_history *history)
{
    dt_store_writer_close(history->writer);
    history->writer = NULL;
}

dt_store_writer *dt_history_writer(const dt_history *history)
{
    return history->writer;
}

static dt_status put(dt_history *history, dt_store_write_fn *write, const void *what, size_t bytes,
                     dt_error *err)
{
    if (history->writer == NULL)
        return write(history->setup.store, what, err);
    dt_store_writer_add(history->writer, write, what, bytes);
    return DT_OK;
}

/* True if journals are read again: their state, logs and parts are out of date. */
static bool is_replayed(const dt_history *history)
{
    return history->setup.mode != DT_HISTORY_FOLLOW;
}

static bool only_compares(const dt_history *history)
{
    return history->setup.mode == DT_HISTORY_COMPARE;
}

static const char *keep(dt_history *history, const char *text)
{
    return history->writer != NULL ? dt_store_writer_text(history->writer, text) : text;
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

static dt_status find_metric(dt_history *history, const metric *point, dt_error *err)
{
    const dt_metric wanted = {.attempt = point->attempt,
                              .step = point->step,
                              .time_ms = point->time_ms,
                              .name = point->name,
                              .value = point->value};
    bool has = false;
    dt_status st =
        dt_store_metric_has(history->setup.store, &has, history->setup.run, &wanted, err);

    *history->setup.missing += st == DT_OK && !has;
    return st;
}

static dt_status mend_metric(dt_history *history, const metric *point, dt_error *err)
{
    const dt_metric right = {.attempt = point->attempt,
                             .step = point->step,
                             .time_ms = point->time_ms,
                             .name = point->name,
                             .value = point->value};

    return dt_store_metric_mend(history->setup.store, history->setup.run, &right, err);
}

dt_status dt_history_metric(dt_history *history, int64_t step, const char *name, double value,
                            int64_t time_ms, dt_error *err)
{
    const metric point = {.run = history->setup.run,
                          .name = keep(history, name),
                          .attempt = history->setup.attempt,
                          .step = step,
                          .time_ms = time_ms,
                          .value = value};

    if (only_compares(history))
        return find_metric(history, &point, err);
    if (history->setup.mend && mend_metric(history, &point, err) != DT_OK)
        return err != NULL ? err->code : DT_ERR_IO;
    return put(history, write_metric, &point, sizeof(point), err);
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

dt_status dt_history_event(dt_history *history, const dt_store_event *row, dt_error *err)
{
    event one = {.run = history->setup.run, .row = *row};
    bool has = false;
    dt_status st;

    if (only_compares(history)) {
        st = dt_store_event_has(history->setup.store, &has, one.run, row, err);
        *history->setup.missing += st == DT_OK && !has;
        return st;
    }
    one.row.kind = keep(history, row->kind);
    one.row.json = keep(history, row->json);
    return put(history, write_event, &one, sizeof(one), err);
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

dt_status dt_history_checkpoint(dt_history *history, const dt_store_checkpoint *row, dt_error *err)
{
    checkpoint one = {.run = history->setup.run, .row = *row};
    bool has = false;
    dt_status st;

    if (only_compares(history)) {
        st = dt_store_checkpoint_has(history->setup.store, &has, one.run, row, err);
        *history->setup.missing += st == DT_OK && !has;
        return st;
    }
    one.row.path = keep(history, row->path);
    one.row.digest = keep(history, row->digest);
    return put(history, write_checkpoint, &one, sizeof(one), err);
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

dt_status dt_history_node(dt_history *history, int64_t attempt, const dt_node *row, dt_error *err)
{
    node one = {.run = history->setup.run, .attempt = attempt, .row = *row};

    one.row.name = keep(history, row->name);
    one.row.state = keep(history, row->state);
    one.row.boot_id = keep(history, row->boot_id);
    if (is_replayed(history))
        return DT_OK;
    return put(history, write_node, &one, sizeof(one), err);
}

typedef struct rank {
    const char *run;
    int64_t attempt;
    dt_rank row;
    const dt_rank_log *log;
} rank;

static dt_status write_rank(dt_store *store, const void *what, dt_error *err)
{
    rank one = *(const rank *)what;

    one.row.log_bytes = one.log->bytes;
    return dt_store_rank_set(store, one.run, one.attempt, &one.row, err);
}

dt_status dt_history_rank(dt_history *history, const dt_rank *row, const dt_rank_log *log,
                          dt_error *err)
{
    rank one = {
        .run = history->setup.run, .attempt = history->setup.attempt, .row = *row, .log = log};

    one.row.device = keep(history, row->device);
    one.row.state = keep(history, row->state);
    if (is_replayed(history))
        return DT_OK;
    return put(history, write_rank, &one, sizeof(one), err);
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

dt_status dt_history_progress(dt_history *history, const dt_progress *progress, dt_error *err)
{
    const run one = {.run = history->setup.run,
                     .step = progress->step,
                     .loss = progress->loss,
                     .valid_loss = progress->valid_loss,
                     .tokens_per_second = progress->tokens_per_second,
                     .now_ms = dt_clock_wall_ms()};

    if (is_replayed(history))
        return DT_OK;
    return put(history, write_progress, &one, sizeof(one), err);
}

static dt_status write_steps_total(dt_store *store, const void *what, dt_error *err)
{
    const run *one = what;

    return dt_store_run_set_steps_total(store, one->run, one->steps_total, err);
}

dt_status dt_history_steps_total(dt_history *history, int64_t steps, dt_error *err)
{
    const run one = {.run = history->setup.run, .steps_total = steps};

    if (is_replayed(history))
        return DT_OK;
    return put(history, write_steps_total, &one, sizeof(one), err);
}

static dt_status write_state(dt_store *store, const void *what, dt_error *err)
{
    const run *one = what;

    return dt_store_run_set_state(store, one->run, one->state, -1, "", one->now_ms, err);
}

dt_status dt_history_state(dt_history *history, dt_run_state state, dt_error *err)
{
    const run one = {.run = history->setup.run, .state = state, .now_ms = dt_clock_wall_ms()};

    if (is_replayed(history))
        return DT_OK;
    return put(history, write_state, &one, sizeof(one), err);
}

/* --- the attempt's record */

typedef struct record {
    const char *folder;
    dt_attempt_record attempt;
} record;

static dt_status write_record(dt_store *store, const void *what, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const record *one = what;

    if (dt_attempt_record_write(&one->attempt, one->folder, &problem) != DT_OK)
        dt_log_warn("cannot write the attempt's record: %s", problem.message);
    return DT_OK;
}

dt_status dt_history_record_attempt(dt_history *history, const dt_attempt_record *attempt,
                                    dt_error *err)
{
    const record one = {history->setup.folder, *attempt};

    if (is_replayed(history))
        return DT_OK;
    return put(history, write_record, &one, sizeof(one), err);
}

/* --- a piece of a task's part */

typedef struct piece {
    const char *folder;
    dt_history_piece of;
} piece;

static int nibble(char digit)
{
    return digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
}

static dt_status write_part(dt_store *store, const void *what, dt_error *err)
{
    const piece *one = what;
    const char *text = one->of.text;
    dt_strbuf bytes;
    dt_status st;

    dt_strbuf_init(&bytes);
    if (!one->of.hex)
        dt_strbuf_add_str(&bytes, text);
    for (size_t i = 0; one->of.hex && text[i] != '\0' && text[i + 1] != '\0'; i += 2)
        dt_strbuf_add_char(&bytes, (char)(nibble(text[i]) << 4 | nibble(text[i + 1])));
    st = dt_task_folder_write(one->folder, one->of.part, one->of.offset, one->of.last, bytes.data,
                              bytes.length, err);
    dt_strbuf_release(&bytes);
    return st;
}

dt_status dt_history_part(dt_history *history, const dt_history_piece *of, dt_error *err)
{
    piece one = {.folder = history->setup.folder, .of = *of};

    one.of.text = keep(history, of->text);
    if (is_replayed(history))
        return DT_OK;
    return put(history, write_part, &one, sizeof(one), err);
}

/* --- a line of a rank's log */

typedef struct line {
    dt_rank_log *log;
    const char *folder, *text;
    int64_t rank;
    size_t length;
} line;

static dt_status write_line(dt_store *store, const void *what, dt_error *err)
{
    const line *one = what;

    return dt_rank_log_write(one->log, one->folder, one->rank, one->text, one->length, err);
}

dt_status dt_history_log(dt_history *history, dt_rank_log *log, int64_t rank_index,
                         const char *text, size_t length, dt_error *err)
{
    const line one = {.log = log,
                      .folder = history->setup.folder,
                      .rank = rank_index,
                      .text = keep(history, text),
                      .length = length};

    if (is_replayed(history))
        return DT_OK;
    return put(history, write_line, &one, sizeof(one), err);
}
