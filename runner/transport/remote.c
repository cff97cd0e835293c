#define _GNU_SOURCE
#include "runner/transport/remote.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "runner/transport/connection_slots.h"

#include "base/banned.h"

#define SLOT_SECONDS       60.0
#define SLICE_MS           100 /* how soon `cancelled` is seen */
#define COMPLAINT_BYTES    8192
#define WAIT_SLICE_SECONDS 0.005
#define SSH_FAILED         255
#define END_SECONDS        5.0 /* that a command which was given up may take to end */

extern char **environ;

/* --- small things */

/* The end of what was written to stderr. */
static void read_problems(const dt_remote *remote, char *out, size_t size)
{
    off_t length = lseek(remote->problems, 0, SEEK_END);
    off_t from = length > (off_t)size - 1 ? length - ((off_t)size - 1) : 0;
    ssize_t got = pread(remote->problems, out, size - 1, from);

    out[got > 0 ? got : 0] = '\0';
    for (char *p = out; p < out + (got > 0 ? got : 0); p++)
        if (*p == '\0')
            *p = ' ';
}

/* The last line that is not the transport's own, where there is one. */
static const char *last_words(const dt_remote *remote, char *text)
{
    bool (*own)(const char *line) = remote->transport->says_itself;
    size_t length = strlen(text);
    char *line;

    for (;;) {
        while (length > 0 && (unsigned char)text[length - 1] <= ' ')
            text[--length] = '\0';
        line = strrchr(text, '\n');
        if (line == NULL || own == NULL || !own(line + 1))
            break;
        length = (size_t)(line - text);
        text[length] = '\0';
    }
    line = line != NULL ? line + 1 : text;
    for (char *p = line; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    return line;
}

/* Until the descriptor can be read or written. */
static dt_status wait_for(dt_remote *remote, short events, double deadline, dt_error *err)
{
    struct pollfd end = {remote->fd, events, 0};

    for (;;) {
        int count = poll(&end, 1, SLICE_MS);

        if (count > 0)
            return DT_OK;
        if (count < 0 && errno != EINTR)
            return DT_FAIL(err, DT_ERR_IO, "cannot wait for node '%s': %s", remote->node,
                           strerror(errno));
        if (remote->cancelled != NULL && atomic_load(remote->cancelled))
            return DT_FAIL(err, DT_ERR_BUSY, "node '%s': given up", remote->node);
        if (dt_clock_monotonic_seconds() > deadline)
            return DT_FAIL(err, DT_ERR_TIMEOUT, "node '%s': no answer in time", remote->node);
    }
}

/* False: it runs on. */
static bool reap(dt_remote *remote, int *code)
{
    int status;
    pid_t got = waitpid(remote->pid, &status, WNOHANG);

    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    remote->pid = 0;
    *code = got < 0 ? SSH_FAILED : WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return true;
}

/* --- opening */

static dt_status spawn(dt_remote *remote, const char **argv, dt_error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int ends[2] = {-1, -1}, problem;
    dt_status st = DT_OK;
    sigset_t none, pipe;

    sigemptyset(&none);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    remote->problems = memfd_create("problems", MFD_CLOEXEC);
    if (remote->problems < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot make the pipes to node '%s': %s", remote->node,
                 strerror(errno));
    remote->fd = ends[0];
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, remote->problems, STDERR_FILENO);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &pipe);
    problem = posix_spawnp(&remote->pid, argv[0], &actions, &attributes, (char **)argv, environ);
    if (problem != 0) {
        remote->pid = 0;
        DT_THROW(err, DT_ERR_IO, "cannot run '%s': %s", argv[0], strerror(problem));
    }
out:
    if (ends[1] >= 0)
        close(ends[1]);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return st;
}

/* It ended before our command ran. */
static dt_status ended_early(dt_remote *remote, dt_error *err)
{
    char complaint[COMPLAINT_BYTES];
    double deadline = dt_clock_monotonic_seconds() + 5.0;
    int code = SSH_FAILED;

    while (!reap(remote, &code) && dt_clock_monotonic_seconds() < deadline)
        dt_clock_sleep_seconds(WAIT_SLICE_SECONDS);
    read_problems(remote, complaint, sizeof(complaint));
    if (code == SSH_FAILED || remote->transport->says_itself != NULL)
        return remote->transport->explain(remote->node, complaint, err);
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "node '%s': its login shell ended with code %d instead of running a command: "
                   "%.300s (an account that may log in, and /bin/sh, are needed)",
                   remote->node, code,
                   last_words(remote, complaint[0] != '\0' ? complaint : remote->early.data));
}

