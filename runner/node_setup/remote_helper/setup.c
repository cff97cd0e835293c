/* setup: runs the setup command of a recipe once for each content of its folder.
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

#include "base/alloc.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/proc_end.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/remote_helper/sent_tree.h"

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

static const char *within(setting *all, const char *name)
{
    return dt_arena_printf(&all->arena, "%s/%s", all->entry, name);
}

/* The mark is the same for all runs that need this setup: only the one with the lock has processes. */
static void set_mark(setting *all)
{
    snprintf(all->mark, sizeof(all->mark), MARK "=%s", basename(all->entry));
}

/* --- the caller */

/* Waits up to `ms` for `fd` (-1: none); returns true if the caller is gone. *ready: fd can be read. */
static bool is_abandoned(int fd, int ms, bool *ready)
{
    struct pollfd all[] = {{STDIN_FILENO, POLLIN, 0}, {fd, POLLIN, 0}};
    char byte;

    *ready = false;
    if (poll(all, 2, ms) < 0)
        return false;
    *ready = (all[1].revents & (POLLIN | POLLHUP)) != 0;
    return all[0].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void say(const char *line)
{
    puts(line);
    fflush(stdout);
}

static void say_log(const char *bytes, size_t length)
{
    printf("log %zu\n", length);
    fwrite(bytes, 1, length, stdout);
    fflush(stdout);
}

static void say_kept_log(setting *all)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (dt_file_read(&text, within(all, "log"), (size_t)LOG_BYTES + PIECE_BYTES, NULL) == DT_OK &&
        text.length > 0)
        say_log(text.data, text.length);
    dt_strbuf_release(&text);
}

