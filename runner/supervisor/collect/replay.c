/* replay: reads the journals in a run's folder again, for an attempt that has ended. */
#include "runner/supervisor/collect/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "recipes/fields/fields.h"
#include "runner/channel/protocol.h"
#include "runner/supervisor/collect/collect_int.h"

/* journal_file: reads the lines of a journal whose agent is gone, without changing it.
 *
 * Valid lines come in order, each number once. Damaged lines and the hole that an agent made
 * (runner/agent/journal/journal.c) are skipped.
 */

typedef struct dt_journal_file {
    int fd;
    const char *path; /* borrowed */
    int64_t at;       /* file offset after the buffer */
    dt_strbuf buffer;
    size_t taken; /* bytes of the buffer that were returned */
    int64_t last; /* number of the last valid line, -1: none */
} dt_journal_file;

#define READ_BYTES ((size_t)256 << 10)

/* DT_ERR_NOT_FOUND, DT_ERR_IO. */
static dt_status journal_file_open(dt_journal_file *out, const char *path, dt_error *err)
{
    *out = (dt_journal_file){.path = path, .last = -1};
    dt_strbuf_init(&out->buffer);
    out->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (out->fd >= 0)
        return DT_OK;
    return DT_FAIL(err, errno == ENOENT ? DT_ERR_NOT_FOUND : DT_ERR_IO, "cannot read '%s': %s",
                   path, strerror(errno));
}

/* accepts a file that could not be opened */
static void journal_file_close(dt_journal_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    dt_strbuf_release(&file->buffer);
}

/* Reads more of the file into the buffer; *more is false at its end. */
static dt_status fill(dt_journal_file *file, bool *more, dt_error *err)
{
    char bytes[READ_BYTES];
    off_t data;
    ssize_t got;

    dt_strbuf_remove_front(&file->buffer, file->taken);
    file->taken = 0;
    data = lseek(file->fd, (off_t)file->at, SEEK_DATA);
    if (data > (off_t)file->at) {
        dt_strbuf_add_char(&file->buffer, '\n');
        file->at = data;
    }
    do
        got = pread(file->fd, bytes, sizeof(bytes), (off_t)file->at);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot read '%s': %s", file->path, strerror(errno));
    *more = got > 0;
    for (ssize_t i = 0; i < got; i++)
        if (bytes[i] == '\0') /* a hole: no line spans it */
            bytes[i] = '\n';
    if (got > 0)
        dt_strbuf_add(&file->buffer, bytes, (size_t)got);
    file->at += got > 0 ? got : 0;
    return DT_OK;
}

/* Returns the next valid line, which is valid until the next call; *line is NULL at the end. */
static dt_status journal_file_next(dt_journal_file *file, const char **line, size_t *length,
                                   dt_error *err)
{
    dt_status st = DT_OK;
    bool more = true;

    *line = NULL;
    while (more) {
        const char *from = file->buffer.data + file->taken;
        const char *end = memchr(from, '\n', file->buffer.length - file->taken);
        int64_t sequence;

        if (end == NULL) {
            DT_TRY(fill(file, &more, err));
            continue;
        }
        file->taken += (size_t)(end - from) + 1;
        sequence = end > from ? dt_journal_line_sequence(from, (size_t)(end - from)) : -1;
        if (sequence <= file->last)
            continue;
        file->last = sequence;
        *line = from;
        *length = (size_t)(end - from);
        break;
    }
out:
    return st;
}

/* --- an attempt's journals, into rows */

typedef struct replaying {
    const dt_replay *request;
    bool compare, whole;
    int64_t world_size, missing;
    const char *checkpoints;
    dt_plan plan; /* zero if it cannot be read */
    dt_poll_clock clock;
    dt_collector *collector;
    dt_arena arena;
} replaying;

static const char *path_of(replaying *replay, int64_t node)
{
    return dt_arena_printf(&replay->arena, "%s/attempt-%lld/node-%lld/journal.jsonl",
                           replay->request->folder, (long long)replay->request->attempt,
                           (long long)node);
}

/* --- lines */

typedef dt_status (*take_fn)(replaying *replay, int64_t node, const dt_message *message,
                             dt_error *err);

