/* forget: removes the files of an ended run on this machine: of one attempt (forget), or everything (wipe).
 *
 * FOLDER is STATE/nodes/RUN/attempt-N/node-K; the launch machine has copies of all its contents.
 * WORKDIR is STATE/nodes/RUN/workdir-K, or "-": what was sent there is removed, or becomes a spare
 * folder (spare.h). Files that the command wrote or changed may be the only copies: they are kept, and
 * "files COUNT BYTES [PATH, ...]" is printed.
 * CHECKPOINTS is STATE/nodes/RUN/checkpoints-K, or "-". Stdin has the names of checkpoints that
 * exist elsewhere, one per line. A complete checkpoint, or this node's complete part of one, that
 * is not named may be the only copy: it is kept, and "kept NAME" is printed. Others are removed,
 * and "gone NAME" is printed. Parent folders are removed once they are empty. If nothing reads the
 * output any more, the rest is kept.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "engine/checkpoint/name.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/remote_helper/sent_tree.h"
#include "runner/node_setup/remote_helper/spare.h"

#define LEAVE_SECONDS \
    12.0 /* time limit for an agent to exit; without a supervisor it exits after 10 s */
#define LOOK_SECONDS 0.002
#define NAMES_BYTES  ((size_t)16 << 20)
#define NAMES_MAX    1000
#define DEPTH_MAX    200

/* Returns true for a path of the form FRONTn or FRONTn/BACKm below .../nodes/RUN; other paths are
 * refused. */
static bool is_ours(const char *path, const char *front, const char *back)
{
    const char *at = path[0] == '/' ? strstr(path, "/nodes/") : NULL, *run;
    long number;
    int used = 0;

    if (at == NULL || strstr(path, "/../") != NULL)
        return false;
    for (const char *next; (next = strstr(at + 1, "/nodes/")) != NULL;)
        at = next;
    run = at + strlen("/nodes/");
    at = strchr(run, '/');
    if (at == NULL || at == run || strncmp(at + 1, front, strlen(front)) != 0)
        return false;
    at += 1 + strlen(front);
    if (sscanf(at, "%ld%n", &number, &used) != 1)
        return false;
    at += used;
    if (back == NULL)
        return *at == '\0';
    if (*at != '/' || strncmp(at + 1, back, strlen(back)) != 0)
        return false;
    return sscanf(at + 1 + strlen(back), "%ld%n", &number, &used) == 1 &&
           at[1 + strlen(back) + (size_t)used] == '\0';
}

/* Waits until no agent holds the lock of the folder. */
static dt_status await_agent(const char *folder, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + LEAVE_SECONDS;
    dt_status st = DT_OK;
    dt_strbuf path;
    int lock = -1;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/agent.lock", folder);
    while (dt_file_exists(path.data) && dt_file_lock(&lock, path.data, NULL) == DT_ERR_BUSY) {
        if (dt_clock_monotonic_seconds() > deadline)
            DT_THROW(err, DT_ERR_BUSY, "an agent still serves '%s'", folder);
        dt_clock_sleep_seconds(LOOK_SECONDS);
    }
out:
    if (lock >= 0)
        close(lock);
    dt_strbuf_release(&path);
    return st;
}

static void remove_if_empty(const char *path, int up)
{
    dt_strbuf full_path;

    dt_strbuf_init(&full_path);
    dt_strbuf_add_str(&full_path, path);
    for (; up >= 0; up--) {
        char *slash;

        if (rmdir(full_path.data) != 0 && errno != ENOENT)
            break; /* it has files of another attempt, or kept checkpoints */
        slash = strrchr(full_path.data, '/');
        if (slash == NULL)
            break;
        *slash = '\0';
    }
    dt_strbuf_release(&full_path);
}

static dt_status read_names(dt_strbuf *names, dt_error *err)
{
    char bytes[4096];
    ssize_t got;

    dt_strbuf_add_char(names, '\n');
    while ((got = read(STDIN_FILENO, bytes, sizeof(bytes))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || names->length > NAMES_BYTES)
            return DT_FAIL(err, DT_ERR_IO, "cannot read the names of checkpoints");
        dt_strbuf_add(names, bytes, (size_t)got);
    }
    /* An incomplete last line names nothing, so that at most too much is kept. */
    return DT_OK;
}

