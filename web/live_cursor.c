#include "web/live_cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"

#define SERIES_MOST 4096

uint64_t dt_web_cursor_store(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? (uint64_t)info.st_ino : 0;
}

/* --- writing: groups curves by their step, since most curves are at the same step */

static int by_step(const void *a, const void *b)
{
    const dt_since_mark *left = a, *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    return left->series < right->series ? -1 : left->series > right->series;
}

static void add_group(dt_strbuf *out, const dt_since_mark *marks, int64_t count)
{
    dt_strbuf_add_fmt(out, ".%lld:", (long long)marks[0].step);
    for (int64_t i = 0, last; i < count; i = last + 1) {
        for (last = i; last + 1 < count && marks[last + 1].series == marks[last].series + 1;)
            last++;
        dt_strbuf_add_fmt(out, "%s%lld", i > 0 ? "+" : "", (long long)marks[i].series);
        if (last > i)
            dt_strbuf_add_fmt(out, "-%lld", (long long)marks[last].series);
    }
}

void dt_web_cursor_add(dt_strbuf *out, const dt_web_cursor *cursor)
{
    int64_t count = cursor->since.count;
    dt_since_mark *marks = dt_calloc((size_t)count + 1, sizeof(*marks));

    dt_strbuf_add_fmt(out, "%llx.%lld.%lld.%lld", (unsigned long long)cursor->store,
                      (long long)cursor->since.attempt, (long long)cursor->since.event,
                      (long long)cursor->log_bytes);
    if (count > 0)
        memcpy(marks, cursor->since.marks, (size_t)count * sizeof(*marks));
    qsort(marks, (size_t)count, sizeof(*marks), by_step);
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && marks[end].step == marks[i].step;)
            end++;
        add_group(out, &marks[i], end - i);
    }
    free(marks);
}

/* --- reading */

static bool read_number(int64_t *out, const char **at, int64_t low)
{
    char *end;

    if (**at != '-' && (**at < '0' || **at > '9'))
        return false;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    if (end == *at || errno != 0 || *out < low)
        return false;
    *at = end;
    return true;
}

static bool skip(const char **at, char c)
{
    if (**at != c)
        return false;
    ++*at;
    return true;
}

static bool add_mark(dt_since *since, int64_t series, int64_t step)
{
    if (since->count == SERIES_MOST || series > INT32_MAX)
        return false;
    since->marks[since->count++] = (dt_since_mark){series, step};
    return true;
}

/* Parses "STEP:SERIES+SERIES-SERIES". */
static bool read_group(dt_since *since, const char **at)
{
    int64_t step, first, last;

    if (!read_number(&step, at, INT64_MIN) || !skip(at, ':'))
        return false;
    do {
        if (!read_number(&first, at, 0))
            return false;
        last = first;
        if (skip(at, '-') && !read_number(&last, at, first))
            return false;
        for (; first <= last; first++)
            if (!add_mark(since, first, step))
                return false;
    } while (skip(at, '+'));
    return true;
}

static int by_series(const void *a, const void *b)
{
    const dt_since_mark *left = a, *right = b;

    return left->series < right->series ? -1 : left->series > right->series;
}

bool dt_web_cursor_read(dt_web_cursor *out, const char *text, dt_arena *arena)
{
    char *end;

    memset(out, 0, sizeof(*out));
    if (strlen(text) > DT_WEB_CURSOR_BYTES_MOST)
        return false;
    errno = 0;
    out->store = strtoull(text, &end, 16);
    text = end;
    if (errno != 0 || !skip(&text, '.') || !read_number(&out->since.attempt, &text, 1) ||
        !skip(&text, '.') || !read_number(&out->since.event, &text, 0) || !skip(&text, '.') ||
        !read_number(&out->log_bytes, &text, 0))
        return false;
    out->since.marks = dt_arena_alloc_array(arena, SERIES_MOST, sizeof(*out->since.marks));
    while (skip(&text, '.'))
        if (!read_group(&out->since, &text))
            return false;
    if (*text != '\0')
        return false;
    qsort(out->since.marks, (size_t)out->since.count, sizeof(*out->since.marks), by_series);
    return true;
}
