/* look_sample: detects the kind of one file by its first bytes (runner/init/look.h). */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/utf8.h"
#include "engine/data/mapping.h"
#include "engine/data/npy.h"
#include "runner/corpus/documents.h"
#include "runner/init/look.h"

#define SAMPLE_BYTES ((size_t)1 << 20)
#define WHOLE_BYTES  ((int64_t)64 << 20) /* of rows that are read to count the classes */

enum { CLASSES_MOST = 1000, LINES_LOOKED_AT = 100, COLUMNS_MOST = 65536 };

static bool ends_with(const char *path, const char *ending)
{
    size_t length = strlen(path), tail = strlen(ending);

    return length > tail && strcmp(path + length - tail, ending) == 0;
}

/* --- classes */

typedef struct classes {
    bool broken; /* one value is not a class */
    int64_t most;
} classes;

static void add_class(classes *of, double value)
{
    if (!(value >= 0) || value >= CLASSES_MOST || value != floor(value))
        of->broken = true;
    else if ((int64_t)value > of->most)
        of->most = (int64_t)value;
}

static int64_t class_count(const classes *of)
{
    return of->broken || of->most < 1 ? 0 : of->most + 1;
}

/* --- .npy */

static dt_status read_npy(dt_sample *out, const char *path, dt_error *err)
{
    dt_mapping file = {0};
    classes of = {0};
    dt_npy npy;
    dt_status st = DT_OK;

    DT_TRY(dt_mapping_open(&file, path, err));
    DT_TRY(dt_npy_read(&npy, path, file.bytes, file.length, err));
    if (npy.columns < 2)
        DT_THROW(err, DT_ERR_USAGE, "'%s' has %lld column; a row needs inputs and a target", path,
                 (long long)npy.columns);
    out->kind = DT_LOOK_ROWS;
    out->columns = npy.columns;
    for (int64_t row = 0; row < npy.rows && (row + 1) * npy.columns * npy.width_bytes < WHOLE_BYTES;
         row++)
        add_class(&of, dt_npy_number(&npy, file.bytes, row * npy.columns + npy.columns - 1));
    out->classes = class_count(&of);
out:
    dt_mapping_close(&file);
    return st;
}

/* --- .csv */

/* Counts comma-separated numbers; 0 if a cell is not a number. *last: the last number. */
static int64_t count_numbers(const char *line, size_t length, double *last)
{
    char text[64];
    int64_t count = 0;

    for (size_t at = 0; at <= length;) {
        size_t end = at;
        char *stop;

        while (end < length && line[end] != ',')
            end++;
        if (end - at >= sizeof(text) || count == COLUMNS_MOST)
            return 0;
        memcpy(text, line + at, end - at);
        text[end - at] = '\0';
        *last = strtod(text, &stop);
        while (isspace((unsigned char)*stop))
            stop++;
        if (stop == text || *stop != '\0')
            return 0;
        count++;
        at = end + 1;
    }
    return count;
}

/* Whether all lines, except a first line with titles, are numbers. */
static bool read_rows(dt_sample *out, const char *text, size_t length, bool cut)
{
    classes of = {0};
    int64_t line = 0, rows = 0;

    for (size_t at = 0; at < length; line++) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t bytes = end != NULL ? (size_t)(end - text) - at : length - at;
        double last = 0;
        int64_t count;

        if (end == NULL && cut)
            break;
        count = count_numbers(text + at, bytes, &last);
        at += bytes + 1;
        if (bytes == 0 || (line == 0 && count == 0))
            continue;
        if (count < 2 || (rows > 0 && count != out->columns))
            return false;
        out->columns = count;
        add_class(&of, last);
        rows++;
    }
    out->classes = class_count(&of);
    return rows > 0;
}

/* --- documents: the field called text, or the longest one */

typedef struct fields {
    const char *best;
    size_t bytes;
} fields;

static void add_field(fields *of, const char *name, size_t bytes, dt_arena *arena)
{
    static const char *const usual[] = {"text", "content", "body"};

    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        if (strcmp(name, usual[i]) == 0)
            bytes = SIZE_MAX - i;
    if (bytes <= of->bytes)
        return;
    of->best = dt_arena_strdup(arena, name);
    of->bytes = bytes;
}

