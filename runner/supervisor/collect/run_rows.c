/* run_rows: writes rows of all kinds, and the logs of ranks, whose lengths are rows. */
#include "runner/supervisor/collect/run_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "runner/supervisor/folder/digest_file.h"
#include "runner/supervisor/folder/task_folder.h"
#include "store/repair.h"
#include "store/why.h"

/* --- the log of a rank */

#define KEEP_BYTES ((int64_t)64 << 20)
#define STEP_BYTES ((int64_t)16 << 20) /* freed in one go */

static void drop_oldest(const dt_rank_log *log)
{
    int64_t before = (log->stored_bytes - KEEP_BYTES) / STEP_BYTES;
    int64_t now = (log->bytes - KEEP_BYTES) / STEP_BYTES;

    if (log->fd >= 0 && log->bytes > KEEP_BYTES && now > 0 && now != before)
        (void)fallocate(log->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, now * STEP_BYTES);
}

dt_status dt_rank_log_open(dt_rank_log *log, const char *folder, int64_t rank, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    dt_strbuf path;

    dt_strbuf_init(&path);
    if (log->fd >= 0)
        goto out;
    dt_strbuf_add_fmt(&path, "%s/logs", folder);
    DT_TRY(dt_file_make_dirs(path.data, 0700, err));
    dt_strbuf_add_fmt(&path, "/rank-%lld.log", (long long)rank);
    log->fd = open(path.data, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log->fd < 0 || fstat(log->fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot open '%s': %s", path.data, strerror(errno));
    if (info.st_size < log->bytes)
        log->bytes = log->stored_bytes = info.st_size; /* the file was shortened */
    if (ftruncate(log->fd, log->bytes) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot truncate '%s': %s", path.data, strerror(errno));
out:
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_rank_log_write(dt_rank_log *log, const char *folder, int64_t rank, const char *text,
                            size_t length, dt_error *err)
{
    dt_status st;

    DT_TRY(dt_rank_log_open(log, folder, rank, err));
    DT_TRY(dt_file_write_all(log->fd, text, length, err));
    log->bytes += (int64_t)length;
    log->unsynced = true;
out:
    if (st != DT_OK)
        dt_error_prefix(err, "the log of rank %lld", (long long)rank);
    return st;
}

void dt_rank_log_settle(dt_rank_log *log, bool committed)
{
    if (committed) {
        drop_oldest(log);
        log->stored_bytes = log->bytes;
        return;
    }
    log->bytes = log->stored_bytes;
    dt_rank_log_close(log); /* truncated when it is opened again */
}

dt_status dt_rank_log_sync(dt_rank_log *log, dt_error *err)
{
    if (log->fd < 0 || !log->unsynced)
        return DT_OK;
    if (fdatasync(log->fd) != 0 && errno != EINVAL)
        return DT_FAIL(err, DT_ERR_IO, "cannot sync the log of a rank: %s", strerror(errno));
    log->unsynced = false;
    return DT_OK;
}

void dt_rank_log_close(dt_rank_log *log)
{
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
}

/* --- rows */

#define LOOP_PATIENCE_MS 1000 /* longest wait for a locked store on the loop */

struct dt_run_rows {
    dt_run_rows_setup setup;
    dt_store_writer *writer; /* NULL: not started, or ended */
    bool in_transaction;     /* a transaction of the store is open; only if there is no writer */
};

/* A row in the writer's queue. */
typedef struct queued {
    const dt_run_rows_setup *setup;
    dt_row row;
} queued;

dt_run_rows *dt_run_rows_open(const dt_run_rows_setup *setup)
{
    dt_run_rows *rows = dt_calloc(1, sizeof(*rows));

    rows->setup = *setup;
    return rows;
}

void dt_run_rows_close(dt_run_rows *rows)
{
    if (rows == NULL)
        return;
    dt_run_rows_end_writer(rows);
    if (rows->in_transaction)
        dt_store_rollback(rows->setup.store);
    free(rows);
}

/* --- transactions and batches */

dt_status dt_run_rows_begin(dt_run_rows *rows, dt_error *err)
{
    dt_status st = DT_OK;

    if (rows->setup.mode == DT_RUN_ROWS_FOLLOW && rows->writer == NULL && !rows->in_transaction) {
        st = dt_store_begin(rows->setup.store, err);
        rows->in_transaction = st == DT_OK;
    }
    return st;
}

bool dt_run_rows_is_open(const dt_run_rows *rows)
{
    return rows->writer != NULL || rows->in_transaction;
}

dt_status dt_run_rows_commit(int64_t *batch, dt_run_rows *rows, dt_error *err)
{
    dt_status st = DT_OK;

    *batch = 0;
    if (rows->writer != NULL)
        *batch = dt_store_writer_submit(rows->writer);
    else if (rows->in_transaction)
        st = dt_store_commit(rows->setup.store, err);
    if (st == DT_OK)
        rows->in_transaction = false;
    return st;
}

dt_status dt_run_rows_begin_writer(dt_run_rows *rows, uv_loop_t *loop,
                                   const dt_store_writer_calls *calls, void *context, dt_error *err)
{
    /* for the few changes that still run on the loop */
    dt_store_set_patience(rows->setup.store, LOOP_PATIENCE_MS);
    return dt_store_writer_open(&rows->writer, NULL, loop, calls, context, err);
}

void dt_run_rows_end_writer(dt_run_rows *rows)
{
    dt_store_writer_close(rows->writer);
    rows->writer = NULL;
}

dt_store_writer *dt_run_rows_writer(const dt_run_rows *rows)
{
    return rows->writer;
}

/* --- writing, on the writer's thread if there is one */

static int nibble(char digit)
{
    return digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
}

static dt_status write_piece(const char *folder, const dt_row *row, dt_error *err)
{
    const char *text = row->piece.text;
    dt_strbuf bytes;
    dt_status st;

    dt_strbuf_init(&bytes);
    if (!row->piece.hex)
        dt_strbuf_add_str(&bytes, text);
    for (size_t i = 0; row->piece.hex && text[i] != '\0' && text[i + 1] != '\0'; i += 2)
        dt_strbuf_add_char(&bytes, (char)(nibble(text[i]) << 4 | nibble(text[i + 1])));
    st = dt_task_folder_write(folder, row->piece.part, row->piece.offset, row->piece.last,
                              bytes.data, bytes.length, err);
    dt_strbuf_release(&bytes);
    return st;
}

static dt_status write_rank(dt_store *store, const char *run, const dt_row *row, dt_error *err)
{
    dt_rank rank = row->rank.row;

    rank.log_bytes = row->rank.log->bytes;
    return dt_store_rank_set(store, run, row->attempt, &rank, err);
}

static dt_status write_record(const char *folder, const dt_attempt_record *record)
{
    dt_error problem = DT_ERROR_INIT;

    if (dt_attempt_record_write(record, folder, &problem) != DT_OK)
        dt_log_warn("cannot write the attempt's record: %s", problem.message);
    return DT_OK;
}

/* Not synced: it is written again with the next judgement. */
static dt_status write_why(const dt_run_rows_setup *setup, const char *text)
{
    char path[PATH_MAX], aside[PATH_MAX];
    FILE *file;
    bool whole;

    snprintf(path, sizeof(path), "%s/attempt-%lld/" DT_WHY_FILE, setup->folder,
             (long long)setup->attempt);
    snprintf(aside, sizeof(aside), "%s/attempt-%lld/" DT_WHY_FILE ".new", setup->folder,
             (long long)setup->attempt);
    file = fopen(aside, "we");
    whole = file != NULL && fchmod(fileno(file), 0600) == 0 && fputs(text, file) >= 0;
    whole = file != NULL && fclose(file) == 0 && whole;
    if (!whole || rename(aside, path) != 0)
        dt_log_warn("cannot write '%s': %s", path, strerror(errno));
    return DT_OK;
}

static dt_status write_row(dt_store *store, const void *what, dt_error *err)
{
    const queued *one = what;
    const dt_row *row = &one->row;
    const char *run = one->setup->run, *folder = one->setup->folder;
    const dt_metric *point = &row->metric;
    const dt_progress *now = &row->progress.now;

    switch (row->kind) {
    case DT_ROW_METRIC:
        return dt_store_metric_add(store, run, point->attempt, point->step, point->name,
                                   point->value, point->time_ms, err);
    case DT_ROW_EVENT:
        return dt_store_event_add(store, run, &row->event, err);
    case DT_ROW_CHECKPOINT:
        return dt_store_checkpoint_add(store, run, &row->checkpoint, err);
    case DT_ROW_NODE:
        return dt_store_node_set(store, run, row->attempt, &row->node, err);
    case DT_ROW_RANK:
        return write_rank(store, run, row, err);
    case DT_ROW_PROGRESS:
        return dt_store_run_set_progress(store, run, now->step, now->loss, now->valid_loss,
                                         now->tokens_per_second, row->progress.time_ms, err);
    case DT_ROW_STEPS_TOTAL:
        return dt_store_run_set_steps_total(store, run, row->steps_total, err);
    case DT_ROW_STATE:
        return dt_store_run_set_state(store, run, row->state.now, -1, "", row->state.time_ms, err);
    case DT_ROW_RECORD:
        return write_record(folder, row->record);
    case DT_ROW_WHY:
        return write_why(one->setup, row->text);
    case DT_ROW_PART:
        return write_piece(folder, row, err);
    case DT_ROW_DIGESTS:
        return dt_digest_file_write(folder, row->attempt, row->digests.rank, row->digests.offset,
                                    row->digests.text, err);
    case DT_ROW_LINE:
        return dt_rank_log_write(row->line.log, folder, row->line.rank, row->line.text,
                                 strlen(row->line.text), err);
    }
    return DT_OK;
}

/* Copies the texts of the row into the open batch. */
static void keep_texts(dt_store_writer *writer, dt_row *row)
{
    const char **texts[3] = {NULL};

    switch (row->kind) {
    case DT_ROW_METRIC:
        texts[0] = &row->metric.name;
        break;
    case DT_ROW_EVENT:
        texts[0] = &row->event.kind;
        texts[1] = &row->event.json;
        break;
    case DT_ROW_CHECKPOINT:
        texts[0] = &row->checkpoint.path;
        texts[1] = &row->checkpoint.digest;
        break;
    case DT_ROW_NODE:
        texts[0] = &row->node.name;
        texts[1] = &row->node.state;
        texts[2] = &row->node.boot_id;
        break;
    case DT_ROW_RANK:
        texts[0] = &row->rank.row.device;
        texts[1] = &row->rank.row.state;
        break;
    case DT_ROW_WHY:
        texts[0] = &row->text;
        break;
    case DT_ROW_PART:
        texts[0] = &row->piece.text;
        break;
    case DT_ROW_DIGESTS:
        texts[0] = &row->digests.text;
        break;
    case DT_ROW_LINE:
        texts[0] = &row->line.text;
        break;
    case DT_ROW_RECORD:
        row->record = dt_store_writer_copy(writer, row->record, sizeof(*row->record));
        break;
    case DT_ROW_PROGRESS:
    case DT_ROW_STEPS_TOTAL:
    case DT_ROW_STATE:
        break;
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i] != NULL && *texts[i] != NULL)
            *texts[i] = dt_store_writer_copy(writer, *texts[i], strlen(*texts[i]) + 1);
}

/* Counts the row as missing unless the store has it. */
static dt_status look_for(const dt_run_rows_setup *setup, const dt_row *row, dt_error *err)
{
    bool has = false;
    dt_status st;

    if (row->kind == DT_ROW_METRIC)
        st = dt_store_metric_has(setup->store, &has, setup->run, &row->metric, err);
    else if (row->kind == DT_ROW_EVENT)
        st = dt_store_event_has(setup->store, &has, setup->run, &row->event, err);
    else
        st = dt_store_checkpoint_has(setup->store, &has, setup->run, &row->checkpoint, err);
    *setup->missing += st == DT_OK && !has;
    return st;
}

dt_status dt_run_rows_put(dt_run_rows *rows, const dt_row *row, dt_error *err)
{
    const dt_run_rows_setup *setup = &rows->setup;
    queued one = {.setup = setup, .row = *row};
    dt_status st = DT_OK;

    if (setup->mode != DT_RUN_ROWS_FOLLOW && row->kind > DT_ROW_CHECKPOINT)
        return DT_OK;
    if (setup->mode == DT_RUN_ROWS_COMPARE)
        return look_for(setup, row, err);
    if (setup->mend && row->kind == DT_ROW_METRIC)
        DT_TRY(dt_store_metric_mend(setup->store, setup->run, &row->metric, err));
    if (rows->writer == NULL)
        return write_row(setup->store, &one, err);
    keep_texts(rows->writer, &one.row);
    dt_store_writer_add(rows->writer, write_row, &one, sizeof(one));
out:
    return st;
}
