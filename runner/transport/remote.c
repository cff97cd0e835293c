/* remote: runs a command on a node: from the start of the transport's program until the command runs,
 * closing, and a whole command with a short answer in one call. */
#include "runner/transport/remote.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/times.h"
#include "runner/transport/transport_int.h"

#define SLOT_SECONDS 60.0
#define TRIES_LEAST  4   /* tries of a server that refuses connections, however long they take */
#define END_SECONDS  5.0 /* time limit for a cancelled command to end */
#define LOOK_SECONDS 0.1 /* interval of the tests whether a new connection is authenticated */

static dt_status spawn(dt_remote *remote, const char **argv, dt_error *err)
{
    int ends[2] = {-1, -1};
    dt_status st = DT_OK;

    remote->problems = memfd_create("problems", MFD_CLOEXEC);
    if (remote->problems < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot create the pipes to node '%s': %s", remote->node,
                 strerror(errno));
    remote->fd = ends[0];
    DT_TRY(dt_child_start(
        &remote->child,
        &(dt_child_spec){.argv = argv, .in = ends[1], .out = ends[1], .errors = remote->problems},
        err));
    if (remote->transport->spares_group)
        dt_child_spare_group(&remote->child);
out:
    if (ends[1] >= 0)
        close(ends[1]);
    return st;
}

/* Fails with the reason why the transport or the login shell ended before the command ran. */
static dt_status ended_early(dt_remote *remote, dt_error *err)
{
    char complaint[DT_REMOTE_COMPLAINT_BYTES], end[DT_EXIT_WORDS_BYTES];
    double deadline = dt_clock_monotonic_seconds() + 5.0;
    const char *words;
    int code = DT_REMOTE_SSH_FAILED;

    while (!dt_remote_reap(remote, &code) && dt_clock_monotonic_seconds() < deadline)
        dt_clock_sleep_seconds(DT_REMOTE_END_SLICE_SECONDS);
    dt_remote_read_problems(remote, complaint, sizeof(complaint));
    remote->refused = remote->transport->is_refused != NULL && code == DT_REMOTE_SSH_FAILED &&
                      remote->transport->is_refused(complaint);
    if (code < 0)
        return dt_remote_fail_local(remote, code, err);
    if (code == DT_REMOTE_SSH_FAILED || remote->transport->is_transport_line != NULL)
        return remote->transport->explain(remote->node, complaint, err);
    words = dt_remote_last_words(remote, complaint[0] != '\0' ? complaint : remote->got.data);
    if (dt_remote_lacks_processes(words))
        return DT_FAIL(err, DT_ERR_PEER,
                       "node '%s' cannot start processes: %.300s (look at the limit of processes "
                       "of the account, and at the node's memory)",
                       remote->node, words);
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "node '%s': its login shell %s instead of running a command%s%.300s (a start-up "
                   "file such as ~/.bashrc must not exit; the account needs a login shell, and "
                   "/bin/sh)",
                   remote->node, dt_exit_words(end, code), words[0] != '\0' ? ": " : "", words);
}

/* --- slots */

/* The slot that a new connection holds (transport_int.h). */
typedef struct turn {
    int slot;           /* -1: no slot is held */
    const char *socket; /* control socket of the connection that commands share; NULL: not shared */
    bool stood;         /* the shared connection was open before this command */
} turn;

