/* record_file: reads the record of a rank. */
#include "runner/verify/record_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runner/supervisor/folder/digest_file.h"

/* Cuts "STEP POSITION REST" at its spaces. */
static bool read_line(dt_record_line *out, char *text)
{
    char *end, *rest;

    out->step = strtoll(text, &end, 10);
    if (end == text || *end != ' ' || out->step < 0)
        return false;
    rest = strchr(end + 1, ' ');
    if (rest == NULL)
        return false;
    *rest = '\0';
    out->position = end + 1;
    out->text = rest + 1;
    return true;
}

static dt_status read_lines(dt_record_file *out, char *text, size_t length, dt_arena *arena,
                            dt_error *err)
{
    char *stop = text + length, *end;
    int64_t capacity = 0, number = 1;

    for (; (end = memchr(text, '\n', (size_t)(stop - text))) != NULL; text = end + 1, number++) {
        *end = '\0';
        if (strlen(text) != (size_t)(end - text))
            continue;
        out->lines =
            dt_arena_array_room(arena, out->lines, out->count + 1, &capacity, sizeof(*out->lines));
        if (!read_line(&out->lines[out->count], text))
            return DT_FAIL(err, DT_ERR_CORRUPT, "%s:%lld: not a line of a record", out->path,
                           (long long)number + 1);
        out->count++;
    }
    return DT_OK;
}

dt_status dt_record_file_open(dt_record_file *out, const char *path, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;
    char *copy, *end;

    memset(out, 0, sizeof(*out));
    out->path = path;
    dt_strbuf_init(&text);
    if (!dt_file_exists(path))
        DT_THROW(err, DT_ERR_NOT_FOUND, "not found: the record '%s'", path);
    DT_TRY(dt_file_read(&text, path, DT_RECORD_FILE_MOST, err));
    copy = dt_arena_alloc(arena, text.length + 1);
    memcpy(copy, text.data, text.length);
    copy[text.length] = '\0';
    end = memchr(copy, '\n', text.length);
    if (end == NULL)
        goto out;
    DT_TRY(dt_json_parse(&out->header, copy, (size_t)(end - copy), path, err));
    if (json_integer_value(json_object_get(out->header, "record")) != 1)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "%s: another dtrun made this record: use that one", path);
    DT_TRY(read_lines(out, end + 1, text.length - (size_t)(end + 1 - copy), arena, err));
out:
    dt_strbuf_release(&text);
    if (st != DT_OK)
        dt_record_file_release(out);
    return st;
}

dt_status dt_record_file_read(dt_record_file *out, const char *folder, int64_t attempt,
                              int64_t rank, dt_arena *arena, dt_error *err)
{
    return dt_record_file_open(out,
                               dt_arena_printf(arena, "%s/" DT_DIGEST_FOLDER "/" DT_DIGEST_NAME,
                                               folder, (long long)attempt, (long long)rank),
                               arena, err);
}

void dt_record_file_release(dt_record_file *file)
{
    json_decref(file->header);
    memset(file, 0, sizeof(*file));
}

/* The index of the first line that is not before the step: lines are in the order of steps. */
static int64_t lower_bound(const dt_record_file *file, int64_t step)
{
    int64_t low = 0, high = file->count;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (file->lines[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const dt_record_line *dt_record_file_find(const dt_record_file *file, const dt_record_line *like)
{
    for (int64_t i = lower_bound(file, like->step);
         i < file->count && file->lines[i].step == like->step; i++)
        if (strcmp(file->lines[i].position, like->position) == 0)
            return &file->lines[i];
    return NULL;
}

const dt_record_line *dt_record_file_step(const dt_record_file *file, int64_t step)
{
    int64_t at = lower_bound(file, step);

    return at < file->count && file->lines[at].step == step ? &file->lines[at] : NULL;
}
