/* look: finds data files and detects their kind from a sample of each. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/display.h"
#include "base/json.h"
#include "engine/chat/chat.h"
#include "engine/data/files.h"
#include "engine/data/npy.h"
#include "runner/corpus/corpus.h"
#include "runner/init/init.h"

/* look_sample: detects the kind of one file by its first bytes (runner/init/init.h). */

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
    int64_t line = 1, chats = 0, objects = 0;
    dt_chat_form form;

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
        objects += json_is_object(object);
        chats += json_is_object(object) && dt_chat_form_of(&form, object, NULL) == DT_OK;
        json_object_foreach(object, key, value)
            if (json_is_string(value))
                add_field(&of, key, json_string_length(value), arena);
        json_decref(object);
        at += bytes + 1;
    }
    if (objects > 0 && chats == objects) {
        out->kind = DT_LOOK_CHATS;
        return DT_OK;
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

static dt_status sample_read(dt_sample *out, const char *path, dt_arena *arena, dt_error *err)
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

enum { FILES_MOST = 1000 };

typedef struct looker {
    dt_look *out;
    dt_arena *arena;
    const char **paths; /* FILES_MOST of each */
    int64_t count;
} looker;

const char *dt_look_kind_name(dt_look_kind kind)
{
    static const char *const names[] = {
        [DT_LOOK_TEXT] = "text",
        [DT_LOOK_JSONL] = "JSON lines",
        [DT_LOOK_CHATS] = "conversations",
        [DT_LOOK_RECORDS] = "CSV with texts",
        [DT_LOOK_ROWS] = "rows of numbers",
        [DT_LOOK_IDS] = "token ids",
    };
    return names[kind];
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* --- which files */

static bool is_data(const char *name)
{
    static const char *const endings[] = {".txt",  ".text", ".md",  ".jsonl",
                                          ".json", ".csv",  ".npy", ".bin"};
    static const char *const others[] = {"README", "LICENSE", "tokenizer", "config", "CHANGES"};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return false;
    for (size_t i = 0; dot != NULL && dot != name && i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return false;
}

static dt_status add(looker *l, const char *path, dt_error *err)
{
    for (int64_t i = 0; i < l->count; i++)
        if (strcmp(l->paths[i], path) == 0)
            return DT_FAIL(err, DT_ERR_USAGE, "'%s' is given twice", path);
    for (const char *at = path; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "'%s' has a control character in its name, which recipes do not support",
                           path);
    if (l->count == FILES_MOST)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "more than %d files; use a pattern in the recipe instead, for example "
                       "train: 'data/*.txt'",
                       FILES_MOST);
    l->paths[l->count++] = dt_arena_strdup(l->arena, path);
    return DT_OK;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static dt_status add_folder(looker *l, const char *folder, dt_error *err)
{
    size_t length = strlen(folder);
    bool here = strcmp(folder, ".") == 0;
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, by_bytes);
    int64_t before = l->count;
    dt_status st = DT_OK;

    if (count < 0)
        return DT_FAIL(err, DT_ERR_USAGE, "cannot read the folder '%s': %s", folder,
                       strerror(errno));
    while (length > 1 && folder[length - 1] == '/')
        length--;
    for (int i = 0; i < count && st == DT_OK; i++) {
        const char *name = entries[i]->d_name;
        const char *path =
            here ? name : dt_arena_printf(l->arena, "%.*s/%s", (int)length, folder, name);
        struct stat info;

        if (path == NULL || stat(path, &info) != 0 || !S_ISREG(info.st_mode))
            continue;
        if (strcmp(name, "tokenizer.json") == 0)
            l->out->tokenizer = path;
        else if (is_data(name))
            st = add(l, path, err);
    }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    if (st == DT_OK && l->count == before)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "'%s' has no data files (expected .txt, .md, .jsonl, .json, .csv, .npy or "
                       ".bin)",
                       folder);
    return st;
}

static dt_status add_path(looker *l, const char *path, dt_error *err)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return DT_FAIL(err, DT_ERR_USAGE, "cannot read '%s': %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return add_folder(l, path, err);
    if (!S_ISREG(info.st_mode))
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' is neither a file nor a folder", path);
    return add(l, path, err);
}

/* --- their kinds */

static bool is_validation(const char *path)
{
    static const char *const words[] = {"val", "valid", "validation", "dev", "eval"};
    static const char ends[] = "-_. ";
    const char *name = name_of(path);

    for (const char *at = name; *at != '\0'; at += strcspn(at, ends), at += strspn(at, ends))
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
            if (strcspn(at, ends) == strlen(words[i]) &&
                strncmp(at, words[i], strlen(words[i])) == 0)
                return true;
    return false;
}

static dt_status refuse_mixed(const dt_sample *first, const char *first_path,
                              const dt_sample *other, const char *other_path, dt_error *err)
{
    if (first->kind != other->kind)
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "'%s' is %s, but '%s' is %s: a recipe needs data of one kind; name the files to use",
            first_path, dt_look_kind_name(first->kind), other_path, dt_look_kind_name(other->kind));
    if (first->columns != other->columns)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "'%s' has %lld columns, but '%s' has %lld: all rows need the same columns",
                       first_path, (long long)first->columns, other_path,
                       (long long)other->columns);
    return DT_FAIL(
        err, DT_ERR_USAGE,
        "'%s' has its text in '%s', but '%s' has it in '%s': a recipe has one text field",
        first_path, first->field, other_path, other->field);
}

static bool is_alike(const dt_sample *a, const dt_sample *b)
{
    return a->kind == b->kind && a->columns == b->columns &&
           (a->field == NULL || strcmp(a->field, b->field) == 0);
}

static dt_status look(looker *l, dt_error *err)
{
    dt_sample first = {0}, sample;
    dt_look *out = l->out;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < l->count; i++) {
        bool validates = l->count > 1 && is_validation(l->paths[i]);
        dt_string_list *list = validates ? &out->validation : &out->train;

        DT_TRY(sample_read(&sample, l->paths[i], l->arena, err));
        if (i == 0)
            first = sample;
        else if (!is_alike(&first, &sample))
            DT_TRY(refuse_mixed(&first, l->paths[0], &sample, l->paths[i], err));
        list->items[list->count++] = l->paths[i];
        out->train_bytes += validates ? 0 : sample.bytes;
        if (first.classes > 0)
            first.classes = sample.classes == 0              ? 0
                            : sample.classes > first.classes ? sample.classes
                                                             : first.classes;
    }
    if (out->train.count == 0)
        DT_THROW(err, DT_ERR_USAGE, "no training data: the name of '%s' marks validation data",
                 l->paths[0]);
    out->kind = first.kind;
    out->field = first.field;
    out->columns = first.columns;
    out->classes = first.classes;
out:
    return st;
}

dt_status dt_look_at(dt_look *out, char *const *paths, int count, dt_arena *arena, dt_error *err)
{
    looker l = {.out = out, .arena = arena};
    dt_status st = DT_OK;

    *out = (dt_look){0};
    l.paths = dt_arena_alloc_array(arena, FILES_MOST, sizeof(*l.paths));
    out->train.items = dt_arena_alloc_array(arena, FILES_MOST, sizeof(*l.paths));
    out->validation.items = dt_arena_alloc_array(arena, FILES_MOST, sizeof(*l.paths));
    for (int i = 0; i < count; i++)
        DT_TRY(add_path(&l, paths[i], err));
    if (count == 0)
        DT_TRY(add_folder(&l, ".", err));
    DT_TRY(look(&l, err));
out:
    return st;
}
