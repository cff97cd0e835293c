/* csv: imports CSV with one line a point (columns name and value), with one line a step and one column
 * a metric, or with a single column "value".
 *
 * Columns are recognised by their titles, ignoring case: step, global_step, iteration; run or run_name; name, metric
 * or tag; value; time, wall time, timestamp (seconds since 1970, or ISO 8601, in UTC or with an offset), with '_' or a space between
 * words; attempt is ignored. All other columns are metrics, unless their first cell is not a number. An empty cell is
 * not a point. The output of `dtrun export --to csv` is imported unchanged, except for attempts.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "runner/import/import.h"

#define FILE_BYTES_MOST ((size_t)4 << 30)

enum { COLUMNS_MOST = 2048, NONE = -1 };

typedef enum role {
    ROLE_STEP,
    ROLE_RUN,
    ROLE_RUN_NAME,
    ROLE_NAME,
    ROLE_VALUE,
    ROLE_TIME,
    ROLE_ATTEMPT,
    ROLE_COUNT
} role;

typedef enum kind { UNDECIDED, METRIC, TEXT } kind;

typedef struct table {
    const dt_import_source *source;
    dt_imported *out;
    char *at, *end; /* the rest of the file */
    int64_t line;
    char *cells[COLUMNS_MOST];
    int cells_count, columns_count;
    int roles[ROLE_COUNT]; /* index of the column of each role, or NONE */
    kind kinds[COLUMNS_MOST];
    int32_t metrics[COLUMNS_MOST];
    int64_t file_ms;
    const char *last_run; /* name of the run of the previous line; `run` is its index */
    int32_t run;
} table;

/* --- cells */

/* Reads the cell at t->at and terminates it in place; *more: another cell follows on the line. */
static dt_status next_cell(table *t, char **cell, bool *more, dt_error *err)
{
    char *to = t->at;
    bool quoted = t->at < t->end && *t->at == '"';

    *cell = to;
    if (quoted) {
        for (t->at++;; *to++ = *t->at++) {
            if (t->at >= t->end)
                return DT_FAIL(err, DT_ERR_CORRUPT, "%s:%lld: unclosed quote", t->source->path,
                               (long long)t->line);
            if (*t->at == '"' && (t->at + 1 >= t->end || t->at[1] != '"'))
                break;
            t->at += *t->at == '"';
        }
        t->at++;
    } else {
        to += strcspn(t->at, ",\r\n");
        t->at = to;
    }
    *more = t->at < t->end && *t->at == ',';
    if (t->at < t->end && !*more && *t->at != '\r' && *t->at != '\n')
        return DT_FAIL(err, DT_ERR_CORRUPT, "%s:%lld: unexpected text after a quoted cell",
                       t->source->path, (long long)t->line);
    if (t->at < t->end && *t->at == '\r' && t->at + 1 < t->end && t->at[1] == '\n')
        t->at++;
    t->at += t->at < t->end;
    *to = '\0';
    return DT_OK;
}

/* Reads the cells of the next line; *more is false at the end of the file. */
static dt_status next_line(table *t, bool *more, dt_error *err)
{
    dt_status st = DT_OK;
    bool again = true;

    *more = t->at < t->end;
    t->line++;
    t->cells_count = 0;
    while (*more && again) {
        if (t->cells_count == COLUMNS_MOST)
            DT_THROW(err, DT_ERR_UNSUPPORTED, "%s:%lld: more than %d columns", t->source->path,
                     (long long)t->line, COLUMNS_MOST);
        DT_TRY(next_cell(t, &t->cells[t->cells_count++], &again, err));
    }
out:
    return st;
}

/* Returns the text without the apostrophe that prevents evaluation as a formula in spreadsheets. */
static const char *text_of(const char *cell)
{
    return cell[0] == '\'' && cell[1] != '\0' && strchr("=+-@\t\r", cell[1]) != NULL ? cell + 1
                                                                                     : cell;
}

/* --- the head */

static bool is_title(const char *cell, const char *title)
{
    size_t length = strlen(title);

    for (; cell[0] == '_' || cell[0] == ' ';)
        cell++;
    for (size_t i = 0; i < length; i++)
        if (tolower((unsigned char)(cell[i] == ' ' ? '_' : cell[i])) != title[i])
            return false;
    return cell[length] == '\0';
}