static bool is_named(const dt_strbuf *names, const char *name)
{
    dt_strbuf line;
    bool found;

    dt_strbuf_init(&line);
    dt_strbuf_add_fmt(&line, "\n%s\n", name);
    found = strstr(names->data, line.data) != NULL;
    dt_strbuf_release(&line);
    return found;
}

/* Returns true if the checkpoint, or this node's part of it, is complete; also if this cannot be
 * tested. */
static bool is_marked(const char *folder, const char *name)
{
    static const char *const markers[] = {DT_CHECKPOINT_MARKER, DT_CHECKPOINT_PART};
    bool marked = false;
    dt_strbuf path;

    dt_strbuf_init(&path);
    for (size_t i = 0; i < sizeof(markers) / sizeof(markers[0]); i++) {
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s/%s", folder, name, markers[i]);
        marked = marked || access(path.data, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
    }
    dt_strbuf_release(&path);
    return marked;
}

static dt_status say(const char *what, const char *name, dt_error *err)
{
    if (printf("%s %s\n", what, name) < 0 || fflush(stdout) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot answer: %s", strerror(errno));
    return DT_OK;
}

static dt_status forget_checkpoints(const char *folder, dt_error *err)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    dt_strbuf names, path;
    dt_status st = DT_OK;

    dt_strbuf_init(&names);
    dt_strbuf_init(&path);
    DT_TRY(read_names(&names, err));
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!is_named(&names, entry->d_name) && is_marked(folder, entry->d_name)) {
            DT_TRY(say("kept", entry->d_name, err));
            continue;
        }
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", folder, entry->d_name);
        DT_TRY(dt_file_remove_tree(path.data, err));
        DT_TRY(say("gone", entry->d_name, err));
    }
    remove_if_empty(folder, 1);
out:
    if (directory != NULL)
        closedir(directory);
    dt_strbuf_release(&names);
    dt_strbuf_release(&path);
    return st;
}

/* The files that stay in a folder. */
typedef struct made {
    int64_t files, bytes;
    json_t *paths; /* paths of the first NAMES_MAX files */
} made;

/* Returns true for a file that Python makes again from its source. */
static bool is_bytecode(const char *folder, const char *name)
{
    const char *slash = strrchr(folder, '/'), *dot = strstr(name, ".pyc");

    return slash != NULL && strcmp(slash + 1, "__pycache__") == 0 && dot != NULL;
}

/* Counts files, and removes Python's bytecode and folders that are empty. */
static void sweep(made *out, dt_strbuf *path, size_t front, int depth)
{
    DIR *directory = depth < DEPTH_MAX ? opendir(path->data) : NULL;
    size_t length = path->length;
    struct dirent *entry;
    struct stat info;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        bool bytecode;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        bytecode = is_bytecode(path->data, entry->d_name);
        dt_strbuf_add_fmt(path, "/%s", entry->d_name);
        if (lstat(path->data, &info) != 0) {
            /* it vanished */
        } else if (S_ISDIR(info.st_mode)) {
            sweep(out, path, front, depth + 1);
            (void)rmdir(path->data); /* fails unless it is empty */
        } else if (!bytecode || unlink(path->data) != 0) {
            if (++out->files <= NAMES_MAX)
                json_array_append_new(out->paths, dt_json_text(path->data + front));
            out->bytes += (int64_t)info.st_blocks * 512;
        }
        path->data[length] = '\0';
        path->length = length;
    }
    if (directory != NULL)
        closedir(directory);
}

static dt_status write_files(const made *output, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_json_write(&text, output->paths);
    if (printf("files %lld %lld %s\n", (long long)output->files, (long long)output->bytes,
               text.data) < 0 ||
        fflush(stdout) != 0)
        st = DT_FAIL(err, DT_ERR_IO, "cannot answer: %s", strerror(errno));
    dt_strbuf_release(&text);
    return st;
}

