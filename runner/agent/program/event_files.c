/* event_files: follows the event files of TensorBoard that a program writes. */

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/clock.h"
#include "recipes/foreign/event_file.h"
#include "runner/agent/program/program_int.h"

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
    size_t count, room;
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
    if (board->count == board->room) {
        board->room = board->room == 0 ? 16 : 2 * board->room;
        board->files = dt_realloc(board->files, board->room, sizeof(board->files[0]));
    }
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