static dt_status read_json_lines(dt_sample *out, const char *path, const char *text, size_t length,
                                 bool cut, dt_arena *arena, dt_error *err)
{
    fields of = {0};
    int64_t line = 1;

    for (size_t at = 0; at < length && line <= LINES_LOOKED_AT; line++) {
        const char *end = memchr(text + at, '\n', length - at), *key;
        size_t bytes = end != NULL ? (size_t)(end - text) - at : length - at;
        json_t *object, *value;

        if (end == NULL && cut && line > 1)
            break;
        object = json_loadb(text + at, bytes, JSON_ALLOW_NUL, NULL);
        if (!json_is_object(object) && strspn(text + at, " \t\r") < bytes) {
            json_decref(object);
            return DT_FAIL(err, DT_ERR_USAGE,
                           "'%s' line %lld is not a JSON object (expected one object a line)", path,
                           (long long)line);
        }
        json_object_foreach(object, key, value)
            if (json_is_string(value))
                add_field(&of, key, json_string_length(value), arena);
        json_decref(object);
        at += bytes + 1;
    }
    if (of.best == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' has no text: its objects have no string values",
                       path);
    out->kind = DT_LOOK_JSONL;
    out->field = of.best;
    return DT_OK;
}

static dt_status read_records(dt_sample *out, const char *path, const char *text, size_t length,
                              dt_arena *arena, dt_error *err)
{
    static const char *const usual[] = {"text", "content", "body"};

    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        if (dt_csv_column(text, length, usual[i]) >= 0) {
            out->kind = DT_LOOK_RECORDS;
            out->field = dt_arena_strdup(arena, usual[i]);
            return DT_OK;
        }
    return DT_FAIL(err, DT_ERR_USAGE,
                   "'%s' has neither rows of numbers nor a column 'text', 'content' or 'body'",
                   path);
}

/* --- text */

static dt_status check_text(const char *path, const char *text, size_t length, bool cut,
                            dt_error *err)
{
    for (size_t at = 0; at < length;) {
        uint32_t code = 0;
        size_t bytes = dt_utf8_decode(&code, (const unsigned char *)text + at, length - at);

        if (bytes == 0 && cut && length - at < DT_UTF8_MAX)
            break;
        if (bytes == 0 || code == 0)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "'%s' is not text: byte %lld is %s (token ids end in .bin, rows in .csv "
                           "or .npy)",
                           path, (long long)at, bytes == 0 ? "not UTF-8" : "zero");
        at += bytes;
    }
    return DT_OK;
}

/* --- */

static dt_status read_start(dt_strbuf *out, int64_t *file_bytes, const char *path, dt_error *err)
{
    size_t wanted = SAMPLE_BYTES;
    struct stat info;
    dt_status st = DT_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_USAGE, "cannot read '%s': %s", path, strerror(errno));
    *file_bytes = info.st_size;
    if (info.st_size == 0)
        DT_THROW(err, DT_ERR_USAGE, "'%s' is empty", path);
    if (ends_with(path, ".csv") && info.st_size <= WHOLE_BYTES)
        wanted = (size_t)info.st_size;
    while (out->length < wanted) {
        char piece[65536];
        size_t left = wanted - out->length;
        ssize_t got = read(fd, piece, left < sizeof(piece) ? left : sizeof(piece));

        if (got < 0)
            DT_THROW(err, DT_ERR_USAGE, "cannot read '%s': %s", path, strerror(errno));
        if (got == 0)
            break;
        dt_strbuf_add(out, piece, (size_t)got);
    }
out:
    if (fd >= 0)
        close(fd);
    return st;
}

static dt_status sample(dt_sample *out, const char *path, const dt_strbuf *start, dt_arena *arena,
                        dt_error *err)
{
    bool cut = (int64_t)start->length < out->bytes;
    dt_status st = DT_OK;

    if (dt_npy_has_magic((const unsigned char *)start->data, start->length))
        return read_npy(out, path, err);
    out->kind = DT_LOOK_IDS;
    if (ends_with(path, ".bin"))
        return DT_OK;
    DT_TRY(check_text(path, start->data, start->length, cut, err));
    if (dt_corpus_kind_of(path) == DT_CORPUS_JSONL)
        return read_json_lines(out, path, start->data, start->length, cut, arena, err);
    out->kind = DT_LOOK_ROWS;
    if (ends_with(path, ".csv"))
        return read_rows(out, start->data, start->length, cut)
                   ? DT_OK
                   : read_records(out, path, start->data, start->length, arena, err);
    out->kind = DT_LOOK_TEXT;
out:
    return st;
}

dt_status dt_sample_read(dt_sample *out, const char *path, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf start;

    *out = (dt_sample){0};
    dt_strbuf_init(&start);
    DT_TRY(read_start(&start, &out->bytes, path, err));
    st = sample(out, path, &start, arena, err);
out:
    dt_strbuf_release(&start);
    return st;
}