static dt_status take_lock(setting *all, dt_error *err)
{
    bool told = false, ready;
    dt_status st;

    while ((st = dt_file_lock(&all->lock, within(all, "lock"), err)) == DT_ERR_BUSY) {
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

static char **make_environment(setting *all, const char *folder)
{
    json_t *more = json_object_get(all->request, "env"), *value;
    size_t count = 0;
    char **out;
    const char *name;

    while (environ[count] != NULL)
        count++;
    out = dt_arena_alloc_array(&all->arena, count + json_object_size(more) + 3, sizeof(out[0]));
    memcpy(out, environ, count * sizeof(out[0]));
    json_object_foreach(more, name, value)
        set_variable(out, &count, name, json_string_value(value), &all->arena);
    set_variable(out, &count, "PWD", folder, &all->arena);
    set_variable(out, &count, MARK, all->mark + strlen(MARK) + 1, &all->arena);
    out[count] = NULL;
    return out;
}

static dt_status start(setting *all, dt_child *child, const char *folder, const char *command,
                       int out, dt_error *err)
{
    bool login =
        json_is_true(json_object_get(all->request, "login")) && access("/bin/bash", X_OK) == 0;
    const char *const by_bash[] = {"bash", "-l", "-c", command, NULL};
    const char *const by_sh[] = {"sh", "-c", command, NULL};

    if (access(folder, X_OK) != 0)
        return DT_FAIL(err, DT_ERR_IO, "setup: cannot run in the folder '%s': %s", folder,
                       strerror(errno));
    return dt_child_start(child,
                          &(dt_child_spec){.argv = login ? by_bash : by_sh,
                                           .program = login ? "/bin/bash" : "/bin/sh",
                                           .environment = make_environment(all, folder),
                                           .folder = folder,
                                           .out = out,
                                           .errors = out,
                                           .follows = true,
                                           .detached = true},
                          err);
}

static void keep_output(setting *all, const char *bytes, size_t length)
{
    if (all->logged < LOG_BYTES)
        (void)dt_file_write_all(all->log, bytes, length, NULL);
    if (all->logged < LOG_BYTES && all->logged + (int64_t)length >= LOG_BYTES)
        (void)dt_file_write_all(all->log, "\n[the rest is not kept]\n", 24, NULL);
    all->logged += (int64_t)length;
    if (all->logged < LOG_BYTES)
        say_log(bytes, length);
}

/* Passes the output on until the command has ended and its pipe is empty. */
static dt_status attend(setting *all, dt_child *child, int out, int *code, dt_error *err)
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
                keep_output(all, piece, (size_t)got);
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

static dt_status run_command(setting *all, const char *folder, int *code, dt_error *err)
{
    const char *command = json_string_value(json_object_get(all->request, "command"));
    dt_status st = DT_OK;
    int ends[2] = {-1, -1};
    dt_child child = {0};

    all->log = open(within(all, "log"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (all->log < 0 || pipe2(ends, O_CLOEXEC) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", within(all, "log"), strerror(errno));
    (void)dt_proc_end_all("environ", has_mark, all->mark, END_SECONDS); /* of one that was killed */
    DT_TRY(start(all, &child, folder, command, ends[1], err));
    close(ends[1]);
    ends[1] = -1;
    DT_TRY(attend(all, &child, ends[0], code, err));
out:
    dt_child_end(&child);
    /* whatever it started in the background too: nothing of it may run when ranks are started, or after a stop */
    if (dt_proc_end_all("environ", has_mark, all->mark, END_SECONDS) > 0 && st == DT_OK)
        st = DT_FAIL(err, DT_ERR_IO, "cannot end the processes that the setup command started");
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    return st;
}

/* --- the copy */

static dt_status run_in_copy(setting *all, dt_sent_tree *sent, int *code, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf cache;

    dt_strbuf_init(&cache);
    DT_TRY(dt_file_remove_tree(all->tree, err)); /* of a setup that failed or was stopped */
    DT_TRY(dt_remote_helper_cache(&cache, err));
    DT_TRY(dt_sent_tree_copy(all->tree, sent, cache.data, err));
    DT_TRY(run_command(all, all->tree, code, err));
out:
    dt_strbuf_release(&cache);
    return st;
}

static dt_status run(setting *all, int *code, dt_error *err)
{
    bool copied = strcmp(all->folder, "-") != 0;
    const char *folder = json_string_value(json_object_get(all->request, "folder"));
    dt_sent_tree sent = {0};
    dt_status st = DT_OK;

    if (folder == NULL || json_string_value(json_object_get(all->request, "command")) == NULL)
        DT_THROW(err, DT_ERR_USAGE, "setup: not a request");
    DT_TRY(dt_file_make_dirs(all->entry, 0700, err));
    (void)utimensat(AT_FDCWD, all->entry, NULL, 0); /* so that prune.c sees it as used */
    DT_TRY(take_lock(all, err));
    if (copied)
        dt_sent_tree_read(&sent, all->folder, &all->arena);
    if (dt_file_exists(within(all, "done"))) {
        say("cached");
        say_kept_log(all);
    } else {
        DT_TRY(copied ? run_in_copy(all, &sent, code, err) : run_command(all, folder, code, err));
        if (*code != 0)
            goto out;
        DT_TRY(dt_file_write_atomic(within(all, "done"), "", 0, 0600, err));
    }
    if (copied)
        DT_TRY(dt_sent_tree_overlay(&sent, all->tree, &all->arena, err));
out:
    if (copied)
        dt_sent_tree_release(&sent);
    return st;
}

dt_status dt_remote_helper_setup(const char *entry, const char *folder, dt_error *err)
{
    setting all = {.entry = entry, .folder = folder, .lock = -1, .log = -1};
    dt_status st = DT_OK;
    int code = 0;

    dt_arena_init(&all.arena, 0);
    set_mark(&all);
    all.tree = within(&all, "tree");
    DT_TRY(dt_remote_helper_request(&all.request, "setup", REQUEST_BYTES, err));
    DT_TRY(run(&all, &code, err));
    printf("end %d\n", code);
out:
    if (all.log >= 0)
        close(all.log);
    if (all.lock >= 0)
        close(all.lock);
    json_decref(all.request);
    dt_arena_release(&all.arena);
    return st;
}

dt_status dt_remote_helper_end_setup(const char *entry, dt_error *err)
{
    setting all = {.entry = entry, .lock = -1};
    dt_status st = DT_OK;

    dt_arena_init(&all.arena, 0);
    set_mark(&all);
    if (!dt_file_exists(entry))
        goto out;
    st = dt_file_lock(&all.lock, within(&all, "lock"), err);
    if (st == DT_ERR_BUSY) { /* of another run, or it ends its processes itself */
        dt_error_clear(err);
        st = DT_OK;
    } else if (st == DT_OK && dt_proc_end_all("environ", has_mark, all.mark, END_SECONDS) > 0) {
        st = DT_FAIL(err, DT_ERR_IO, "cannot end the processes that the setup command started");
    }
out:
    if (all.lock >= 0)
        close(all.lock);
    dt_arena_release(&all.arena);
    return st;
}
