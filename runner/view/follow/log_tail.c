#include "runner/view/follow/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/supervisor/supervisor.h"

/* Bytes of a file that are read to find its last lines. */
enum { TAIL_BYTES_BASE = 64 << 10, TAIL_BYTES_PER_LINE = 1024 };

#define TIME_BYTES strlen("2026-11-21T09:50:00.123Z")

typedef struct line_list {
    dt_log_line *items;
    int64_t count, capacity;
} line_list;

/* --- the readers, one for each rank */

static dt_log_reader *find_reader(dt_log_tail *tail, int64_t rank)
{
    for (int64_t i = 0; i < tail->count; i++)
        if (tail->readers[i].rank == rank)
            return &tail->readers[i];
    return NULL;
}

static dt_status add_reader(dt_log_reader **out, dt_log_tail *tail, const dt_run *run, int64_t rank,
                            dt_error *err)
{
    const char *below = dt_arena_printf(tail->arena, "logs/rank-%lld.log", (long long)rank);
    dt_status st = DT_OK;

    tail->readers = dt_arena_array_room(tail->arena, tail->readers, tail->count + 1,
                                        &tail->capacity, sizeof(tail->readers[0]));
    *out = &tail->readers[tail->count];
    **out = (dt_log_reader){.rank = rank, .node = ""};
    DT_TRY(dt_run_path(&(*out)->path, run->id, below, tail->arena, err));
    tail->count++;
out:
    return st;
}

static void name_node(dt_log_tail *tail, dt_log_reader *reader, const dt_node *nodes, int64_t count,
                      int64_t node)
{
    for (int64_t i = 0; i < count; i++)
        if (nodes[i].node == node && strcmp(nodes[i].name, reader->node) != 0) {
            reader->node = dt_arena_printf(tail->arena, "%s", nodes[i].name);
        }
}

/* Adds the ranks of new attempts; attempts before the newest no longer change. */
static dt_status look(dt_log_tail *tail, dt_store *store, const dt_run *run, dt_arena *arena,
                      dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t attempt = tail->attempt; attempt <= run->attempt; attempt++) {
        int64_t ranks_count, nodes_count;
        dt_rank *ranks;
        dt_node *nodes;

        DT_TRY(dt_store_rank_list(store, &ranks, &ranks_count, run->id, attempt, arena, err));
        DT_TRY(dt_store_node_list(store, &nodes, &nodes_count, run->id, attempt, arena, err));
        tail->several_nodes = tail->several_nodes || nodes_count > 1;
        for (int64_t i = 0; i < ranks_count; i++) {
            dt_log_reader *reader = find_reader(tail, ranks[i].rank);

            if (tail->rank >= 0 && ranks[i].rank != tail->rank)
                continue;
            if (reader == NULL)
                DT_TRY(add_reader(&reader, tail, run, ranks[i].rank, err));
            if (ranks[i].log_bytes > reader->limit)
                reader->limit = ranks[i].log_bytes;
            name_node(tail, reader, nodes, nodes_count, ranks[i].node);
        }
        tail->attempt = attempt;
    }
out:
    return st;
}

dt_status dt_log_tail_init(dt_log_tail *out, dt_store *store, const dt_run *run, int64_t rank,
                           dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t ranks_count;
    dt_rank *ranks;

    *out = (dt_log_tail){.rank = rank, .attempt = 1, .arena = arena};
    DT_TRY(look(out, store, run, arena, err));
    DT_TRY(dt_store_rank_list(store, &ranks, &ranks_count, run->id, run->attempt, arena, err));
    if (rank >= 0 && out->count == 0)
        DT_THROW(err, DT_ERR_USAGE, "run '%s' has no rank %lld (it has %lld)", run->id,
                 (long long)rank, (long long)ranks_count);
out:
    return st;
}

/* --- the lines */

static void add_line(line_list *list, const dt_log_reader *reader, const char *text,
                     dt_arena *arena)
{
    list->items = dt_arena_array_room(arena, list->items, list->count + 1, &list->capacity,
                                      sizeof(list->items[0]));
    list->items[list->count++] = (dt_log_line){reader->rank, reader->node, text, false};
}

/* Splits `text` of `length` bytes in place into lines that are not later than `until` (NULL: all). *used: the
 * bytes of these lines, without an incomplete last line. */
static void cut_lines(line_list *list, size_t *used, const dt_log_reader *reader, char *text,
                      size_t length, const char *until, dt_arena *arena)
{
    char *line = text, *end;

    *used = 0;
    while ((end = memchr(line, '\n', length - (size_t)(line - text))) != NULL) {
        if (until != NULL && (size_t)(end - line) >= TIME_BYTES &&
            memcmp(line, until, TIME_BYTES) > 0)
            break;
        *end = '\0';
        add_line(list, reader, line, arena);
        line = end + 1;
        *used = (size_t)(line - text);
    }
}

