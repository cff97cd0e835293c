/* remote_talk: reads from and writes to a command on a node, reads what it and the transport's program
 * wrote to stderr, and waits for its end. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "runner/transport/transport_int.h"

/* --- stderr */

void dt_remote_read_problems(const dt_remote *remote, char *out, size_t size)
{
    off_t length = lseek(remote->problems, 0, SEEK_END);
    off_t from = length > (off_t)size - 1 ? length - ((off_t)size - 1) : 0;
    ssize_t got = pread(remote->problems, out, size - 1, from);

    out[got > 0 ? got : 0] = '\0';
    for (char *p = out; p < out + (got > 0 ? got : 0); p++)
        if (*p == '\0')
            *p = ' ';
}

const char *dt_remote_last_words(const dt_remote *remote, char *text)
{
    bool (*own)(const char *line) = remote->transport->is_transport_line;
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

static const char *remote_reason(char out[DT_REMOTE_REASON_BYTES], const dt_remote *remote,
                                 char *text, int code)
{
    const char *line = dt_remote_last_words(remote, text);
    char end[DT_EXIT_WORDS_BYTES];

    if (line[strspn(line, " ")] != '\0')
        snprintf(out, DT_REMOTE_REASON_BYTES, "%s", line);
    else
        snprintf(out, DT_REMOTE_REASON_BYTES, "the command %s, without a message",
                 dt_exit_words(end, code));
    return out;
}

void dt_remote_print_problems(const dt_remote *remote, int fd)
{
    char complaint[DT_REMOTE_COMPLAINT_BYTES];
    const char *line = complaint, *end;

    dt_remote_read_problems(remote, complaint, sizeof(complaint));
    for (; *line != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n' ? 1 : 0;
        if (remote->transport->is_transport_line == NULL ||
            !remote->transport->is_transport_line(line))
            (void)dt_file_write_all(fd, line, (size_t)(end - line), NULL);
    }
}

/* --- stdin, stdout and the end */

#define SLICE_MS 100 /* how often `cancelled` is checked */
/* How long the transport's program may stay alive after the end mark of the command ... */
#define HELD_SECONDS         0.25
#define HELD_PROBLEM_SECONDS 2.0 /* ... if the command failed: its stderr can come later */

dt_status dt_remote_wait(dt_remote *remote, short events, double deadline, dt_error *err)
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
            return DT_FAIL(err, DT_ERR_BUSY, "node '%s': cancelled", remote->node);
        if (dt_clock_monotonic_seconds() > deadline)
            return DT_FAIL(err, DT_ERR_TIMEOUT, "node '%s': no answer in time", remote->node);
    }
}

/* --- its output */

/* Returns how many bytes at the end of `bytes` may be the beginning of the mark. */
static size_t begun_mark(const dt_strbuf *bytes, const char *mark)
{
    const char *at = memrchr(bytes->data, mark[0], bytes->length);
    size_t length = at != NULL ? bytes->length - (size_t)(at - bytes->data) : 0;

    return length > 0 && length < strlen(mark) && memcmp(at, mark, length) == 0 ? length : 0;
}

void dt_remote_take(dt_remote *remote, const void *bytes, size_t count)
{
    const char *found, *line_end;

    dt_strbuf_add(&remote->got, bytes, count);
    remote->ready = remote->got.length;
    if (remote->end_mark[0] == '\0' || remote->got.length == 0)
        return;
    found =
        memmem(remote->got.data, remote->got.length, remote->end_mark, strlen(remote->end_mark));
    if (found == NULL) {
        remote->ready -= begun_mark(&remote->got, remote->end_mark);
        return;
    }
    remote->ready = (size_t)(found - remote->got.data);
    line_end = memchr(found, '\n', remote->got.length - remote->ready);
    if (line_end == NULL)
        return;
    remote->ended = true;
    remote->end_code = (int)strtol(found + strlen(remote->end_mark), NULL, 10);
}

bool dt_remote_has_read(const dt_remote *remote)
{
    return remote->ready > 0 || remote->ended;
}

static void give(dt_remote *remote, void *bytes, size_t size, size_t *got)
{
    *got = remote->ready < size ? remote->ready : size;
    memcpy(bytes, remote->got.data, *got);
    dt_strbuf_remove_front(&remote->got, *got);
    remote->ready -= *got;
}

