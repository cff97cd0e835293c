/* records: compares the records of two runs (engine/record/record.h), given as events of their ranks.
 *
 *   records RANKS A B     A.0, A.1 ... and B.0, B.1 ...: files of events, of which "record" counts
 *
 * Prints the first difference in words, or how many lines are equal. Exits with 0 if all are equal, 1 if there is a
 * difference, 2 if nothing can be compared.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runner/verify/record_file.h"

#define RANKS_MOST 8

static dt_status extract(const char *events, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text, out;

    dt_strbuf_init(&text);
    dt_strbuf_init(&out);
    DT_TRY(dt_file_read(&text, events, (size_t)1 << 30, err));
    for (char *line = text.data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        json_t *event;

        *end = '\0';
        if (strstr(line, "\"record\"") == NULL)
            continue;
        event = json_loads(line, 0, NULL);
        if (json_is_string(json_object_get(event, "text")))
            dt_strbuf_add_str(&out, json_string_value(json_object_get(event, "text")));
        json_decref(event);
    }
    DT_TRY(dt_file_write_atomic(path, out.data, out.length, 0600, err));
out:
    dt_strbuf_release(&text);
    dt_strbuf_release(&out);
    return st;
}

static dt_status open_all(dt_record_file *files, int ranks, const char *name, dt_arena *arena,
                          dt_error *err)
{
    dt_status st = DT_OK;

    for (int rank = 0; rank < ranks; rank++) {
        const char *path = dt_arena_printf(arena, "%s.%d.record", name, rank);

        DT_TRY(extract(dt_arena_printf(arena, "%s.%d", name, rank), path, err));
        DT_TRY(dt_record_file_open(&files[rank], path, arena, err));
    }
out:
    return st;
}

int main(int argc, char **argv)
{
    const dt_record_span all = {.after = 0, .until = INT64_MAX};
    dt_record_file a[RANKS_MOST] = {0}, b[RANKS_MOST] = {0};
    int ranks = argc == 4 ? argv[1][0] - (int)'0' : 0, code = 2;
    dt_error err = DT_ERROR_INIT;
    dt_records_compared result;
    const char *why;
    dt_arena arena;
    dt_status st = DT_OK;

    dt_arena_init(&arena, 0);
    if (ranks < 1 || ranks > RANKS_MOST)
        DT_THROW(&err, DT_ERR_USAGE, "three arguments: RANKS A B");
    DT_TRY(open_all(a, ranks, argv[2], &arena, &err));
    DT_TRY(open_all(b, ranks, argv[3], &arena, &err));
    for (int rank = 0; rank < ranks; rank++)
        if (!dt_record_headers_match(&why, a[rank].header, b[rank].header, &arena))
            DT_THROW(&err, DT_ERR_USAGE, "cannot be compared: %s", why);
    DT_TRY(dt_records_compare(&result, a, b, ranks, &all, &arena, &err));
    code = result.first.kind == DT_DIFFERENT_NOTHING ? 0 : 1;
    if (code == 0)
        printf("%lld of %lld lines are equal\n", (long long)result.equal,
               (long long)result.recorded);
    else
        printf("%s\n", dt_difference_text(&result.first, &arena));
out:
    if (st != DT_OK)
        fprintf(stderr, "records: %s\n", err.message);
    for (int rank = 0; rank < RANKS_MOST; rank++) {
        dt_record_file_release(&a[rank]);
        dt_record_file_release(&b[rank]);
    }
    dt_arena_release(&arena);
    return code;
}
