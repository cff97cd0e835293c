/* tensorboard: imports event files of a folder and its subfolders; each folder with event files is a run.
 *
 * recipes/foreign/event_file.h describes the files. A record truncated by the end of the file was still being written
 * and is ignored. Everything that is not a scalar is skipped.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "recipes/foreign/event_file.h"
#include "runner/import/import.h"

#define FILE_BYTES_MOST ((size_t)4 << 30)
#define DEPTH_MOST      16

typedef struct reading {
    dt_imported *out;
    int32_t run;
} reading;

static dt_status take_value(void *context, const dt_event_value *value, dt_error *err)
{
    const reading *r = context;
    dt_import_point point = {
        .run = r->run, .step = value->step, .time_ms = value->time_ms, .value = value->value};
    const char *tag = dt_arena_strndup(r->out->arena, value->tag, value->tag_length);

    if (tag[0] == '\0')
        return DT_OK;
    if (!value->scalar) {
        r->out->skipped++;
        dt_import_name(&(int32_t){0}, &r->out->left_out, tag, r->out->arena);
        return DT_OK;
    }
    dt_import_name(&point.metric, &r->out->metrics, tag, r->out->arena);
    return dt_import_add(r->out, &point, err);
}

static dt_status read_file(dt_imported *out, int32_t run, const char *path, dt_error *err)
{
    reading r = {out, run};
    dt_status st = DT_OK;
    dt_strbuf text;
    size_t used;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, path, FILE_BYTES_MOST, err));
    DT_TRY(dt_event_file_read(&used, text.data, text.length, path, 0, take_value, &r, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Reads a folder. name: of its run; for subfolders the path below the first folder. Files are read
 * in the order of their names, which is the order of their times. */
static dt_status read_folder(dt_imported *out, const char *path, const char *name, int depth,
                             dt_error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, not_hidden, alphasort);
    dt_status st = DT_OK;
    struct stat info;
    int32_t run;

    if (count < 0)
        return DT_FAIL(err, DT_ERR_NOT_FOUND, "cannot read the folder '%s'", path);
    for (int i = 0; i < count; i++) {
        const char *below = dt_arena_printf(out->arena, "%s/%s", path, entries[i]->d_name);
        const char *inner = depth == 0
                                ? dt_arena_strdup(out->arena, entries[i]->d_name)
                                : dt_arena_printf(out->arena, "%s/%s", name, entries[i]->d_name);

        if (lstat(below, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode) && depth < DEPTH_MOST) {
            DT_TRY(read_folder(out, below, inner, depth + 1, err));
        } else if (S_ISREG(info.st_mode) && strstr(entries[i]->d_name, "tfevents") != NULL) {
            dt_import_name(&run, &out->runs, name, out->arena);
            DT_TRY(read_file(out, run, below, err));
        }
    }
out:
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return st;
}

static dt_status read_board(dt_imported *out, const dt_import_source *source, dt_error *err)
{
    const char *path = source->path, *name;
    size_t length = strlen(path);
    struct stat info;
    int32_t run;
    dt_status st = DT_OK;

    while (length > 1 && path[length - 1] == '/')
        length--;
    path = dt_arena_strndup(out->arena, path, length);
    name = base_of(path);
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
        dt_import_name(&run, &out->runs, name, out->arena);
        DT_TRY(read_file(out, run, path, err));
    } else {
        DT_TRY(read_folder(out, path, name, 0, err));
    }
out:
    return st;
}

const dt_import_format dt_import_tensorboard = {.name = "tensorboard", .read = read_board};