/* Reads up to the mark; what came after it stays in `early`. */
static dt_status skip_noise(dt_remote *remote, double deadline, dt_error *err)
{
    static const char mark[] = "\n" DT_TRANSPORT_MARK "\n";
    char bytes[4096];
    const char *found;
    dt_status st;

    for (;;) {
        size_t got;

        st = wait_for(remote, POLLIN, deadline, NULL);
        if (st == DT_ERR_TIMEOUT && remote->transport->says_itself != NULL) {
            char complaint[COMPLAINT_BYTES];

            read_problems(remote, complaint, sizeof(complaint));
            return DT_FAIL(err, st, "node '%s': %s has begun nothing there after %.0f s: %.300s",
                           remote->node, remote->transport->kind, DT_REMOTE_OPEN_SECONDS,
                           last_words(remote, complaint));
        }
        if (st == DT_ERR_TIMEOUT)
            return DT_FAIL(err, st,
                           "node '%s': the connection stands, and after %.0f s its login shell has "
                           "run nothing: look at what ~/.profile and ~/.bashrc do there",
                           remote->node, DT_REMOTE_OPEN_SECONDS);
        if (st != DT_OK)
            return DT_FAIL(err, st, "node '%s': given up", remote->node);
        st = dt_remote_read(remote, bytes, sizeof(bytes), &got, 1.0, err);
        if (st != DT_OK)
            return st;
        if (got == 0)
            return ended_early(remote, err);
        dt_strbuf_add(&remote->early, bytes, got);
        found = memmem(remote->early.data, remote->early.length, mark, sizeof(mark) - 1);
        if (found != NULL) {
            dt_strbuf_remove_front(&remote->early,
                                   (size_t)(found - remote->early.data) + sizeof(mark) - 1);
            return DT_OK;
        }
        if (remote->early.length > DT_REMOTE_NOISE_BYTES)
            return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                           "node '%s': its login shell prints without end before it runs a "
                           "command: make ~/.bashrc silent where it is not interactive",
                           remote->node);
    }
}

dt_status dt_remote_open(dt_remote *out, const char *node, const char *const *words,
                         const atomic_bool *cancelled, dt_error *err)
{
    const char **argv;
    dt_status st = DT_OK;
    dt_arena arena;
    int slot = -1;

    *out = (dt_remote){.node = node, .cancelled = cancelled, .fd = -1, .problems = -1};
    dt_arena_init(&arena, 4096);
    dt_strbuf_init(&out->early);
    DT_TRY(dt_transport_find(&out->transport, node, err));
    DT_TRY(out->transport->command(&argv, node, words, &arena, err));
    if (out->transport->explain != NULL)
        DT_TRY(dt_connection_slot_take(&slot, SLOT_SECONDS, cancelled, err));
    DT_TRY(spawn(out, argv, err));
    if (out->transport->explain != NULL)
        DT_TRY(skip_noise(out, dt_clock_monotonic_seconds() + DT_REMOTE_OPEN_SECONDS, err));
out:
    if (slot >= 0)
        close(slot);
    if (st != DT_OK)
        dt_remote_close(out);
    dt_arena_release(&arena);
    return st;
}

/* What is given up there ends because its input does; it is waited for, so that nothing of it is
 * left when we say so. */
