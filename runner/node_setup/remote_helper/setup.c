/* setup: runs the setup command of a recipe once for each content of its folder, in a copy of the run's
 * folder.
 *
 * ENTRY is CACHE/setups/KEY, where KEY stands for command and content. It has the files `log`, `done` (made after the
 * command ended with code 0), `lock` and, for a folder that was sent, `tree`: a copy of it in which the command runs.
 * What the command creates there appears in the run's FOLDER as links, and what it changes as copies, so that later
 * runs with the same content use it too. Without a copy (FOLDER "-") the command runs in the folder that the request
 * names.
 *
 * Stdin has a line of JSON, {"command", "login", "folder", "env": {NAME: value}}, and stays open: its end ends the
 * command and everything that it started, which the mark in their environment shows. Stdout has lines: "wait" (another
 * run has the lock), "cached", "log N" and N bytes, and at last "end CODE", with a negative number for a signal.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/remote_helper/sent_tree.h"
#include "runner/node_setup/workdir/contents.h"

/* setup_files: gives a setup a copy of the run's folder, and the run's folder what the setup made. */

#define DEPTH_MAX 200

/* --- the copy */

static dt_status copy_entry(const char *path, const dt_tree_entry *entry, dt_sent_tree *from,
                            const char *cache, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    if (entry->kind == DT_TREE_FILE && dt_sent_tree_state(from, entry->path) == DT_SENT_PLACED) {
        dt_strbuf_add_fmt(&text, "%s/%s", from->folder, entry->path);
        st = dt_contents_copy_file(path, text.data, entry->mode, entry->time_ns, err);
    } else {
        dt_strbuf_add_fmt(&text, "%s" DT_SENT_TREE_PLACING, path);
        st = dt_sent_tree_place(path, text.data, entry, cache, false, err);
    }
    dt_strbuf_release(&text);
    return st;
}

/* Copies into `folder`, which does not exist, what was sent: from the run's folder, else from the store. */
static dt_status sent_tree_copy(const char *folder, dt_sent_tree *from, const char *cache,
                                dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    for (int64_t i = 0; i < from->sent.count; i++) {
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", folder, from->sent.entries[i].path);
        DT_TRY(copy_entry(path.data, &from->sent.entries[i], from, cache, err));
    }
out:
    dt_strbuf_release(&path);
    return st;
}

/* --- what the setup made */

typedef struct overlaying {
    dt_sent_tree *tree;
    const char *from;
    dt_tree made; /* what is in the run's folder now */
    int64_t capacity;
    dt_arena *arena;
} overlaying;

static void note(overlaying *overlay, dt_tree_entry entry)
{
    overlay->made.entries = dt_array_room(overlay->made.entries, overlay->made.count + 1,
                                          &overlay->capacity, sizeof(entry));
    overlay->made.entries[overlay->made.count++] = entry;
}

static bool is_empty(const char *path)
{
    struct dirent *entry;
    DIR *directory = opendir(path);
    int count = 0;

    while (directory != NULL && (entry = readdir(directory)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (directory != NULL)
        closedir(directory);
    return count == 0;
}

/* Notes what the setup created: a link in the run's folder, or a folder if it is empty, so that the run can write
 * there. */
static void find_new(overlaying *overlay, const char *path, const char *there)
{
    bool folder;
    struct stat info;

    if (lstat(there, &info) != 0 || dt_sent_tree_state(overlay->tree, path) != DT_SENT_ABSENT)
        return;
    folder = S_ISDIR(info.st_mode) && is_empty(there);
    note(overlay, (dt_tree_entry){.kind = folder ? DT_TREE_FOLDER : DT_TREE_LINK,
                                  .path = dt_arena_strdup(overlay->arena, path),
                                  .target = folder ? NULL : dt_arena_strdup(overlay->arena, there),
                                  .mode = (int64_t)(info.st_mode & 0777)});
}

/* Notes a file that the setup changed, unless the command changed it too. */
static void find_changed(overlaying *overlay, const dt_tree_entry *sent, const char *there)
{
    dt_tree_entry now = *sent;
    struct stat info;

    if (lstat(there, &info) != 0 || !S_ISREG(info.st_mode))
        return;
    now.mode = (int64_t)(info.st_mode & 0777);
    now.bytes = now.disk_bytes = info.st_size;
    now.time_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    if ((now.bytes != sent->bytes || now.time_ns != sent->time_ns) &&
        dt_sent_tree_state(overlay->tree, sent->path) == DT_SENT_PLACED)
        note(overlay, now);
}

static void find(overlaying *overlay, const char *below, int depth)
{
    struct dirent *entry;
    dt_strbuf path, there;
    DIR *dir;

    dt_strbuf_init(&path);
    dt_strbuf_init(&there);
    dt_strbuf_add_fmt(&there, "%s/%s", overlay->from, below);
    dir = depth < DEPTH_MAX ? opendir(there.data) : NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const dt_tree_entry *known;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_reset(&there);
        dt_strbuf_add_fmt(&path, "%s%s%s", below, below[0] != '\0' ? "/" : "", entry->d_name);
        dt_strbuf_add_fmt(&there, "%s/%s", overlay->from, path.data);
        known = dt_tree_find(&overlay->tree->sent, path.data);
        if (known == NULL)
            find_new(overlay, path.data, there.data);
        else if (known->kind == DT_TREE_FOLDER)
            find(overlay, path.data, depth + 1);
        else if (known->kind == DT_TREE_FILE)
            find_changed(overlay, known, there.data);
    }
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&path);
    dt_strbuf_release(&there);
}