/* The documents about the folder stay with it: a resume has to know what is the command's (sent_tree.h). */
static dt_status forget_workdir(const char *folder, dt_error *err)
{
    static const char *const documents[] = {DT_SENT_TREE_UNFINISHED, DT_SENT_TREE_SETUP,
                                            DT_STAMPS_RECORD, DT_SENT_TREE_RECORD,
                                            DT_SENT_TREE_PLACING};
    made left = {.paths = json_array()};
    dt_status st = DT_OK;
    dt_sent_tree sent;
    dt_strbuf path;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&path);
    if (dt_remote_helper_cache(&path, NULL) == DT_OK)
        (void)dt_spare_give(folder, path.data, &arena);
    dt_sent_tree_read(&sent, folder, &arena);
    DT_TRY(dt_sent_tree_remove(&sent, NULL, err));
    dt_strbuf_reset(&path);
    dt_strbuf_add_str(&path, folder);
    sweep(&left, &path, path.length + 1, 0);
    for (size_t i = 0; left.files == 0 && i < sizeof(documents) / sizeof(documents[0]); i++) {
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s%s", folder, documents[i]);
        if (unlink(path.data) != 0 && errno != ENOENT)
            DT_THROW(err, DT_ERR_IO, "cannot remove '%s': %s", path.data, strerror(errno));
    }
    remove_if_empty(folder, 1);
    DT_TRY(write_files(&left, err));
out:
    json_decref(left.paths);
    dt_sent_tree_release(&sent);
    dt_strbuf_release(&path);
    dt_arena_release(&arena);
    return st;
}

dt_status dt_remote_helper_forget(const char *folder, const char *checkpoints, const char *workdir,
                                  dt_error *err)
{
    bool some = strcmp(checkpoints, "-") != 0, has_workdir = strcmp(workdir, "-") != 0;
    dt_status st = DT_OK;

    if (!is_ours(folder, "attempt-", "node-") ||
        (some && !is_ours(checkpoints, "checkpoints-", NULL)) ||
        (has_workdir && !is_ours(workdir, "workdir-", NULL)))
        DT_THROW(err, DT_ERR_USAGE, "forget: not a run's folder on a node");
    DT_TRY(await_agent(folder, err));
    DT_TRY(dt_file_remove_tree(folder, err));
    remove_if_empty(folder, 2);
    DT_TRY(say("gone", folder, err));
    if (has_workdir)
        DT_TRY(forget_workdir(workdir, err));
    if (some)
        DT_TRY(forget_checkpoints(checkpoints, err));
out:
    return st;
}

/* wipe: finds and removes the folders of ended runs on this machine, STATE/nodes/RUN.
 *
 * A run has ended here if no agent holds the lock of one of its attempts. An agent that was killed holds none, and its
 * processes may run on: the caller knows that the run has ended.
 */

#define WIPE_DEPTH_MAX 200
#define NAMED_MOST     5
#define RUNS_MOST      1000

typedef struct ended_run {
    char name[128];
    int64_t bytes;
} ended_run;

/* Adds what is below the folder on the disk. *locked: an agent holds a lock. */
static void look(int64_t *bytes, bool *locked, const char *folder, int depth)
{
    DIR *directory = depth < WIPE_DEPTH_MAX ? opendir(folder) : NULL;
    struct dirent *entry;
    struct stat info;
    dt_strbuf path;

    dt_strbuf_init(&path);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        int lock = -1;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", folder, entry->d_name);
        if (lstat(path.data, &info) != 0)
            continue;
        *bytes += (int64_t)info.st_blocks * 512;
        if (S_ISDIR(info.st_mode))
            look(bytes, locked, path.data, depth + 1);
        else if (depth == 2 && strcmp(entry->d_name, "agent.lock") == 0 &&
                 dt_file_lock(&lock, path.data, NULL) == DT_ERR_BUSY)
            *locked = true;
        if (lock >= 0)
            close(lock);
    }
    if (directory != NULL)
        closedir(directory);
    dt_strbuf_release(&path);
}

