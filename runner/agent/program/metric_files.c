/* metric_files: follows the files that a program writes metrics to: lines, tables, the state of a Trainer,
 * event files of TensorBoard. */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "recipes/foreign/event_file.h"
#include "runner/agent/program/program_int.h"

#define CHUNK_BYTES 65536
#define MOST_BYTES  ((int64_t)4 << 20) /* that are read in one look */
#define STATE_BYTES ((size_t)64 << 20)
#define STATE_NAME  "trainer_state.json"

/* --- the file */

static bool is_regular(int fd, struct stat *info)
{
    return fstat(fd, info) == 0 && S_ISREG(info->st_mode);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), most = strlen(end);

    return length >= most && strcmp(text + length - most, end) == 0;
}

static bool is_table(const dt_metrics_file *file)
{
    return ends_with(file->path, ".csv");
}

static bool is_after(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* Finds the newest file that the path names. */
static bool find(dt_strbuf *out, struct stat *info, const dt_metrics_file *file)
{
    bool found = false;
    struct stat one;
    glob_t all;

    dt_strbuf_reset(out);
    if (!file->pattern) {
        dt_strbuf_add_str(out, file->path);
        return stat(file->path, info) == 0;
    }
    if (glob(file->path, 0, NULL, &all) != 0)
        return false;
    for (size_t i = 0; i < all.gl_pathc; i++) {
        if (stat(all.gl_pathv[i], &one) != 0 || !S_ISREG(one.st_mode) ||
            (found && !is_after(&one.st_mtim, &info->st_mtim)))
            continue;
        *info = one;
        found = true;
        dt_strbuf_reset(out);
        dt_strbuf_add_str(out, all.gl_pathv[i]);
    }
    globfree(&all);
    return found;
}

/* Opens the file if it exists. A pipe or a device is left alone. */
static void try_open(dt_metrics_file *file, const char *path, struct stat *info)
{
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd >= 0 && !is_regular(file->fd, info)) {
        close(file->fd);
        file->fd = -1;
    }
}

static void read_header(dt_metrics_file *file)
{
    char line[CHUNK_BYTES];
    ssize_t length = pread(file->fd, line, sizeof(line), 0);
    const char *end = length > 0 ? memchr(line, '\n', (size_t)length) : NULL;

    dt_strbuf_reset(&file->header);
    if (end != NULL)
        dt_strbuf_add(&file->header, line, (size_t)(end - line));
}

void dt_metrics_file_open(dt_metrics_file *out, const char *path, bool pattern)
{
    struct stat info;
    dt_strbuf found;

    *out = (dt_metrics_file){.path = path, .pattern = pattern, .fd = -1};
    dt_strbuf_init(&out->header);
    dt_strbuf_init(&out->row);
    dt_strbuf_init(&found);
    clock_gettime(CLOCK_REALTIME, &out->opened);
    out->read = out->opened;
    if (find(&found, &info, out))
        try_open(out, found.data, &info);
    if (out->fd >= 0) {
        out->offset = info.st_size;
        out->read = info.st_mtim;
        if (is_table(out))
            read_header(out);
    }
    dt_strbuf_release(&found);
}

void dt_metrics_file_close(dt_metrics_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->path != NULL) {
        dt_strbuf_release(&file->header);
        dt_strbuf_release(&file->row);
    }
    *file = (dt_metrics_file){.fd = -1};
}

/* Opens the file that the path names now, if it is not the open one. */
static void follow_path(dt_metrics_file *file)
{
    struct stat named, opened;
    dt_strbuf found;

    dt_strbuf_init(&found);
    if (!find(&found, &named, file)) {
        dt_strbuf_release(&found);
        return;
    }
    if (file->fd >= 0 && is_regular(file->fd, &opened) && opened.st_ino == named.st_ino &&
        opened.st_dev == named.st_dev) {
        if (opened.st_size < file->offset)
            file->offset = 0;
        dt_strbuf_release(&found);
        return;
    }
    if (file->fd >= 0)
        close(file->fd);
    file->offset = 0;
    dt_strbuf_reset(&file->header);
    dt_strbuf_reset(&file->row);
    try_open(file, found.data, &opened);
    dt_strbuf_release(&found);
}

/* --- the state of a Trainer */

static void take_state(dt_output_metrics *metrics, const json_t *state)
{
    json_t *entry, *value;
    const char *name;
    size_t i;

    json_array_foreach(json_object_get(state, "log_history"), i, entry) {
        double step = json_number_value(json_object_get(entry, "step"));
        json_t *values;

        if (!json_is_number(json_object_get(entry, "step")) || !dt_metrics_is_step(step) ||
            (int64_t)step <= metrics->first_step)
            continue;
        values = json_object();
        json_object_foreach(entry, name, value)
            if (strcmp(name, "step") != 0 && json_is_number(value))
                dt_metrics_add_foreign(metrics, values, name, (int64_t)step,
                                       json_number_value(value));
        dt_metrics_send(metrics, (int64_t)step, values);
    }
}