/* Calls `take` for each event of the journal that can be parsed. */
static dt_status read_lines(bool *there, replaying *replay, int64_t node, int64_t world_size,
                            take_fn take, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const char *path = path_of(replay, node), *line;
    dt_journal_file file = {.fd = -1};
    dt_message message;
    size_t length;
    dt_status st;

    *there = false;
    st = journal_file_open(&file, path, &problem);
    if (st == DT_ERR_NOT_FOUND)
        goto out;
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    *there = true;
    for (;;) {
        DT_TRY(journal_file_next(&file, &line, &length, err));
        if (line == NULL)
            break;
        if (dt_message_parse(&message, line, length, world_size, NULL) != DT_OK)
            continue;
        st = message.numbered ? take(replay, node, &message, err) : DT_OK;
        dt_message_release(&message);
        if (st != DT_OK)
            goto out;
    }
out:
    journal_file_close(&file);
    return st == DT_ERR_NOT_FOUND && !*there ? DT_OK : st;
}

static dt_status take_rank(replaying *replay, int64_t node, const dt_message *message,
                           dt_error *err)
{
    replay->world_size =
        message->rank >= replay->world_size ? message->rank + 1 : replay->world_size;
    return DT_OK;
}

/* Finds the number of ranks from the plan, or else from the journals. */
static dt_status find_ranks(replaying *replay, dt_error *err)
{
    const char *path =
        dt_arena_printf(&replay->arena, "%s/attempt-%lld/plan.json", replay->request->folder,
                        (long long)replay->request->attempt);
    dt_status st = DT_OK;
    bool there;

    if (dt_plan_read(&replay->plan, path, &replay->arena, NULL) == DT_OK) {
        replay->world_size = replay->plan.world_size;
        goto out;
    }
    replay->plan = (dt_plan){0};
    replay->world_size = 1;
    for (int64_t i = 0; i < replay->request->node_count; i++)
        DT_TRY(read_lines(&there, replay, i, DT_PROTOCOL_MAX_RANKS, take_rank, err));
out:
    return st;
}

/* --- events */

/* True if the rows of an event depend on this journal only. */
static bool is_compared(const replaying *replay, const dt_message *message)
{
    return message->kind != DT_MESSAGE_PACE && message->kind != DT_MESSAGE_PART &&
           message->kind != DT_MESSAGE_RECORD;
}

static dt_status take_event(replaying *replay, int64_t node, const dt_message *message,
                            dt_error *err)
{
    dt_collected_node *collected = &replay->collector->nodes[node];
    int64_t next = collected->row.acknowledged;
    int64_t last = message->after >= 0 ? message->after : message->sequence - 1;

    replay->whole = replay->whole && last < next;
    collected->row.acknowledged = message->sequence;
    if (replay->compare && !is_compared(replay, message)) {
        collected->row.acknowledged++;
        return DT_OK;
    }
    return dt_collector_ingest(replay->collector, node, message, err);
}

/* Updates a rank and its machine from `started`. */
static void on_event(void *context, int64_t node, const dt_message *message)
{
    replaying *replay = context;
    dt_collected_rank *rank;
    const char *boot_id;

    if (message->kind != DT_MESSAGE_STARTED)
        return;
    rank = &replay->collector->ranks[message->rank];
    rank->row.node = node;
    rank->row.local_rank = dt_message_int(message, "local_rank", 0);
    rank->row.device = dt_arena_strdup(&replay->arena, dt_message_string(message, "device"));
    boot_id = dt_arena_strdup(&replay->arena, dt_message_string(message, "boot_id"));
    replay->collector->nodes[node].row.boot_id = boot_id;
}

static bool is_over(void *context)
{
    return false;
}

/* If nodes do not share the checkpoint folder, only fetched checkpoints get a row. Returns true
 * if the event gets none. */
static bool on_checkpoint(void *context, const dt_message *message)
{
    replaying *replay = context;
    const char *path = dt_arena_printf(&replay->arena, "%s/%s", replay->checkpoints,
                                       dt_message_string(message, "directory"));

    return !dt_message_is_program_checkpoint(message) && replay->request->node_count > 1 &&
           !dt_file_exists(path);
}

static void on_acknowledge(void *context, int64_t node, int64_t sequence) {}
static void on_released(void *context, int64_t node) {}
static void on_stored(void *context) {}
static void on_pause(void *context, bool pause) {}
static void on_failed(void *context, dt_status st, const dt_error *err) {}

/* --- the attempt */

