/* dtrun-reach: runs one command on a node, with clean stdin and stdout.
 *
 *   dtrun-reach [--renew] NODE WORD...      --renew: bypass a shared connection that is open
 *   dtrun-reach --probe NODE WORD...        test whether the node can run the command (transport.h)
 *
 * Adds to plain ssh: a slot that limits how many connections are opened at once, the removal of the
 * login shell's output, and one line on stderr with the problem and the remedy. dtrun starts this
 * program. It exits with the command's exit code, or 255 if the node was not reached. For a
 * preempted node the line on stderr begins with DT_TRANSPORT_PREEMPTED.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "base/process.h"
#include "runner/transport/remote.h"

enum { NOT_REACHED = 255, END_SECONDS = 30 };

typedef enum out_end { OUT_OPEN, OUT_ENDED, OUT_UNHEARD } out_end;

static out_end copy_out(dt_remote *remote)
{
    char bytes[65536];
    size_t got;

    dt_status st = dt_remote_read(remote, bytes, sizeof(bytes), &got, 1.0, NULL);

    if (st == DT_ERR_TIMEOUT) /* the bytes received so far may begin the end mark */
        return OUT_OPEN;
    if (st != DT_OK || got == 0)
        return OUT_ENDED;
    return dt_file_write_all(STDOUT_FILENO, bytes, got, NULL) == DT_OK ? OUT_OPEN : OUT_UNHEARD;
}

static bool copy_in(dt_remote *remote)
{
    char bytes[65536];
    ssize_t got;

    do
        got = read(STDIN_FILENO, bytes, sizeof(bytes));
    while (got < 0 && errno == EINTR);
    return got > 0 && dt_remote_write(remote, bytes, (size_t)got, END_SECONDS, NULL) == DT_OK;
}

/* Copies stdin to the command and its output to stdout until the output ends; stdin may end
 * first. Returns false if nothing reads stdout any more: a command with more output would then
 * never end. */
static bool bridge(dt_remote *remote)
{
    struct pollfd ends[2] = {{STDIN_FILENO, POLLIN, 0}, {remote->fd, POLLIN, 0}};

    for (;;) {
        if (poll(ends, 2, dt_remote_has_read(remote) ? 0 : -1) < 0) {
            if (errno == EINTR)
                continue;
            return true;
        }
        if (ends[1].revents != 0 || dt_remote_has_read(remote)) {
            out_end end = copy_out(remote);

            if (end != OUT_OPEN)
                return end != OUT_UNHEARD;
        }
        if (ends[0].fd >= 0 && ends[0].revents != 0 && !copy_in(remote)) {
            dt_remote_write_end(remote);
            ends[0].fd = -1;
        }
    }
}

static bool is_preempted(const char *node)
{
    const dt_transport *transport;

    return dt_transport_find(&transport, node, NULL) == DT_OK && transport->is_preempted != NULL &&
           transport->is_preempted(node);
}

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;
    dt_remote remote = {0};
    int code = NOT_REACHED;
    dt_status st = DT_OK;
    bool preempted;

    bool renew = argc > 1 && strcmp(argv[1], "--renew") == 0;

    dt_startup(0);
    dt_child_catch_signals();
    (void)dt_child_guard(); /* ends ssh and what it started, also if dtrun kills this process */
    if (argc > 3 && strcmp(argv[1], "--probe") == 0)
        return dt_contact_try(argv[2], (const char *const *)argv + 3);
    argv += renew ? 1 : 0;
    if (argc - (renew ? 1 : 0) < 3) {
        fputs("usage: dtrun-reach [--renew | --probe] NODE WORD...\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (renew)
        dt_remote_renew(argv[1]);
    DT_TRY(dt_remote_open(&remote, argv[1], (const char *const *)argv + 2, NULL, &err));
    if (!bridge(&remote))
        DT_THROW(&err, DT_ERR_PEER, "node '%s': nothing reads the command's output", argv[1]);
    DT_TRY(dt_remote_finish(&remote, &code, NULL, END_SECONDS, &err));
out:
    preempted = st != DT_OK && is_preempted(argv[1]);
    if (preempted && argv[3] != NULL && strcmp(argv[3], "end") == 0)
        return 0; /* the preemption has ended everything that `dtrun-agent end` would end */
    if (st != DT_OK)
        fprintf(stderr, "%s%s\n", preempted ? DT_TRANSPORT_PREEMPTED : "", err.message);
    else
        dt_remote_print_problems(&remote, STDERR_FILENO);
    dt_remote_close(&remote);
    return st == DT_OK ? dt_exit_code_for_shell(code) : NOT_REACHED;
}