/* Reads the state if it has changed. One that is being written cannot be parsed, and is read at the next look. */
static void read_state(dt_metrics_file *file, dt_output_metrics *metrics)
{
    json_t *state = NULL;
    struct stat info;
    dt_strbuf path, text;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    if (find(&path, &info, file) && is_after(&info.st_mtim, &file->read) &&
        dt_file_read(&text, path.data, STATE_BYTES, NULL) == DT_OK &&
        dt_json_parse(&state, text.data, text.length, STATE_NAME, NULL) == DT_OK) {
        file->read = info.st_mtim;
        take_state(metrics, state);
    }
    json_decref(state);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
}

/* --- a table */

/* Takes the next cell of a row, in place; NULL at its end. */
static char *next_cell(char **rest)
{
    char *cell = *rest, *end;

    if (cell == NULL)
        return NULL;
    if (*cell == '"') {
        cell++;
        end = strchrnul(cell, '"');
        *rest = *end == '"' ? strchr(end, ',') : NULL;
        *end = '\0';
        *rest = *rest != NULL ? *rest + 1 : NULL;
        return cell;
    }
    end = strchr(cell, ',');
    *rest = end != NULL ? end + 1 : NULL;
    cell[end != NULL ? (size_t)(end - cell) : strcspn(cell, "\r")] = '\0';
    return cell;
}

/* Returns whether the text is a number; an empty cell is none. */
static bool is_number(double *out, const char *text)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && *end == '\0' && strpbrk(text, "xX") == NULL;
}

static void take_row(dt_metrics_file *file, dt_output_metrics *metrics, char *row)
{
    dt_strbuf names, cells;
    char *name, *cell, *names_rest, *cells_rest;
    double value, step = -1;
    json_t *values;

    dt_strbuf_init(&names);
    dt_strbuf_init(&cells);
    for (int turn = 0; turn < 2; turn++) { /* the step first, wherever it is */
        values = turn == 1 ? json_object() : NULL;
        dt_strbuf_reset(&names);
        dt_strbuf_reset(&cells);
        dt_strbuf_add_str(&names, file->header.data);
        dt_strbuf_add_str(&cells, row);
        names_rest = names.data;
        cells_rest = cells.data;
        while ((name = next_cell(&names_rest)) != NULL && (cell = next_cell(&cells_rest)) != NULL) {
            bool is_step = strcmp(name, "step") == 0;

            if (!is_number(&value, cell))
                continue;
            if (turn == 0 && is_step)
                step = value;
            else if (turn == 1 && !is_step)
                dt_metrics_add_foreign(metrics, values, name, (int64_t)step, value);
        }
        if (turn == 0 && !dt_metrics_is_step(step)) {
            dt_metrics_leave(metrics, DT_METRICS_NO_STEP, row);
            break;
        }
        if (turn == 1)
            dt_metrics_send(metrics, (int64_t)step, values);
    }
    dt_strbuf_release(&names);
    dt_strbuf_release(&cells);
}

static void take_rows(dt_metrics_file *file, dt_output_metrics *metrics, const char *bytes,
                      size_t length)
{
    const char *end = bytes + length;

    while (bytes < end) {
        const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));

        dt_strbuf_add(&file->row, bytes, (size_t)((stop != NULL ? stop : end) - bytes));
        if (stop == NULL)
            break;
        if (file->row.length > 0)
            take_row(file, metrics, file->row.data);
        dt_strbuf_reset(&file->row);
        bytes = stop + 1;
    }
}

/* Reads a table again from its first row if its names have changed. Returns whether it has names. */
static bool look_at_header(dt_metrics_file *file)
{
    dt_strbuf before;
    bool same;

    dt_strbuf_init(&before);
    dt_strbuf_add_str(&before, file->header.data);
    read_header(file);
    same = strcmp(before.data, file->header.data) == 0;
    dt_strbuf_release(&before);
    if (!same || file->offset == 0) {
        file->offset = (int64_t)file->header.length + 1;
        dt_strbuf_reset(&file->row);
    }
    return file->header.length > 0;
}

/* Reads the lines or rows that were appended. */
static void read_appended(dt_metrics_file *file, dt_output_metrics *metrics)
{
    int64_t end = file->offset + MOST_BYTES;
    char chunk[CHUNK_BYTES];

    follow_path(file);
    if (file->fd >= 0 && is_table(file) && !look_at_header(file))
        return;
    while (file->fd >= 0 && file->offset < end) {
        ssize_t length = pread(file->fd, chunk, sizeof(chunk), (off_t)file->offset);

        if (length <= 0)
            break;
        file->offset += length;
        if (is_table(file))
            take_rows(file, metrics, chunk, (size_t)length);
        else
            dt_output_metrics_read(metrics, chunk, (size_t)length);
    }
}

