#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/rows_int.h"

#define FIELD_SIZE 64 /* buffer size of a field; longer than any number */
#define BOM        "\xef\xbb\xbf"

/* Parser position in a .csv file. */
typedef struct place {
    const char *path, *at, *end;
    int64_t line;
} place;

/* --- one line */

/* Copy the field that starts at `at` to a string, without spaces around it; returns its end. A
 * field that is too long or contains a NUL byte is truncated, and does not count as a number. */
static const char *read_field(char out[FIELD_SIZE], const char *at, const char *end)
{
    const char *stop = at, *last;
    size_t length;

    while (stop < end && *stop != ',')
        stop++;
    for (last = stop; last > at && (last[-1] == ' ' || last[-1] == '\t'); last--)
        ;
    while (at < last && (*at == ' ' || *at == '\t'))
        at++;
    length = (size_t)(last - at) < FIELD_SIZE ? (size_t)(last - at) : FIELD_SIZE - 1;
    memcpy(out, at, length);
    out[length] = '\0';
    if (length < (size_t)(last - at))
        memset(out + length - 3, '.', 3);
    for (size_t i = 0; i < length; i++)
        if (out[i] == '\0')
            out[i] = '?';
    return stop;
}

static bool is_number(double *out, const char *field)
{
    char *end;

    *out = strtod(field, &end);
    return end != field && *end == '\0';
}

/* Stores NaN for text that is not a number; dt_rows_put reports both. */
static dt_status store(dt_rows *rows, const place *in, int64_t column, const char *field,
                       dt_error *err)
{
    double value;
    dt_status st;

    st = dt_rows_put(rows, column - 1, is_number(&value, field) ? value : NAN, field, err);
    if (st != DT_OK)
        dt_error_prefix(err, "'%s', line %lld, column %lld", in->path, (long long)in->line,
                        (long long)column);
    return st;
}

static dt_status read_row(dt_rows *rows, const place *in, const char *end, dt_error *err)
{
    int64_t columns = dt_rows_columns(rows), column = 0;
    const char *at = in->at;
    char field[FIELD_SIZE];
    dt_status st = DT_OK;

    for (;; at++) { /* skips a comma */
        at = read_field(field, at, end);
        if (++column <= columns)
            DT_TRY(store(rows, in, column, field, err));
        if (at == end)
            break;
    }
    st = dt_rows_check_columns(rows, column, err);
    if (st != DT_OK)
        dt_error_prefix(err, "'%s', line %lld", in->path, (long long)in->line);
    else
        rows->count++;
out:
    return st;
}

/* End of the line at `in`, without the line break. */
static const char *line_end(const place *in)
{
    const char *end = memchr(in->at, '\n', (size_t)(in->end - in->at));

    if (end == NULL)
        end = in->end;
    return end > in->at && end[-1] == '\r' ? end - 1 : end;
}

static bool is_header(const place *in, const char *end)
{
    char field[FIELD_SIZE];
    double value;

    read_field(field, in->at, end);
    return in->line == 1 && !is_number(&value, field);
}

dt_status dt_rows_read_csv(dt_rows *rows, const char *path, const dt_mapping *file, dt_error *err)
{
    place in = {.path = path, .at = (const char *)file->bytes, .line = 1};
    dt_status st = DT_OK;

    in.end = in.at + file->length;
    if (file->length >= strlen(BOM) && memcmp(in.at, BOM, strlen(BOM)) == 0)
        in.at += strlen(BOM); /* otherwise the first row would look like a header */
    for (; in.at < in.end; in.line++) {
        const char *end = line_end(&in), *next = memchr(in.at, '\n', (size_t)(in.end - in.at));

        if (end > in.at && !is_header(&in, end)) {
            DT_TRY(dt_rows_reserve(rows, 1, err));
            DT_TRY(read_row(rows, &in, end, err));
        }
        in.at = next != NULL ? next + 1 : in.end;
    }
out:
    return st;
}
