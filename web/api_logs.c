/* api_logs: serves the tail of one rank's log. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "web/web_int.h"

/* --- the last lines of a file */

#define BLOCK_BYTES 16384

static dt_status read_at(char *out, int fd, int64_t from, size_t length, size_t *got, dt_error *err)
{
    for (*got = 0; *got < length;) {
        ssize_t n = pread(fd, out + *got, length - *got, (off_t)(from + (int64_t)*got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return DT_FAIL(err, DT_ERR_IO, "cannot read the log: %s", strerror(errno));
        if (n == 0)
            break; /* the file was truncated meanwhile */
        *got += (size_t)n;
    }
    return DT_OK;
}

/* Finds the part of [from, size) that holds the last `lines` lines. */
static dt_status find(dt_web_log_tail *tail, int64_t from, int64_t size, int64_t lines,
                      dt_error *err)
{
    int64_t start = -1; /* the earliest start of a line found so far */
    char block[BLOCK_BYTES];
    dt_status st = DT_OK;

    tail->at = tail->end = 0;
    for (int64_t end = size; end > from && lines >= 0;) {
        int64_t begin = end - from > BLOCK_BYTES ? end - BLOCK_BYTES : from;
        size_t got;

        DT_TRY(read_at(block, tail->fd, begin, (size_t)(end - begin), &got, err));
        for (size_t i = got; i > 0 && lines >= 0; i--) {
            if (block[i - 1] != '\n')
                continue;
            start = begin + (int64_t)i;
            if (tail->end == 0)
                tail->end = start;
            lines--;
        }
        end = begin;
    }
    if (tail->end > 0)
        /* The first line may be incomplete if the search did not reach the start of the file. */
        tail->at = lines >= 0 && from == 0 ? 0 : start;
out:
    return st;
}

dt_status dt_web_log_tail_open(dt_web_log_tail *out, const char *path, int64_t lines,
                               int64_t valid_bytes, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    int64_t size;

    *out = (dt_web_log_tail){.fd = -1};
    /* Accepts only regular files: does not follow links, and does not block on a pipe. */
    out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (out->fd < 0 && errno == ENOENT)
        return DT_OK;
    if (out->fd < 0 || fstat(out->fd, &info) != 0 || !S_ISREG(info.st_mode))
        DT_THROW(err, DT_ERR_IO, "cannot read the log: %s",
                 out->fd < 0 ? strerror(errno) : "it is not a file");
    size = info.st_size;
    if (valid_bytes > 0 && valid_bytes < size)
        size = valid_bytes;
    DT_TRY(find(out, size > DT_LOG_TAIL_BYTES ? size - DT_LOG_TAIL_BYTES : 0, size, lines, err));
out:
    if (st != DT_OK)
        dt_web_log_tail_close(out);
    return st;
}

dt_status dt_web_log_tail_next(dt_web_log_tail *tail, dt_strbuf *out, size_t bytes, bool *more,
                               dt_error *err)
{
    size_t before = out->length;
    char block[BLOCK_BYTES];
    dt_status st = DT_OK;

    *more = false;
    while (tail->at < tail->end) {
        size_t left = (size_t)(tail->end - tail->at), got;
        const char *feed;

        DT_TRY(
            read_at(block, tail->fd, tail->at, left < BLOCK_BYTES ? left : BLOCK_BYTES, &got, err));
        if (got == 0)
            goto out; /* the file was truncated: the lines read so far are returned */
        feed = memrchr(block, '\n', got);
        if (feed != NULL)
            got = (size_t)(feed - block) + 1;
        dt_strbuf_add(out, block, got);
        tail->at += (int64_t)got;
        if (feed != NULL && out->length - before >= bytes)
            break;
    }
    *more = tail->at < tail->end;
out:
    return st;
}

void dt_web_log_tail_close(dt_web_log_tail *tail)
{
    if (tail->fd >= 0)
        close(tail->fd);
    tail->fd = -1;
}

#define LINES_DEFAULT 200
#define LINES_MOST    5000
#define RANKS_MOST    65536

typedef struct tail {
    dt_web_log_tail lines;
    dt_strbuf text; /* of the current read */
    json_t *head;   /* {"run", "rank"} */
    bool begun, any;
} tail;

static void add_line(tail *t, dt_strbuf *out, const char *at, size_t length)
{
    json_t *line = dt_web_log_line_json(at, length);

    dt_strbuf_add_str(out, t->any ? "," : "");
    dt_json_write(out, line);
    json_decref(line);
    t->any = true;
}

static dt_status tail_next(void *state, dt_store *store, dt_strbuf *out, bool *more, dt_error *err)
{
    tail *t = state;
    const char *at, *end, *feed;
    dt_status st;

    if (!t->begun) {
        dt_json_write(out, t->head);
        out->data[--out->length] = '\0'; /* drops the closing brace: more fields follow */
        dt_strbuf_add_str(out, ",\"lines\":[");
        t->begun = true;
    }
    dt_strbuf_reset(&t->text);
    st = dt_web_log_tail_next(&t->lines, &t->text, DT_WEB_PART_BYTES / 2, more, err);
    if (st != DT_OK)
        return st;
    end = t->text.data + t->text.length;
    for (at = t->text.data; at < end; at = feed + 1) {
        feed = memchr(at, '\n', (size_t)(end - at));
        if (feed == NULL)
            feed = end; /* the log was truncated meanwhile */
        add_line(t, out, at, (size_t)(feed - at));
    }
    if (!*more)
        dt_strbuf_add_fmt(out, "],\"api\":%d}\n", DT_WEB_API_VERSION);
    return DT_OK;
}

static void tail_free(void *state)
{
    tail *t = state;

    dt_web_log_tail_close(&t->lines);
    dt_strbuf_release(&t->text);
    json_decref(t->head);
    free(t);
}

static dt_status rank_find(const dt_rank **out, dt_web_request *request, const dt_run *run,
                           int64_t wanted, dt_error *err)
{
    dt_rank *ranks;
    int64_t count;
    dt_status st;

    st = dt_store_rank_list(request->store, &ranks, &count, run->id, run->attempt, request->arena,
                            err);
    if (st != DT_OK)
        return st;
    for (int64_t i = 0; i < count; i++) {
        if (ranks[i].rank == wanted) {
            *out = &ranks[i];
            return DT_OK;
        }
    }
    return DT_FAIL(err, DT_ERR_NOT_FOUND, "run '%s' has no rank %lld", run->id, (long long)wanted);
}

dt_status dt_web_logs(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    tail *t = dt_calloc(1, sizeof(*t));
    const dt_rank *rank = NULL;
    int64_t wanted, lines;
    dt_status st = DT_OK;
    const char *path;
    dt_run run;

    t->lines.fd = -1;
    dt_strbuf_init(&t->text);
    dt_web_reply_stream(reply, tail_next, tail_free, t);
    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_web_argument_int(&wanted, request, "rank", 0, 0, RANKS_MOST, err));
    DT_TRY(dt_web_argument_int(&lines, request, "lines", LINES_DEFAULT, 1, LINES_MOST, err));
    DT_TRY(rank_find(&rank, request, &run, wanted, err));
    path = dt_arena_printf(request->arena, "%s/runs/%s/logs/rank-%lld.log", request->folder, run.id,
                           (long long)rank->rank);
    DT_TRY(dt_web_log_tail_open(&t->lines, path, lines, rank->log_bytes, err));
    t->head = json_pack("{so sI sI}", "run", dt_web_string_json(run.id), "rank",
                        (json_int_t)rank->rank, "end_bytes", (json_int_t)t->lines.end);
out:
    return st;
}