dt_status dt_remote_receive(dt_remote *remote, void *bytes, size_t size, size_t *got,
                            double timeout_seconds, dt_error *err)
{
    dt_status st;
    ssize_t count;

    *got = 0;
    st = dt_remote_wait(remote, POLLIN, dt_clock_monotonic_seconds() + timeout_seconds, err);
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

dt_status dt_remote_read(dt_remote *remote, void *bytes, size_t size, size_t *got,
                         double timeout_seconds, dt_error *err)
{
    char piece[65536];

    *got = 0;
    while (!dt_remote_has_read(remote)) {
        size_t count;
        dt_status st =
            dt_remote_receive(remote, piece, sizeof(piece), &count, timeout_seconds, err);

        if (st != DT_OK)
            return st;
        if (count == 0) { /* end of file: an incomplete mark is ordinary output */
            remote->ready = remote->got.length;
            break;
        }
        dt_remote_take(remote, piece, count);
    }
    give(remote, bytes, size, got);
    return DT_OK;
}

/* Reads and drops output, but recognizes the end mark. Returns false if there was nothing to read. */
static bool drop_output(dt_remote *remote)
{
    char piece[16384];
    ssize_t count = recv(remote->fd, piece, sizeof(piece), MSG_DONTWAIT);

    if (count <= 0)
        return false;
    dt_strbuf_remove_front(&remote->got, remote->ready);
    dt_remote_take(remote, piece, (size_t)count);
    return true;
}

dt_status dt_remote_write(dt_remote *remote, const void *bytes, size_t length,
                          double timeout_seconds, dt_error *err)
{
    const char *at = bytes;

    while (length > 0) {
        double deadline = dt_clock_monotonic_seconds() + timeout_seconds;
        dt_status st = dt_remote_wait(remote, POLLOUT, deadline, err);
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

/* --- its end */

bool dt_remote_reap(dt_remote *remote, int *code)
{
    return dt_child_has_ended(&remote->child, code);
}

/* Returns the name of the transport's program on this machine. */
static const char *program_of(const dt_remote *remote)
{
    return remote->transport->is_transport_line != NULL ? "srun" : "ssh";
}

/* Fails with the signal that ended the transport's own program, on this machine. */
dt_status dt_remote_fail_local(const dt_remote *remote, int code, dt_error *err)
{
    char end[DT_EXIT_WORDS_BYTES];

    return DT_FAIL(err, DT_ERR_IO, "node '%s': the local %s %s", remote->node, program_of(remote),
                   dt_exit_words(end, code));
}

bool dt_remote_lacks_processes(const char *text)
{
    static const char *const signs[] = {"annot fork", "fork: ", "fork failed", "o more processes",
                                        "annot create child"};

    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (strstr(text, signs[i]) != NULL)
            return true;
    return false;
}

dt_status dt_remote_finish(dt_remote *remote, int *code, dt_error *problem, double timeout_seconds,
                           dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + timeout_seconds;
    double held_until = 0; /* deadline of the transport's program, set when the mark comes */
    char complaint[DT_REMOTE_COMPLAINT_BYTES], reason[DT_REMOTE_REASON_BYTES];
    int ended = 0;

    dt_remote_write_end(remote);
    while (!dt_remote_reap(remote, &ended)) {
        while (!remote->ended && drop_output(remote))
            ;
        if (remote->ended && held_until == 0)
            held_until = dt_clock_monotonic_seconds() +
                         (remote->end_code == 0 ? HELD_SECONDS : HELD_PROBLEM_SECONDS);
        if (remote->ended && dt_clock_monotonic_seconds() > held_until) {
            ended = remote->end_code;
            break;
        }
        if (remote->cancelled != NULL && atomic_load(remote->cancelled))
            return DT_FAIL(err, DT_ERR_BUSY, "node '%s': cancelled", remote->node);
        if (dt_clock_monotonic_seconds() > deadline)
            return DT_FAIL(err, DT_ERR_TIMEOUT, "node '%s': the command does not end",
                           remote->node);
        dt_clock_sleep_seconds(DT_REMOTE_END_SLICE_SECONDS);
    }
    dt_remote_read_problems(remote, complaint, sizeof(complaint));
    if (remote->transport->explain != NULL &&
        (ended == DT_REMOTE_SSH_FAILED ||
         (ended != 0 && remote->transport->connection_lost != NULL &&
          remote->transport->connection_lost(complaint))))
        return remote->transport->explain(remote->node, complaint, err);
    while (!remote->ended && drop_output(remote))
        ;
    if (remote->transport->explain != NULL && ended < 0) {
        if (!remote->ended)
            return dt_remote_fail_local(remote, ended, err);
        ended = remote->end_code;
    }
    if (remote->transport->explain != NULL && ended != 0) {
        const char *words = remote_reason(reason, remote, complaint, ended);

        if (dt_remote_lacks_processes(words))
            return DT_FAIL(err, DT_ERR_PEER, "node '%s' cannot start processes: %s", remote->node,
                           words);
    }
    if (code != NULL) {
        *code = ended;
        if (ended != 0)
            DT_FAIL(problem, DT_ERR_IO, "%s", remote_reason(reason, remote, complaint, ended));
    } else if (ended != 0)
        return DT_FAIL(err, DT_ERR_PEER, "node '%s': %s (code %d)", remote->node,
                       remote_reason(reason, remote, complaint, ended), ended);
    return DT_OK;
}