static dt_status add_made(const overlaying *overlay, const dt_tree_entry *made, dt_error *err)
{
    dt_strbuf there, here, unfinished;
    dt_status st = DT_OK;

    dt_strbuf_init(&there);
    dt_strbuf_init(&here);
    dt_strbuf_init(&unfinished);
    dt_strbuf_add_fmt(&here, "%s/%s", overlay->tree->folder, made->path);
    dt_strbuf_add_fmt(&there, "%s/%s", overlay->from, made->path);
    dt_strbuf_add_fmt(&unfinished, "%s" DT_SENT_TREE_PLACING, overlay->tree->folder);
    unlink(unfinished.data);
    if (made->kind != DT_TREE_FILE) {
        DT_TRY(dt_sent_tree_place(here.data, unfinished.data, made, "", false, err));
        goto out;
    }
    DT_TRY(dt_contents_copy_file(unfinished.data, there.data, made->mode, made->time_ns, err));
    if (rename(unfinished.data, here.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot place '%s': %s", here.data, strerror(errno));
out:
    dt_strbuf_release(&there);
    dt_strbuf_release(&here);
    dt_strbuf_release(&unfinished);
    return st;
}

static int by_path(const void *a, const void *b)
{
    return dt_tree_order(((const dt_tree_entry *)a)->path, ((const dt_tree_entry *)b)->path);
}

/* Adds to the run's folder what a setup created in `from` (as links) and what it changed there (as copies), and writes
 * FOLDER.setup. The document is written first: what an interrupted overlay has made is known to be placed. */
static dt_status sent_tree_overlay(dt_sent_tree *tree, const char *from, dt_arena *arena,
                                   dt_error *err)
{
    overlaying overlay = {.tree = tree, .from = from, .arena = arena};
    const char *record = dt_arena_printf(arena, "%s" DT_SENT_TREE_SETUP, tree->folder);
    dt_status st = DT_OK;

    find(&overlay, "", 0);
    if (overlay.made.count == 0)
        goto out;
    qsort(overlay.made.entries, (size_t)overlay.made.count, sizeof(overlay.made.entries[0]),
          by_path);
    DT_TRY(dt_tree_write(&overlay.made, record, err));
    for (int64_t i = 0; i < overlay.made.count; i++)
        DT_TRY(add_made(&overlay, &overlay.made.entries[i], err));
out:
    free(overlay.made.entries);
    return st;
}

#define REQUEST_BYTES ((size_t)4 << 20)
#define LOG_BYTES     ((int64_t)16 << 20) /* what is kept of the output */
#define PIECE_BYTES   65536
#define WAIT_MS       200
#define END_SECONDS   10.0
#define MARK          "DTRUN_SETUP"

extern char **environ;

typedef struct setting {
    const char *entry, *folder; /* folder: of the run; "-": none */
    const char *tree;           /* ENTRY/tree */
    json_t *request;
    char mark[256]; /* MARK=value, in the environment of all its processes */
    int lock, log;
    int64_t logged;
    dt_arena arena;
} setting;

static const char *within(setting *setup, const char *name)
{
    return dt_arena_printf(&setup->arena, "%s/%s", setup->entry, name);
}

/* The mark is the same for all runs that need this setup: only the one with the lock has processes. */
static void set_mark(setting *setup)
{
    snprintf(setup->mark, sizeof(setup->mark), MARK "=%s", basename(setup->entry));
}

/* --- the caller */

/* Waits up to `ms` for `fd` (-1: none); returns true if the caller is gone. *ready: fd can be read. */
static bool is_abandoned(int fd, int ms, bool *ready)
{
    struct pollfd descriptors[] = {{STDIN_FILENO, POLLIN, 0}, {fd, POLLIN, 0}};
    char byte;

    *ready = false;
    if (poll(descriptors, 2, ms) < 0)
        return false;
    *ready = (descriptors[1].revents & (POLLIN | POLLHUP)) != 0;
    return descriptors[0].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void say(const char *line)
{
    puts(line);
    fflush(stdout);
}

static void write_log(const char *bytes, size_t length)
{
    printf("log %zu\n", length);
    fwrite(bytes, 1, length, stdout);
    fflush(stdout);
}

static void write_kept_log(setting *setup)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (dt_file_read(&text, within(setup, "log"), (size_t)LOG_BYTES + PIECE_BYTES, NULL) == DT_OK &&
        text.length > 0)
        write_log(text.data, text.length);
    dt_strbuf_release(&text);
}

static dt_status take_lock(setting *setup, dt_error *err)
{
    bool told = false, ready;
    dt_status st;

    while ((st = dt_file_lock(&setup->lock, within(setup, "lock"), err)) == DT_ERR_BUSY) {
        dt_error_clear(err);
        if (!told)
            say("wait");
        told = true;
        if (is_abandoned(-1, WAIT_MS, &ready))
            return DT_FAIL(err, DT_ERR_PEER, "setup: stopped");
    }
    return st;
}

/* --- the command */

static bool has_mark(const void *context, char state, const char *words, size_t length)
{
    const char *mark = context, *end = words + length;

    for (; words < end; words += strnlen(words, (size_t)(end - words)) + 1)
        if (strncmp(words, mark, strlen(mark) + 1) == 0)
            return true;
    return false;
}

/* Adds NAME=value, in place of an earlier value. */
static void set_variable(char **environment, size_t *count, const char *name, const char *value,
                         dt_arena *arena)
{
    size_t length = strlen(name), at = 0;

    while (at < *count &&
           !(strncmp(environment[at], name, length) == 0 && environment[at][length] == '='))
        at++;
    environment[at] = dt_arena_printf(arena, "%s=%s", name, value);
    *count += at == *count ? 1 : 0;
}

static char **make_environment(setting *setup, const char *folder)
{
    json_t *more = json_object_get(setup->request, "env"), *value;
    size_t count = 0;
    char **out;
    const char *name;

    while (environ[count] != NULL)
        count++;
    out = dt_arena_alloc_array(&setup->arena, count + json_object_size(more) + 3, sizeof(out[0]));
    memcpy(out, environ, count * sizeof(out[0]));
    json_object_foreach(more, name, value)
        set_variable(out, &count, name, json_string_value(value), &setup->arena);
    set_variable(out, &count, "PWD", folder, &setup->arena);
    set_variable(out, &count, MARK, setup->mark + strlen(MARK) + 1, &setup->arena);
    out[count] = NULL;
    return out;
}

static dt_status start(setting *setup, dt_child *child, const char *folder, const char *command,
                       int out, dt_error *err)
{
    bool login =
        json_is_true(json_object_get(setup->request, "login")) && access("/bin/bash", X_OK) == 0;
    const char *const by_bash[] = {"bash", "-l", "-c", command, NULL};
    const char *const by_sh[] = {"sh", "-c", command, NULL};

    if (access(folder, X_OK) != 0)
        return DT_FAIL(err, DT_ERR_IO, "setup: cannot run in the folder '%s': %s", folder,
                       strerror(errno));
    return dt_child_start(child,
                          &(dt_child_spec){.argv = login ? by_bash : by_sh,
                                           .program = login ? "/bin/bash" : "/bin/sh",
                                           .environment = make_environment(setup, folder),
                                           .folder = folder,
                                           .out = out,
                                           .errors = out,
                                           .follows = true,
                                           .detached = true},
                          err);
}

static void keep_output(setting *setup, const char *bytes, size_t length)
{
    if (setup->logged < LOG_BYTES)
        (void)dt_file_write_all(setup->log, bytes, length, NULL);
    if (setup->logged < LOG_BYTES && setup->logged + (int64_t)length >= LOG_BYTES)
        (void)dt_file_write_all(setup->log, "\n[the rest is not kept]\n", 24, NULL);
    setup->logged += (int64_t)length;
    if (setup->logged < LOG_BYTES)
        write_log(bytes, length);
}

/* Passes the output on until the command has ended and its pipe is empty. */
static dt_status attend(setting *setup, dt_child *child, int out, int *code, dt_error *err)
{
    char *piece = dt_malloc(PIECE_BYTES);
    bool ended = false, open_pipe = true;
    dt_status st = DT_OK;

    while (!ended || open_pipe) {
        bool ready = false;

        if (is_abandoned(open_pipe ? out : -1, ended ? 0 : WAIT_MS, &ready))
            DT_THROW(err, DT_ERR_PEER, "setup: stopped");
        if (ready) {
            ssize_t got = read(out, piece, PIECE_BYTES);

            if (got > 0)
                keep_output(setup, piece, (size_t)got);
            open_pipe = got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
        } else if (ended) {
            break; /* a process that was left holds the pipe */
        }
        if (!ended)
            ended = dt_child_has_ended(child, code);
    }
out:
    free(piece);
    return st;
}

static dt_status run_command(setting *setup, const char *folder, int *code, dt_error *err)
{
    const char *command = json_string_value(json_object_get(setup->request, "command"));
    dt_status st = DT_OK;
    int ends[2] = {-1, -1};
    dt_child child = {0};

    setup->log = open(within(setup, "log"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (setup->log < 0 || pipe2(ends, O_CLOEXEC) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", within(setup, "log"), strerror(errno));
    (void)dt_proc_end_all("environ", has_mark, setup->mark,
                          END_SECONDS); /* processes of a setup that was killed */
    DT_TRY(start(setup, &child, folder, command, ends[1], err));
    close(ends[1]);
    ends[1] = -1;
    DT_TRY(attend(setup, &child, ends[0], code, err));
out:
    dt_child_end(&child);
    /* whatever it started in the background too: nothing of it may run when ranks are started, or after a stop */
    if (dt_proc_end_all("environ", has_mark, setup->mark, END_SECONDS) > 0 && st == DT_OK)
        st = DT_FAIL(err, DT_ERR_IO, "cannot end the processes that the setup command started");
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    return st;
}

/* --- the copy */

static dt_status run_in_copy(setting *setup, dt_sent_tree *sent, int *code, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf cache;

    dt_strbuf_init(&cache);
    DT_TRY(dt_file_remove_tree(setup->tree, err)); /* files of a setup that failed or was stopped */
    DT_TRY(dt_remote_helper_cache(&cache, err));
    DT_TRY(sent_tree_copy(setup->tree, sent, cache.data, err));
    DT_TRY(run_command(setup, setup->tree, code, err));
out:
    dt_strbuf_release(&cache);
    return st;
}

static dt_status run(setting *setup, int *code, dt_error *err)
{
    bool copied = strcmp(setup->folder, "-") != 0;
    const char *folder = json_string_value(json_object_get(setup->request, "folder"));
    dt_sent_tree sent = {0};
    dt_status st = DT_OK;

    if (folder == NULL || json_string_value(json_object_get(setup->request, "command")) == NULL)
        DT_THROW(err, DT_ERR_USAGE, "setup: not a request");
    DT_TRY(dt_file_make_dirs(setup->entry, 0700, err));
    (void)utimensat(AT_FDCWD, setup->entry, NULL, 0); /* so that cache.c sees it as used */
    DT_TRY(take_lock(setup, err));
    if (copied)
        dt_sent_tree_read(&sent, setup->folder, &setup->arena);
    if (dt_file_exists(within(setup, "done"))) {
        say("cached");
        write_kept_log(setup);
    } else {
        DT_TRY(copied ? run_in_copy(setup, &sent, code, err)
                      : run_command(setup, folder, code, err));
        if (*code != 0)
            goto out;
        DT_TRY(dt_file_write_atomic(within(setup, "done"), "", 0, 0600, err));
    }
    if (copied)
        DT_TRY(sent_tree_overlay(&sent, setup->tree, &setup->arena, err));
out:
    if (copied)
        dt_sent_tree_release(&sent);
    return st;
}

dt_status dt_remote_helper_setup(const char *entry, const char *folder, dt_error *err)
{
    setting setup = {.entry = entry, .folder = folder, .lock = -1, .log = -1};
    dt_status st = DT_OK;
    int code = 0;

    dt_arena_init(&setup.arena, 0);
    set_mark(&setup);
    setup.tree = within(&setup, "tree");
    DT_TRY(dt_remote_helper_request(&setup.request, "setup", REQUEST_BYTES, err));
    DT_TRY(run(&setup, &code, err));
    printf("end %d\n", code);
out:
    if (setup.log >= 0)
        close(setup.log);
    if (setup.lock >= 0)
        close(setup.lock);
    json_decref(setup.request);
    dt_arena_release(&setup.arena);
    return st;
}

dt_status dt_remote_helper_end_setup(const char *entry, dt_error *err)
{
    setting setup = {.entry = entry, .lock = -1};
    dt_status st = DT_OK;

    dt_arena_init(&setup.arena, 0);
    set_mark(&setup);
    if (!dt_file_exists(entry))
        goto out;
    st = dt_file_lock(&setup.lock, within(&setup, "lock"), err);
    if (st ==
        DT_ERR_BUSY) { /* another run holds the lock, or the setup ends its processes itself */
        dt_error_clear(err);
        st = DT_OK;
    } else if (st == DT_OK && dt_proc_end_all("environ", has_mark, setup.mark, END_SECONDS) > 0) {
        st = DT_FAIL(err, DT_ERR_IO, "cannot end the processes that the setup command started");
    }
out:
    if (setup.lock >= 0)
        close(setup.lock);
    dt_arena_release(&setup.arena);
    return st;
}