static role role_of(const char *cell)
{
    static const struct {
        const char *title;
        role role;
    } titles[] = {{"step", ROLE_STEP},      {"global_step", ROLE_STEP}, {"iteration", ROLE_STEP},
                  {"run", ROLE_RUN},        {"run_id", ROLE_RUN},       {"run_name", ROLE_RUN_NAME},
                  {"name", ROLE_NAME},      {"metric", ROLE_NAME},      {"tag", ROLE_NAME},
                  {"key", ROLE_NAME},       {"value", ROLE_VALUE},      {"time", ROLE_TIME},
                  {"wall_time", ROLE_TIME}, {"timestamp", ROLE_TIME},   {"attempt", ROLE_ATTEMPT}};

    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
        if (is_title(cell, titles[i].title))
            return titles[i].role;
    return ROLE_COUNT;
}

/* Returns the name of the file without folder and extension. */
static const char *stem_of(const char *path, dt_arena *arena)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');

    return dt_arena_strndup(arena, name,
                            dot != NULL && dot > name ? (size_t)(dot - name) : strlen(name));
}

/* Makes the error for a missing step column; suggests a wrong separator if there is one. */
static dt_status no_step(const table *t, dt_error *err)
{
    for (int i = 0; i < t->cells_count; i++) {
        const char *found = strpbrk(t->cells[i], ";\t|");

        if (found != NULL)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "%s:1: no column 'step'; the cells seem to be separated by %s "
                           "(only ',' is supported, and '.' in numbers)",
                           t->source->path,
                           *found == ';'   ? "';'"
                           : *found == '|' ? "'|'"
                                           : "tabs");
    }
    return DT_FAIL(err, DT_ERR_USAGE, "%s:1: no column 'step'", t->source->path);
}

static void leave_out(table *t, const char *title)
{
    int32_t number;

    dt_import_name(&number, &t->out->left_out, title, t->out->arena);
}

/* Sets the metric of a column. DT_ERR_USAGE for a duplicate title: its points would replace those
 * of the first. */
static dt_status name_column(table *t, int column, dt_error *err)
{
    dt_status st = DT_OK;

    dt_import_name(&t->metrics[column], &t->out->metrics, text_of(t->cells[column]), t->out->arena);
    for (int i = 0; i < column; i++)
        if (t->kinds[i] == UNDECIDED && t->metrics[i] == t->metrics[column])
            DT_THROW(err, DT_ERR_USAGE, "%s:1: columns %d and %d are both called '%.60s'",
                     t->source->path, i + 1, column + 1, text_of(t->cells[column]));
out:
    return st;
}

static dt_status read_head(table *t, dt_error *err)
{
    bool more;
    dt_status st = DT_OK;

    for (int i = 0; i < ROLE_COUNT; i++)
        t->roles[i] = NONE;
    if (t->end - t->at >= 3 && memcmp(t->at, "\xef\xbb\xbf", 3) == 0)
        t->at += 3;
    DT_TRY(next_line(t, &more, err));
    t->columns_count = t->cells_count;
    for (int i = 0; i < t->columns_count; i++) {
        role found = role_of(t->cells[i]);

        t->kinds[i] = found == ROLE_COUNT ? UNDECIDED : TEXT;
        if (found < ROLE_COUNT && t->roles[found] == NONE)
            t->roles[found] = i;
        else if (found == ROLE_COUNT)
            DT_TRY(name_column(t, i, err));
        else
            leave_out(t, text_of(t->cells[i]));
    }
    if (t->roles[ROLE_STEP] == NONE)
        DT_TRY(no_step(t, err));
    if (t->roles[ROLE_NAME] != NONE && t->roles[ROLE_VALUE] == NONE)
        DT_THROW(err, DT_ERR_USAGE, "%s:1: a column 'name' without a column 'value'",
                 t->source->path);
    if (t->source->metric != NULL && (t->roles[ROLE_NAME] != NONE || t->roles[ROLE_VALUE] == NONE))
        DT_THROW(err, DT_ERR_USAGE,
                 "--metric does not apply to '%s' (only to a file with a column 'value' and no "
                 "column 'name')",
                 t->source->path);
    for (int i = 0; i < t->columns_count && t->roles[ROLE_VALUE] != NONE; i++)
        if (t->kinds[i] == UNDECIDED)
            leave_out(t, text_of(t->cells[i]));
out:
    return st;
}

