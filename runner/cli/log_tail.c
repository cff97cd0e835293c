#define _GNU_SOURCE
#include "runner/cli/log_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/supervisor/supervisor.h"

#include "base/banned.h"

/* So much of a file is read for its last lines. */
enum { TAIL_BYTES_BASE = 64 << 10, TAIL_BYTES_PER_LINE = 1024 };

typedef struct line_list {
    dt_log_line *items;
    int64_t count, capacity;
} line_list;

dt_status dt_log_tail_init(dt_log_tail *out, dt_store *store, const dt_run *run, int64_t rank,
                           dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t ranks_count;
    dt_rank *ranks;

    *out = (dt_log_tail){0};
    DT_TRY(dt_store_rank_list(store, &ranks, &ranks_count, run->id, run->attempt, arena, err));
    out->readers = dt_arena_alloc_array(arena, (size_t)ranks_count + 1, sizeof(out->readers[0]));
    if (out->readers == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    for (int64_t i = 0; i < ranks_count; i++) {
        dt_log_reader *reader = &out->readers[out->count];
        const char *below;
        if (rank >= 0 && ranks[i].rank != rank)
            continue;
        below = dt_arena_printf(arena, "logs/rank-%lld.log", (long long)ranks[i].rank);
        if (below == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory");
        *reader = (dt_log_reader){ranks[i].rank, 0, NULL};
        DT_TRY(dt_run_path(&reader->path, run->id, below, arena, err));
        out->count++;
    }
    if (rank >= 0 && out->count == 0)
        DT_THROW(err, DT_ERR_USAGE, "run '%s' has no rank %lld (it has %lld)", run->id,
                 (long long)rank, (long long)ranks_count);
out:
    return st;
}

static dt_status add_line(line_list *list, int64_t rank, const char *text, dt_arena *arena,
                          dt_error *err)
{
    if (list->count == list->capacity) {
        int64_t wider = list->capacity == 0 ? 64 : list->capacity * 2;
        dt_log_line *room = dt_arena_alloc_array(arena, (size_t)wider, sizeof(room[0]));
        if (room == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
        if (list->count > 0)
            memcpy(room, list->items, (size_t)list->count * sizeof(room[0]));
        list->items = room;
        list->capacity = wider;
    }
    list->items[list->count++] = (dt_log_line){rank, text};
    return DT_OK;
}

/* Whole lines of `length` bytes at `text`, which is cut up; *used: without the unended last. */
static dt_status cut_lines(line_list *list, size_t *used, int64_t rank, char *text, size_t length,
                           dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    char *line = text, *end;

    *used = 0;
    while ((end = memchr(line, '\n', length - (size_t)(line - text))) != NULL) {
        *end = '\0';
        DT_TRY(add_line(list, rank, line, arena, err));
        line = end + 1;
        *used = (size_t)(line - text);
    }
out:
    return st;
}

static dt_status read_new(line_list *list, dt_log_reader *reader, int64_t limit, int64_t most,
                          dt_arena *arena, dt_error *err)
{
    int64_t from = reader->offset;
    int64_t window = TAIL_BYTES_BASE + most * TAIL_BYTES_PER_LINE;
    dt_status st = DT_OK;
    size_t used, skipped = 0;
    ssize_t got;
    char *text, *first_end;
    int fd;

    if (limit <= from)
        return DT_OK;
    if (from == 0 && most > 0 && limit > window)
        from = limit - window;
    fd = open(reader->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT
                   ? DT_OK
                   : DT_FAIL(err, DT_ERR_IO, "cannot read '%s': %s", reader->path, strerror(errno));
    text = dt_arena_alloc(arena, (size_t)(limit - from) + 1);
    if (text == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %lld bytes of log", (long long)(limit - from));
    got = pread(fd, text, (size_t)(limit - from), from);
    if (got < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", reader->path, strerror(errno));
    if (from > reader->offset) { /* the window begins within a line */
        first_end = memchr(text, '\n', (size_t)got);
        skipped = first_end != NULL ? (size_t)(first_end - text) + 1 : (size_t)got;
    }
    DT_TRY(cut_lines(list, &used, reader->rank, text + skipped, (size_t)got - skipped, arena, err));
    reader->offset = from + (int64_t)(skipped + used);
out:
    close(fd);
    return st;
}

/* By time, which stands first in ISO form; ranks keep their own order (qsort alone is not stable,
 * so equal times are told apart by rank, then by where the text lies). */
static int by_time(const void *a, const void *b)
{
    const dt_log_line *left = a, *right = b;
    int order = strncmp(left->text, right->text, strlen("2026-11-21T09:50:00.123Z"));

    if (order != 0)
        return order;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return left->text < right->text ? -1 : left->text > right->text;
}

dt_status dt_log_tail_read(dt_log_tail *tail, dt_log_line **lines, int64_t *count, int64_t most,
                           dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err)
{
    line_list list = {0};
    dt_status st = DT_OK;
    int64_t ranks_count;
    dt_rank *ranks;

    DT_TRY(dt_store_rank_list(store, &ranks, &ranks_count, run->id, run->attempt, arena, err));
    for (int64_t i = 0; i < tail->count; i++)
        for (int64_t r = 0; r < ranks_count; r++)
            if (ranks[r].rank == tail->readers[i].rank)
                DT_TRY(read_new(&list, &tail->readers[i], ranks[r].log_bytes, most, arena, err));
    if (list.count > 1)
        qsort(list.items, (size_t)list.count, sizeof(list.items[0]), by_time);
    *lines = list.items;
    *count = list.count;
    if (most > 0 && *count > most) {
        *lines += *count - most;
        *count = most;
    }
out:
    return st;
}