static int larger_first(const void *a, const void *b)
{
    const ended_run *x = a, *y = b;

    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

/* Sets *nodes to STATE/nodes and *run to RUN, of a path STATE/nodes/RUN or below it. */
static bool split(dt_strbuf *nodes, dt_strbuf *run, const char *path)
{
    const char *at = path[0] == '/' ? strstr(path, "/nodes/") : NULL;

    if (at == NULL || strstr(path, "/../") != NULL)
        return false;
    for (const char *next; (next = strstr(at + 1, "/nodes/")) != NULL;)
        at = next;
    dt_strbuf_add(nodes, path, (size_t)(at - path) + strlen("/nodes"));
    at += strlen("/nodes/");
    dt_strbuf_add(run, at, strcspn(at, "/"));
    return run->length > 0 && strcmp(run->data, ".") != 0 && strcmp(run->data, "..") != 0;
}

void dt_remote_helper_name_ended(dt_error *err, const char *folder)
{
    ended_run *found = calloc(RUNS_MOST, sizeof(*found));
    dt_strbuf nodes, run, text, path;
    struct dirent *entry;
    int64_t count = 0;
    DIR *directory = NULL;

    dt_strbuf_init(&nodes);
    dt_strbuf_init(&run);
    dt_strbuf_init(&text);
    dt_strbuf_init(&path);
    if (split(&nodes, &run, folder))
        directory = opendir(nodes.data);
    while (directory != NULL && found != NULL && count < RUNS_MOST &&
           (entry = readdir(directory)) != NULL) {
        ended_run *one = &found[count];
        bool locked = false;

        if (entry->d_name[0] == '.' || strcmp(entry->d_name, run.data) == 0 ||
            strlen(entry->d_name) >= sizeof(one->name))
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", nodes.data, entry->d_name);
        one->bytes = 0;
        look(&one->bytes, &locked, path.data, 0);
        if (locked)
            continue;
        snprintf(one->name, sizeof(one->name), "%s", entry->d_name);
        count++;
    }
    if (count > 0)
        qsort(found, (size_t)count, sizeof(*found), larger_first);
    for (int64_t i = 0; i < count && i < NAMED_MOST; i++)
        dt_strbuf_add_fmt(&text, "%s%s (%.1f MB)", i > 0 ? ", " : "", found[i].name,
                          (double)found[i].bytes / 1e6);
    if (count > NAMED_MOST)
        dt_strbuf_add_fmt(&text, " and %lld more", (long long)count - NAMED_MOST);
    if (count > 0) {
        dt_status code = err->code;
        char before[sizeof(err->message)];

        snprintf(before, sizeof(before), "%s", err->message);
        dt_error_clear(err);
        DT_FAIL(err, code,
                "%.1200s; ended runs have files in '%s': %s; 'dtrun rm' removes them with the run",
                before, nodes.data, text.data);
    }
    if (directory != NULL)
        closedir(directory);
    free(found);
    dt_strbuf_release(&nodes);
    dt_strbuf_release(&run);
    dt_strbuf_release(&text);
    dt_strbuf_release(&path);
}

dt_status dt_remote_helper_wipe(const char *folder, dt_error *err)
{
    dt_strbuf nodes, run, path;
    bool locked = false;
    int64_t bytes = 0;
    dt_status st = DT_OK;

    dt_strbuf_init(&nodes);
    dt_strbuf_init(&run);
    dt_strbuf_init(&path);
    if (!split(&nodes, &run, folder))
        DT_THROW(err, DT_ERR_USAGE, "wipe: not a run's folder on a node");
    dt_strbuf_add_fmt(&path, "%s/%s", nodes.data, run.data);
    look(&bytes, &locked, path.data, 0);
    if (locked)
        DT_THROW(err, DT_ERR_BUSY, "an agent still serves '%s'", path.data);
    DT_TRY(dt_file_remove_tree(path.data, err));
    printf("gone %lld\n", (long long)bytes);
out:
    dt_strbuf_release(&nodes);
    dt_strbuf_release(&run);
    dt_strbuf_release(&path);
    return st;
}