bool dt_remote_is_open(const char *socket_path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    bool good;
    int fd;

    if (socket_path == NULL || strlen(socket_path) >= sizeof(at.sun_path))
        return false;
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", socket_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    good = fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

static dt_status take_turn(turn *out, const dt_remote *remote, const char *const *argv,
                           dt_error *err)
{
    const dt_transport *transport = remote->transport;

    *out = (turn){.slot = -1};
    if (transport->explain == NULL)
        return DT_OK;
    out->socket = transport->shared_socket != NULL ? transport->shared_socket(argv) : NULL;
    out->stood = dt_remote_is_open(out->socket);
    return out->stood ? DT_OK
                      : dt_connection_slot_take(&out->slot, SLOT_SECONDS, remote->cancelled, err);
}

static void give_back(turn *one)
{
    if (one->slot >= 0)
        close(one->slot);
    one->slot = -1;
}

/* Waits for output of the login shell, and releases the slot once the connection is authenticated. */
static dt_status wait_for_login(dt_remote *remote, turn *one, double deadline)
{
    for (;;) {
        double look = dt_clock_monotonic_seconds() + LOOK_SECONDS;
        bool waits = one->slot >= 0 && one->socket != NULL && look < deadline;
        dt_status st = dt_remote_wait(remote, POLLIN, waits ? look : deadline, NULL);

        if (st != DT_ERR_TIMEOUT || !waits)
            return st;
        if (dt_remote_is_open(one->socket))
            give_back(one);
    }
}

/* --- until the command runs */

/* Fails because the command did not start in time. connected: ssh has signed in, and the rest is up to the node. */
static dt_status not_started(dt_remote *remote, bool connected, dt_error *err)
{
    char complaint[DT_REMOTE_COMPLAINT_BYTES];
    const char *words;

    remote->connected = connected;
    if (connected)
        return DT_FAIL(err, DT_ERR_TIMEOUT,
                       "node '%s': connected, but its login shell has not run the command after "
                       "%.0f s: check ~/.profile and ~/.bashrc there",
                       remote->node, DT_REMOTE_OPEN_SECONDS);
    dt_remote_read_problems(remote, complaint, sizeof(complaint));
    words = dt_remote_last_words(remote, complaint);
    return DT_FAIL(err, DT_ERR_TIMEOUT,
                   "node '%s': ssh has not started the command after %.0f s%s%.300s: try 'ssh -v "
                   "%s true'",
                   remote->node, DT_REMOTE_OPEN_SECONDS, words[0] != '\0' ? ": " : "", words,
                   remote->node);
}

/* Reads and drops output up to the mark; what follows the mark stays in `got`. */
static dt_status skip_noise(dt_remote *remote, turn *one, double deadline, dt_error *err)
{
    static const char mark[] = "\n" DT_TRANSPORT_MARK "\n";
    char bytes[4096];
    const char *found;
    dt_status st;

    for (;;) {
        size_t got;

        st = wait_for_login(remote, one, deadline);
        if (st == DT_ERR_TIMEOUT && remote->transport->is_transport_line != NULL) {
            char complaint[DT_REMOTE_COMPLAINT_BYTES];
            const char *words;

            dt_remote_read_problems(remote, complaint, sizeof(complaint));
            words = dt_remote_last_words(remote, complaint);
            return DT_FAIL(err, st,
                           "node '%s': %s has not started the command after %.0f s%s%.300s",
                           remote->node, remote->transport->kind, DT_REMOTE_OPEN_SECONDS,
                           words[0] != '\0' ? ": " : "", words);
        }
        if (st == DT_ERR_TIMEOUT)
            return not_started(remote, dt_remote_is_open(one->socket), err);
        if (st != DT_OK)
            return DT_FAIL(err, st, "node '%s': cancelled", remote->node);
        st = dt_remote_receive(remote, bytes, sizeof(bytes), &got, 1.0, err);
        if (st != DT_OK)
            return st;
        if (got == 0)
            return ended_early(remote, err);
        dt_strbuf_add(&remote->got, bytes, got);
        found = memmem(remote->got.data, remote->got.length, mark, sizeof(mark) - 1);
        if (found != NULL) {
            dt_strbuf_remove_front(&remote->got,
                                   (size_t)(found - remote->got.data) + sizeof(mark) - 1);
            dt_remote_take(remote, "", 0);
            return DT_OK;
        }
        if (remote->got.length > DT_REMOTE_NOISE_BYTES)
            return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                           "node '%s': its login shell prints without end before it runs a "
                           "command: make ~/.bashrc silent in shells that are not interactive",
                           remote->node);
    }
}

void dt_remote_find_end_mark(char out[DT_REMOTE_END_MARK_SIZE], const char *const *argv)
{
    static const char front[] = DT_TRANSPORT_END;
    const char *found = NULL;

    for (; *argv != NULL && found == NULL; argv++)
        found = strstr(*argv, front + 1); /* in the argv the first byte is an escape sequence */
    out[0] = '\0';
    if (found != NULL)
        snprintf(out, DT_REMOTE_END_MARK_SIZE, "%c%.*s", front[0],
                 (int)(sizeof(front) - 2 + DT_TRANSPORT_END_DIGITS), found);
}

/* What a failed try to open has shown. */
typedef struct shown {
    bool shared;    /* the command used a connection that was open before */
    bool connected; /* the connection was open, but the command did not start in time */
    bool refused;   /* the server closed the connection at once */
} shown;

/* Opens without a second try. */
static dt_status open_once(dt_remote *out, shown *seen, const char *node, const char *const *words,
                           bool apart, const atomic_bool *cancelled, dt_error *err)
{
    const char **argv;
    dt_status st = DT_OK;
    dt_arena arena;
    turn one = {.slot = -1};

    *out = (dt_remote){.node = node, .cancelled = cancelled, .fd = -1, .problems = -1};
    dt_arena_init(&arena, 4096);
    dt_strbuf_init(&out->got);
    DT_TRY(dt_transport_find(&out->transport, node, err));
    if (apart && out->transport->command_apart != NULL)
        DT_TRY(out->transport->command_apart(&argv, node, words, &arena, err));
    else
        DT_TRY(out->transport->command(&argv, node, words, &arena, err));
    dt_remote_find_end_mark(out->end_mark, argv);
    DT_TRY(take_turn(&one, out, argv, err));
    DT_TRY(spawn(out, argv, err));
    if (out->transport->explain != NULL)
        DT_TRY(skip_noise(out, &one, dt_clock_monotonic_seconds() + DT_REMOTE_OPEN_SECONDS, err));
out:
    give_back(&one);
    /* this ssh may have opened the connection that others share now, and its ProxyCommand carries it */
    if (!one.stood && dt_remote_is_open(one.socket))
        dt_child_spare_group(&out->child);
    *seen = (shown){one.stood, out->connected, out->refused};
    if (st != DT_OK)
        dt_remote_close(out);
    dt_arena_release(&arena);
    return st;
}