static void let_end(dt_remote *remote)
{
    double deadline = dt_clock_monotonic_seconds() + END_SECONDS;
    char bytes[4096];
    int code;

    if (remote->fd < 0 || remote->pid <= 0)
        return;
    dt_remote_write_end(remote);
    while (dt_clock_monotonic_seconds() < deadline && !reap(remote, &code)) {
        while (recv(remote->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
            ; /* nobody wants it */
        dt_clock_sleep_seconds(WAIT_SLICE_SECONDS);
    }
}

void dt_remote_close(dt_remote *remote)
{
    if (remote->node == NULL)
        return;
    if (remote->cancelled != NULL && atomic_load(remote->cancelled))
        let_end(remote);
    if (remote->fd >= 0)
        close(remote->fd);
    if (remote->pid > 0) {
        kill(remote->pid, SIGKILL);
        while (waitpid(remote->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (remote->problems >= 0)
        close(remote->problems);
    dt_strbuf_release(&remote->early);
    *remote = (dt_remote){.fd = -1, .problems = -1};
}

/* --- talking */

dt_status dt_remote_read(dt_remote *remote, void *bytes, size_t size, size_t *got,
                         double timeout_seconds, dt_error *err)
{
    dt_status st;
    ssize_t count;

    *got = 0;
    st = wait_for(remote, POLLIN, dt_clock_monotonic_seconds() + timeout_seconds, err);
    if (st != DT_OK)
        return st;
    do
        count = recv(remote->fd, bytes, size, 0);
    while (count < 0 && errno == EINTR);
    if (count < 0 && errno != ECONNRESET)
        return DT_FAIL(err, DT_ERR_PEER, "cannot read from node '%s': %s", remote->node,
                       strerror(errno));
    *got = count > 0 ? (size_t)count : 0;
    return DT_OK;
}

dt_status dt_remote_write(dt_remote *remote, const void *bytes, size_t length,
                          double timeout_seconds, dt_error *err)
{
    const char *at = bytes;

    while (length > 0) {
        double deadline = dt_clock_monotonic_seconds() + timeout_seconds;
        dt_status st = wait_for(remote, POLLOUT, deadline, err);
        ssize_t count;

        if (st != DT_OK)
            return st;
        count = send(remote->fd, at, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count < 0)
            return DT_FAIL(err, DT_ERR_PEER, "cannot write to node '%s': %s", remote->node,
                           strerror(errno));
        at += count;
        length -= (size_t)count;
    }
    return DT_OK;
}

void dt_remote_write_end(dt_remote *remote)
{
    shutdown(remote->fd, SHUT_WR);
}

dt_status dt_remote_finish(dt_remote *remote, int *code, dt_error *problem, double timeout_seconds,
                           dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + timeout_seconds;
    char complaint[COMPLAINT_BYTES];
    int ended = 0;

    dt_remote_write_end(remote);
    while (!reap(remote, &ended)) {
        if (remote->cancelled != NULL && atomic_load(remote->cancelled))
            return DT_FAIL(err, DT_ERR_BUSY, "node '%s': given up", remote->node);
        if (dt_clock_monotonic_seconds() > deadline)
            return DT_FAIL(err, DT_ERR_TIMEOUT, "node '%s': the command does not end",
                           remote->node);
        dt_clock_sleep_seconds(WAIT_SLICE_SECONDS);
    }
    read_problems(remote, complaint, sizeof(complaint));
    if (remote->transport->explain != NULL &&
        (ended == SSH_FAILED || (ended != 0 && remote->transport->broke_off != NULL &&
                                 remote->transport->broke_off(complaint))))
        return remote->transport->explain(remote->node, complaint, err);
    if (code != NULL) {
        *code = ended;
        if (ended != 0)
            DT_FAIL(problem, DT_ERR_IO, "%.400s", last_words(remote, complaint));
    } else if (ended != 0)
        return DT_FAIL(err, DT_ERR_PEER, "node '%s': %.400s (code %d)", remote->node,
                       last_words(remote, complaint), ended);
    return DT_OK;
}

void dt_remote_print_problems(const dt_remote *remote, int fd)
{
    char complaint[COMPLAINT_BYTES];
    const char *line = complaint, *end;

    read_problems(remote, complaint, sizeof(complaint));
    for (; *line != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n' ? 1 : 0;
        if (remote->transport->says_itself == NULL || !remote->transport->says_itself(line))
            (void)dt_file_write_all(fd, line, (size_t)(end - line), NULL);
    }
}

dt_status dt_remote_ask(dt_strbuf *answer, const char *node, const char *const *words,
                        const void *input, size_t input_length, size_t max_bytes,
                        double timeout_seconds, int *code, dt_error *problem,
                        const atomic_bool *cancelled, dt_error *err)
{
    char bytes[16384];
    dt_remote remote;
    dt_status st;
    size_t got;

    dt_strbuf_reset(answer);
    st = dt_remote_open(&remote, node, words, cancelled, err);
    if (st != DT_OK)
        return st;
    /* A command that ends before it has read all says why by its exit. */
    if (dt_remote_write(&remote, input, input_length, timeout_seconds, NULL) == DT_ERR_BUSY)
        DT_THROW(err, DT_ERR_BUSY, "node '%s': given up", node);
    dt_remote_write_end(&remote);
    dt_strbuf_add(answer, remote.early.data, remote.early.length);
    do {
        DT_TRY(dt_remote_read(&remote, bytes, sizeof(bytes), &got, timeout_seconds, err));
        dt_strbuf_add(answer, bytes, got);
        if (answer->length > max_bytes)
            DT_THROW(err, DT_ERR_CORRUPT, "node '%s' answered with more than %zu bytes", node,
                     max_bytes);
    } while (got > 0);
    DT_TRY(dt_remote_finish(&remote, code, problem, timeout_seconds, err));
out:
    dt_remote_close(&remote);
    return st;
}