/* --- lines */

static dt_status bad_cell(const table *t, int column, const char *wanted, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_CORRUPT, "%s:%lld: column %d: '%.60s' is not a %s", t->source->path,
                   (long long)t->line, column + 1, t->cells[column], wanted);
}

static bool is_number(double *out, const char *cell)
{
    char *end;

    errno = 0;
    *out = strtod(cell, &end);
    while (*end == ' ')
        end++;
    return end != cell && *end == '\0';
}

/* Whether the cell is a number such as 2,5 or -1,25e3. */
static bool has_decimal_comma(const char *cell)
{
    char *comma, *end;

    (void)strtol(cell, &comma, 10);
    if (comma == cell || *comma != ',' || !isdigit((unsigned char)comma[1]))
        return false;
    (void)strtod(comma + 1, &end);
    return *end == '\0';
}

static dt_status read_step(int64_t *out, const table *t, dt_error *err)
{
    double value;

    if (!is_number(&value, t->cells[t->roles[ROLE_STEP]]) || !(value >= 0 && value < 9e15) ||
        value != floor(value))
        return bad_cell(t, t->roles[ROLE_STEP], "step", err);
    *out = (int64_t)value;
    return DT_OK;
}

/* Days since 1970 of the Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    return year * 365 + year / 4 - year / 100 + year / 400 +
           (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1 - 719468;
}

/* Reads what follows a time: nothing or Z (UTC), +HH, +HHMM or +HH:MM, also with '-', perhaps after a blank. *out:
 * minutes ahead of UTC. */
static bool read_offset(int *out, const char *text)
{
    int hours = 0, minutes = 0, used = 0;
    char sign;

    *out = 0;
    text += *text == ' ';
    if (text[0] == '\0' || strcmp(text, "Z") == 0)
        return true;
    sign = *text++;
    if ((sign != '+' && sign != '-') || strspn(text, "0123456789:") != strlen(text))
        return false;
    if ((sscanf(text, "%2d:%2d%n", &hours, &minutes, &used) != 2 || text[used] != '\0') &&
        (strlen(text) != 4 || sscanf(text, "%2d%2d", &hours, &minutes) != 2) &&
        (strlen(text) != 2 || sscanf(text, "%2d", &hours) != 1))
        return false;
    *out = (sign == '-' ? -1 : 1) * (hours * 60 + minutes);
    return hours <= 14 && minutes < 60;
}

static dt_status read_time(int64_t *out, const table *t, dt_error *err)
{
    int column = t->roles[ROLE_TIME], year, month, day, hour, minute, offset = 0, used = 0;
    const char *cell = column != NONE ? t->cells[column] : "";
    double seconds;

    *out = t->file_ms;
    if (cell[0] == '\0')
        return DT_OK;
    if (is_number(&seconds, cell)) {
        if (!(seconds >= 0 && seconds < 1e14))
            return bad_cell(t, column, "time", err);
        *out = (int64_t)(seconds < 1e11 ? seconds * 1000 + 0.5 : seconds); /* or milliseconds */
        return DT_OK;
    }
    if (sscanf(cell, "%4d-%2d-%2d%*1[T ]%2d:%2d:%lf%n", &year, &month, &day, &hour, &minute,
               &seconds, &used) != 6 ||
        used == 0 || !read_offset(&offset, cell + used) || year < 1970 || month < 1 || month > 12 ||
        day < 1 || day > 31 || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
        !(seconds >= 0 && seconds < 61))
        return bad_cell(t, column, "time", err);
    *out = ((days_of(year, month, day) * 24 + hour) * 60 + minute - offset) * 60000 +
           (int64_t)(seconds * 1000 + 0.5);
    return DT_OK;
}

/* Finds the run of a line. Runs with ids and names are called NAME-ID, since names may not be unique. */
static void read_run(table *t)
{
    int id = t->roles[ROLE_RUN], name = t->roles[ROLE_RUN_NAME];
    const char *title;

    if (id == NONE && name == NONE) {
        title = stem_of(t->source->path, t->out->arena);
    } else {
        title = text_of(t->cells[name != NONE ? name : id]);
        if (id != NONE && name != NONE)
            title = dt_arena_printf(t->out->arena, "%s-%s", title, text_of(t->cells[id]));
    }
    if (t->last_run != NULL && strcmp(t->last_run, title) == 0)
        return;
    dt_import_name(&t->run, &t->out->runs, title, t->out->arena);
    t->last_run = dt_arena_strdup(t->out->arena, title);
}