/* Opens, with a second try. A shared connection that is open may still fail: the node may have
 * become unreachable, or refuse new sessions. A command that failed over it before it ran is tried
 * once more over a separate connection. */
static dt_status open_twice(dt_remote *out, bool *refused, const char *node,
                            const char *const *words, bool apart, const atomic_bool *cancelled,
                            dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    shown first = {0}, second = {0};
    dt_status st = open_once(out, &first, node, words, apart, cancelled, &problem);

    *refused = first.refused;
    if (first.shared && (st == DT_ERR_TIMEOUT || st == DT_ERR_PEER || st == DT_ERR_IO)) {
        dt_error again = DT_ERROR_INIT;

        dt_remote_renew(node);
        st = open_once(out, &second, node, words, true, cancelled, &again);
        *refused = second.refused;
        /* the first try knew that it was connected; a separate connection does not show it */
        if (st != DT_OK && !(st == DT_ERR_TIMEOUT && first.connected))
            return DT_FAIL(err, st, "%s", again.message);
    }
    if (st != DT_OK)
        return DT_FAIL(err, st, "%s", problem.message);
    return st;
}

/* Sleeps, half of `seconds` at least and in all a random time; returns false if cancelled. */
static bool pause_randomly(double seconds, const atomic_bool *cancelled)
{
    uint16_t random = 0;
    double until;

    (void)getrandom(&random, sizeof(random), GRND_NONBLOCK);
    until = dt_clock_monotonic_seconds() + seconds * (0.5 + random / 65536.0);
    while (dt_clock_monotonic_seconds() < until) {
        if (cancelled != NULL && atomic_load(cancelled))
            return false;
        dt_clock_sleep_seconds(fmin(0.05, seconds / 4));
    }
    return true;
}

/* Opens, and tries again while the server refuses connections at once. The pauses are random, so that commands that
 * were refused together do not come together again. */
static dt_status open_remote(dt_remote *out, const char *node, const char *const *words, bool apart,
                             const atomic_bool *cancelled, dt_error *err)
{
    double most = dt_times()->refused_seconds, wait = most / 100;
    double until = dt_clock_monotonic_seconds() + most;

    for (int tries = 1;; tries++) {
        dt_error problem = DT_ERROR_INIT;
        bool refused = false;
        dt_status st = open_twice(out, &refused, node, words, apart, cancelled, &problem);

        if (st == DT_OK)
            return st;
        if (!refused || (tries >= TRIES_LEAST && dt_clock_monotonic_seconds() > until) ||
            !pause_randomly(wait, cancelled))
            return DT_FAIL(err, st, "%s", problem.message);
        wait = fmin(2 * wait, most / 10);
    }
}

dt_status dt_remote_open(dt_remote *out, const char *node, const char *const *words,
                         const atomic_bool *cancelled, dt_error *err)
{
    return open_remote(out, node, words, false, cancelled, err);
}

dt_status dt_remote_open_apart(dt_remote *out, const char *node, const char *const *words,
                               const atomic_bool *cancelled, dt_error *err)
{
    return open_remote(out, node, words, true, cancelled, err);
}

/* Closes the stdin of a cancelled command, which ends it, and waits until it has ended. */
static void let_end(dt_remote *remote)
{
    double deadline = dt_clock_monotonic_seconds() + END_SECONDS;
    char bytes[4096];
    int code;

    if (remote->fd < 0 || remote->child.pid <= 0)
        return;
    dt_remote_write_end(remote);
    while (dt_clock_monotonic_seconds() < deadline && !dt_remote_reap(remote, &code)) {
        while (recv(remote->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
            ; /* discards its output */
        dt_clock_sleep_seconds(DT_REMOTE_END_SLICE_SECONDS);
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
    dt_child_end(&remote->child);
    if (remote->problems >= 0)
        close(remote->problems);
    dt_strbuf_release(&remote->got);
    *remote = (dt_remote){.fd = -1, .problems = -1};
}

/* --- a command with a short answer, in one call */

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
    /* A write error is ignored: if the command ended before it read everything, its exit code and
     * stderr have the reason. */
    if (dt_remote_write(&remote, input, input_length, timeout_seconds, NULL) == DT_ERR_BUSY)
        DT_THROW(err, DT_ERR_BUSY, "node '%s': cancelled", node);
    dt_remote_write_end(&remote);
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