static dt_status open_all(replaying *replay, const dt_replay *request, bool compare, dt_error *err)
{
    static const dt_collector_calls calls = {.is_over = is_over,
                                             .event = on_event,
                                             .checkpoint = on_checkpoint,
                                             .acknowledge = on_acknowledge,
                                             .released = on_released,
                                             .stored = on_stored,
                                             .pause = on_pause,
                                             .failed = on_failed};
    dt_collector_setup setup = {.rows = {.store = request->store,
                                         .run = request->run,
                                         .folder = request->folder,
                                         .attempt = request->attempt,
                                         .mode = compare ? DT_RUN_ROWS_COMPARE : DT_RUN_ROWS_REPLAY,
                                         .mend = request->mend,
                                         .missing = &replay->missing},
                                .clock = &replay->clock,
                                .node_count = request->node_count};
    dt_status st = DT_OK;

    *replay = (replaying){.request = request, .compare = compare, .whole = true};
    dt_arena_init(&replay->arena, 0);
    replay->checkpoints = dt_arena_printf(&replay->arena, "%s/checkpoints", request->folder);
    DT_TRY(find_ranks(replay, err));
    setup.checkpoints = replay->checkpoints;
    setup.world_size = replay->world_size;
    if (replay->plan.world_size > 0 && dt_task_has_lines(replay->plan.recipe.task))
        setup.task = &replay->plan.task;
    DT_TRY(dt_collector_open(&replay->collector, &setup, &calls, replay, err));
    for (int64_t i = 0; i < request->node_count; i++)
        dt_collector_set_node(
            replay->collector, i,
            &(dt_node){.node = i, .name = request->nodes[i].name, .boot_id = "", .state = ""});
    for (int64_t i = 0; i < replay->world_size; i++)
        dt_collector_set_rank(
            replay->collector,
            &(dt_rank){
                .rank = i, .device = "", .state = "waiting", .exit_code = -1, .exit_signal = -1});
out:
    return st;
}

static void close_all(replaying *replay)
{
    dt_collector_close(replay->collector);
    dt_arena_release(&replay->arena);
}

static dt_status read_all(replaying *replay, int64_t only_node, dt_error *err)
{
    dt_status st = DT_OK;
    bool there;

    for (int64_t i = 0; i < replay->request->node_count; i++) {
        const dt_node *node = &replay->request->nodes[i];

        if (only_node >= 0 && i != only_node)
            continue;
        DT_TRY(read_lines(&there, replay, i, replay->world_size, take_event, err));
        replay->whole = replay->whole && (there || node->acknowledged == 0) &&
                        node->acknowledged >= 0 &&
                        replay->collector->nodes[i].row.acknowledged >= node->acknowledged;
    }
out:
    return st;
}

/* Writes missing rank rows, and the acknowledged number of each node. */
static dt_status write_ranks_and_nodes(replaying *replay, dt_error *err)
{
    const dt_replay *request = replay->request;
    dt_rank *ranks;
    dt_node *nodes;
    int64_t rank_count, node_count;
    dt_status st;

    DT_TRY(dt_store_rank_list(request->store, &ranks, &rank_count, request->run, request->attempt,
                              &replay->arena, err));
    for (int64_t i = 0; i < replay->world_size; i++) {
        const dt_collected_rank *rank = &replay->collector->ranks[i];
        bool known = false;

        for (int64_t j = 0; j < rank_count; j++)
            known = known || ranks[j].rank == i;
        if (rank->changed && !known)
            DT_TRY(
                dt_store_rank_set(request->store, request->run, request->attempt, &rank->row, err));
    }
    DT_TRY(dt_store_node_list(request->store, &nodes, &node_count, request->run, request->attempt,
                              &replay->arena, err));
    for (int64_t i = 0; i < node_count; i++) {
        const dt_collected_node *read;

        if (nodes[i].node >= request->node_count)
            continue;
        read = &replay->collector->nodes[nodes[i].node];
        if (read->row.acknowledged <= nodes[i].acknowledged)
            continue;
        nodes[i].acknowledged = read->row.acknowledged;
        if (nodes[i].boot_id == NULL || nodes[i].boot_id[0] == '\0')
            nodes[i].boot_id = read->row.boot_id;
        DT_TRY(dt_store_node_set(request->store, request->run, request->attempt, &nodes[i], err));
    }
out:
    return st;
}

dt_status dt_replay_write(bool *whole, const dt_replay *request, dt_error *err)
{
    replaying replay;
    dt_status st;

    *whole = true;
    if (request->node_count == 0) /* nothing was started */
        return DT_OK;
    DT_TRY(open_all(&replay, request, false, err));
    DT_TRY(read_all(&replay, -1, err));
    DT_TRY(write_ranks_and_nodes(&replay, err));
    *whole = replay.whole;
out:
    close_all(&replay);
    return st;
}

dt_status dt_replay_compare(int64_t *missing, const dt_replay *request, int64_t only_node,
                            dt_error *err)
{
    replaying replay;
    dt_status st;

    *missing = 0;
    if (request->node_count == 0)
        return DT_OK;
    DT_TRY(open_all(&replay, request, true, err));
    DT_TRY(read_all(&replay, only_node, err));
    *missing = replay.missing;
out:
    close_all(&replay);
    return st;
}