static dt_status add_cell(table *t, dt_import_point *point, int column, dt_error *err)
{
    if (t->cells[column][0] == '\0')
        return DT_OK;
    if (!is_number(&point->value, t->cells[column]))
        return bad_cell(t, column,
                        has_decimal_comma(t->cells[column])
                            ? "number (write it with a decimal point)"
                            : "number",
                        err);
    return dt_import_add(t->out, point, err);
}

static void leave_out_text(table *t, int column)
{
    t->out->skipped++;
    t->out->decimal_comma = t->out->decimal_comma || has_decimal_comma(t->cells[column]);
    dt_import_name(&(int32_t){0}, &t->out->left_out, t->out->metrics.items[t->metrics[column]],
                   t->out->arena);
}

/* Adds the cells of all metric columns. A column whose first cell is not a number is left out. */
static dt_status add_wide(table *t, dt_import_point *point, dt_error *err)
{
    dt_status st = DT_OK;
    double value;

    for (int i = 0; i < t->columns_count; i++) {
        if (t->kinds[i] == UNDECIDED && t->cells[i][0] != '\0') {
            t->kinds[i] = is_number(&value, t->cells[i]) ? METRIC : TEXT;
            if (t->kinds[i] == TEXT)
                leave_out_text(t, i);
        }
        if (t->kinds[i] != METRIC)
            continue;
        point->metric = t->metrics[i];
        DT_TRY(add_cell(t, point, i, err));
    }
out:
    return st;
}

static dt_status name_metric(table *t, int32_t *out, dt_error *err)
{
    const char *name = t->source->metric;

    if (t->roles[ROLE_NAME] != NONE)
        name = text_of(t->cells[t->roles[ROLE_NAME]]);
    else if (name == NULL)
        name = stem_of(t->source->path, t->out->arena);
    if (name[0] == '\0')
        return bad_cell(t, t->roles[ROLE_NAME], "name of a metric", err);
    dt_import_name(out, &t->out->metrics, name, t->out->arena);
    return DT_OK;
}

static dt_status add_line(table *t, dt_error *err)
{
    dt_import_point point = {0};
    dt_status st = DT_OK;

    if (t->cells_count == 1 && t->cells[0][0] == '\0')
        return DT_OK; /* an empty line */
    if (t->cells_count != t->columns_count)
        DT_THROW(err, DT_ERR_CORRUPT, "%s:%lld: %d cells, but the title line has %d",
                 t->source->path, (long long)t->line, t->cells_count, t->columns_count);
    DT_TRY(read_step(&point.step, t, err));
    DT_TRY(read_time(&point.time_ms, t, err));
    read_run(t);
    point.run = t->run;
    if (t->roles[ROLE_VALUE] == NONE) {
        DT_TRY(add_wide(t, &point, err));
    } else {
        DT_TRY(name_metric(t, &point.metric, err));
        DT_TRY(add_cell(t, &point, t->roles[ROLE_VALUE], err));
    }
out:
    return st;
}

static dt_status read_csv(dt_imported *out, const dt_import_source *source, dt_error *err)
{
    table *t = dt_calloc(1, sizeof(*t));
    dt_status st = DT_OK;
    struct stat info;
    dt_strbuf text;
    bool more;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, source->path, FILE_BYTES_MOST, err));
    if (memchr(text.data, '\0', text.length) != NULL)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' is not a text file", source->path);
    t->source = source;
    t->out = out;
    t->at = text.data;
    t->end = text.data + text.length;
    t->file_ms = stat(source->path, &info) == 0 ? (int64_t)info.st_mtime * 1000 : 0;
    DT_TRY(read_head(t, err));
    for (;;) {
        DT_TRY(next_line(t, &more, err));
        if (!more)
            break;
        DT_TRY(add_line(t, err));
    }
out:
    dt_strbuf_release(&text);
    free(t);
    return st;
}

const dt_import_format dt_import_csv = {.name = "csv", .has_metric = true, .read = read_csv};