void dt_metrics_file_read(dt_metrics_file *file, dt_output_metrics *metrics)
{
    bool is_state = ends_with(file->path, STATE_NAME);

    metrics->again = is_state || is_table(file); /* they may repeat what they had */
    if (is_state)
        read_state(file, metrics);
    else
        read_appended(file, metrics);
    metrics->again = false;
}

/* event files of TensorBoard */

#define LOOK_SECONDS 5.0
#define DEPTH_MOST   8
#define SEEN_MOST    50000 /* entries of folders that are looked at */
#define FILES_MOST   1000
#define PIECE_BYTES  ((size_t)1 << 20)
#define TAG_MOST     256

typedef struct event_file {
    char *path;
    int64_t offset; /* of the next record */
    bool damaged;   /* it was reported, and is left alone */
} event_file;

struct dt_metrics_board {
    const char *folder;
    event_file *files;
    size_t count;
    int64_t room;
    bool started; /* files that are found from now on are new */
    double looked_seconds;
    char *piece; /* [PIECE_BYTES] */
};

/* --- finding files */

static void note_file(dt_metrics_board *board, const char *path, int64_t bytes)
{
    for (size_t i = 0; i < board->count; i++)
        if (strcmp(board->files[i].path, path) == 0)
            return;
    if (board->count >= FILES_MOST)
        return;
    board->files =
        dt_array_room(board->files, board->count + 1, &board->room, sizeof(board->files[0]));
    board->files[board->count++] = (event_file){dt_strdup(path), board->started ? 0 : bytes, false};
}

static void look_into(dt_metrics_board *board, const char *folder, int depth, int64_t *seen)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    struct stat info;
    dt_strbuf path;

    dt_strbuf_init(&path);
    while (dir != NULL && *seen < SEEN_MOST && (entry = readdir(dir)) != NULL) {
        ++*seen;
        if (entry->d_name[0] == '.')
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", folder, entry->d_name);
        if (lstat(path.data, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode) && depth < DEPTH_MOST)
            look_into(board, path.data, depth + 1, seen);
        else if (S_ISREG(info.st_mode) && strstr(entry->d_name, "tfevents") != NULL)
            note_file(board, path.data, (int64_t)info.st_size);
    }
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&path);
}

static void look(dt_metrics_board *board)
{
    int64_t seen = 0;

    board->looked_seconds = dt_clock_monotonic_seconds();
    look_into(board, board->folder, 0, &seen);
}

void dt_metrics_board_open(dt_metrics_board **out, const char *folder)
{
    dt_metrics_board *board = dt_calloc(1, sizeof(*board));

    board->folder = folder;
    board->piece = dt_malloc(PIECE_BYTES);
    look(board);
    board->started = true;
    *out = board;
}

void dt_metrics_board_close(dt_metrics_board *board)
{
    if (board == NULL)
        return;
    for (size_t i = 0; i < board->count; i++)
        free(board->files[i].path);
    free(board->files);
    free(board->piece);
    free(board);
}

/* --- reading */

static dt_status take_value(void *context, const dt_event_value *value, dt_error *err)
{
    dt_output_metrics *metrics = context;
    char tag[TAG_MOST];
    json_t *values;

    if (!value->scalar || value->tag_length >= sizeof(tag))
        return DT_OK;
    memcpy(tag, value->tag, value->tag_length);
    tag[value->tag_length] = '\0';
    values = json_object();
    dt_metrics_add_foreign(metrics, values, tag, value->step, value->value);
    dt_metrics_send(metrics, value->step, values);
    return DT_OK;
}

/* Skips a record that is larger than a piece: scalars are small. */
static bool skip_large(dt_metrics_board *board, event_file *file, size_t got)
{
    uint64_t size;

    if (got < PIECE_BYTES)
        return false; /* it is still being written */
    memcpy(&size, board->piece, sizeof(size));
    file->offset += (int64_t)size + 16;
    return true;
}

static void read_file(dt_metrics_board *board, event_file *file, dt_output_metrics *metrics)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    bool more = fd >= 0;

    while (more && st == DT_OK) {
        ssize_t got = pread(fd, board->piece, PIECE_BYTES, (off_t)file->offset);
        size_t used = 0;

        if (got <= 0)
            break;
        st = dt_event_file_read(&used, board->piece, (size_t)got, file->path, file->offset,
                                take_value, metrics, &problem);
        file->offset += (int64_t)used;
        more = used > 0 || (st == DT_OK && skip_large(board, file, (size_t)got));
    }
    if (fd >= 0)
        close(fd);
    if (st == DT_ERR_CORRUPT) {
        dt_reports_warn(metrics->reports, "%s: the rest of it is not read", problem.message);
        file->damaged = true;
    }
}

void dt_metrics_board_read(dt_metrics_board *board, dt_output_metrics *metrics, bool ended)
{
    if (ended || dt_clock_monotonic_seconds() - board->looked_seconds > LOOK_SECONDS)
        look(board);
    for (size_t i = 0; i < board->count; i++)
        if (!board->files[i].damaged)
            read_file(board, &board->files[i], metrics);
}