/* Reads bytes from..to of the file, or fewer; *got is 0 if the file does not exist. */
static dt_status read_part(char **text, size_t *got, const dt_log_reader *reader, int64_t from,
                           int64_t to, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    ssize_t count;
    int fd;

    *got = 0;
    fd = open(reader->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT
                   ? DT_OK
                   : DT_FAIL(err, DT_ERR_IO, "cannot read '%s': %s", reader->path, strerror(errno));
    *text = dt_arena_alloc(arena, (size_t)(to - from) + 1);
    count = pread(fd, *text, (size_t)(to - from), from);
    if (count < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", reader->path, strerror(errno));
    *got = (size_t)count;
out:
    close(fd);
    return st;
}

/* Returns the start of the data after the hole that run_rows.c punched; 0 if there is none. */
static int64_t find_start(const dt_log_reader *reader)
{
    int fd = open(reader->path, O_RDONLY | O_CLOEXEC);
    off_t data = fd >= 0 ? lseek(fd, 0, SEEK_DATA) : 0;

    if (fd >= 0)
        close(fd);
    return data > 0 ? (int64_t)data : 0;
}

static dt_status read_new(line_list *list, dt_log_reader *reader, const char *until, int64_t most,
                          dt_arena *arena, dt_error *err)
{
    int64_t from = reader->offset, window = TAIL_BYTES_BASE + most * TAIL_BYTES_PER_LINE;
    size_t used, got, skipped = 0;
    dt_status st = DT_OK;
    char *text, *first_end;

    if (reader->limit <= from)
        return DT_OK;
    if (from == 0)
        from = reader->dropped = find_start(reader);
    if (reader->offset == 0 && most > 0 && reader->limit - from > window)
        from = reader->limit - window;
    if (reader->limit <= from)
        return DT_OK;
    DT_TRY(read_part(&text, &got, reader, from, reader->limit, arena, err));
    if (from > reader->offset && got > 0) { /* the window starts within a line */
        first_end = memchr(text, '\n', got);
        skipped = first_end != NULL ? (size_t)(first_end - text) + 1 : got;
    }
    if (got == 0)
        return DT_OK;
    cut_lines(list, &used, reader, text + skipped, got - skipped, until, arena);
    reader->offset = from + (int64_t)(skipped + used);
out:
    return st;
}

/* Finds the time of the last line that has waited long enough; *until is NULL if there is none. */
static dt_status find_until(const char **until, const dt_log_tail *tail, dt_arena *arena,
                            dt_error *err)
{
    dt_status st = DT_OK;

    *until = NULL;
    for (int64_t i = 0; i < tail->count; i++) {
        const dt_log_reader *reader = &tail->readers[i];
        char *text, *last;
        size_t got;

        if (reader->known[0] <= reader->offset)
            continue;
        DT_TRY(read_part(&text, &got, reader, reader->offset, reader->known[0], arena, err));
        if (got == 0)
            continue;
        last = got > 1 ? memrchr(text, '\n', got - 1) : NULL; /* the limit is after a line break */
        last = last != NULL ? last + 1 : text;
        if (got - (size_t)(last - text) >= TIME_BYTES &&
            (*until == NULL || memcmp(last, *until, TIME_BYTES) > 0))
            *until = last;
    }
out:
    return st;
}

/* Orders lines by their ISO time, then by rank and by address, which keeps the order within a rank: qsort is
 * not stable. */
static int by_time(const void *a, const void *b)
{
    const dt_log_line *left = a, *right = b;
    int order = strncmp(left->text, right->text, TIME_BYTES);

    if (order != 0)
        return order;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return left->text < right->text ? -1 : left->text > right->text;
}

dt_status dt_log_tail_read(dt_log_tail *tail, dt_log_line **lines, int64_t *count,
                           dt_log_amount amount, int64_t most, dt_store *store, const dt_run *run,
                           dt_arena *arena, dt_error *err)
{
    const char *until = NULL;
    line_list list = {0};
    dt_status st = DT_OK;

    DT_TRY(look(tail, store, run, arena, err));
    if (amount == DT_LOG_LIVE)
        DT_TRY(find_until(&until, tail, arena, err));
    for (int64_t i = 0; i < tail->count; i++) {
        dt_log_reader *reader = &tail->readers[i];

        if (amount != DT_LOG_LIVE || until != NULL)
            DT_TRY(read_new(&list, reader, until, most, arena, err));
        memmove(&reader->known[0], &reader->known[1],
                (DT_LOG_TAIL_LOOKS - 1) * sizeof(reader->known[0]));
        reader->known[DT_LOG_TAIL_LOOKS - 1] = reader->limit;
    }
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

void dt_log_lines_join(dt_log_line **lines, int64_t *count, const dt_step_lines *steps,
                       int64_t most, dt_arena *arena)
{
    int64_t total = *count + steps->count;
    dt_log_line *all = dt_arena_alloc_array(arena, (size_t)total + 1, sizeof(all[0]));
    char when[DT_CLOCK_ISO_SIZE];

    for (int64_t i = 0; i < steps->count; i++) {
        all[i] = (dt_log_line){.rank = -1, .node = "", .incident = steps->items[i].incident};
        all[i].text = dt_arena_printf(arena, "%s %s", dt_clock_iso(when, steps->items[i].time_ms),
                                      steps->items[i].text);
    }
    for (int64_t i = 0; i < *count; i++)
        all[steps->count + i] = (*lines)[i];
    if (total > 1)
        qsort(all, (size_t)total, sizeof(all[0]), by_time);
    *lines = most > 0 && total > most ? all + (total - most) : all;
    *count = most > 0 && total > most ? most : total;
}
