#include "runner/transport/contact.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/startup.h"
#include "runner/transport/remote_int.h"

#define COMMAND_SECONDS 6.0 /* after this time the command has failed */
#define MOST_SECONDS    9.0
#define SLICE_SECONDS   0.01
#define COMPLAINT_BYTES 32768
#define ANSWER_BYTES    131072 /* most bytes read of the output of the login shell and the command */

static const char cannot_run[] = "dtrun-reach: cannot run"; /* if a child cannot be executed */

/* One child process (the command or the ping), with its stdout and stderr in memory files. */
typedef struct attempt {
    pid_t pid; /* 0: not started, or it has ended */
    int answer, complaint, status;
    bool ended;
    char end_mark[DT_REMOTE_END_MARK_SIZE]; /* "": the transport prints none */
} attempt;

static void be_child(const char **argv, int answer, int complaint)
{
    int nothing = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dt_startup_child();
    if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(answer, 1) == 1 && dup2(complaint, 2) == 2)
        execvp(argv[0], (char *const *)argv);
    dprintf(complaint, "%s '%s': %s\n", cannot_run, argv[0], strerror(errno));
    _exit(127);
}

static void begin(attempt *one, const char **argv)
{
    *one = (attempt){.answer = memfd_create("answer", MFD_CLOEXEC),
                     .complaint = memfd_create("complaint", MFD_CLOEXEC)};
    if (one->answer < 0 || one->complaint < 0)
        return;
    dt_remote_find_end_mark(one->end_mark, argv);
    one->pid = fork();
    if (one->pid == 0)
        be_child(argv, one->answer, one->complaint);
    if (one->pid < 0)
        one->pid = 0;
}

/* Returns true if the output contains the end mark with exit code 0, even if a background program
 * still holds stdout open. */
static bool has_ended_well(const attempt *one)
{
    static char text[ANSWER_BYTES];
    size_t length = strlen(one->end_mark);
    const char *at;
    ssize_t got;

    if (one->answer < 0 || length == 0)
        return false;
    got = pread(one->answer, text, sizeof(text), 0);
    at = got > 0 ? memmem(text, (size_t)got, one->end_mark, length) : NULL;
    return at != NULL && (size_t)(text + got - at) >= length + 3 &&
           memcmp(at + length, " 0\n", 3) == 0;
}

static bool has_ended(attempt *one)
{
    pid_t got;

    if (one->pid == 0)
        return one->ended;
    do
        got = waitpid(one->pid, &one->status, WNOHANG);
    while (got < 0 && errno == EINTR);
    one->ended = got != 0;
    if (one->ended)
        one->pid = 0;
    return one->ended;
}

static void end(attempt *one)
{
    if (one->pid > 0) {
        kill(one->pid, SIGKILL);
        while (waitpid(one->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (one->complaint >= 0)
        close(one->complaint);
    if (one->answer >= 0)
        close(one->answer);
}

static dt_contact contact_of(const attempt *one, const dt_transport *transport)
{
    static char text[COMPLAINT_BYTES];
    ssize_t got = pread(one->complaint, text, sizeof(text) - 1, 0);

    text[got > 0 ? got : 0] = '\0';
    for (ssize_t i = 0; i < got; i++)
        text[i] = text[i] == '\0' ? ' ' : text[i];
    if (strncmp(text, cannot_run, sizeof(cannot_run) - 1) == 0)
        return DT_CONTACT_UNKNOWN;
    return transport->contact != NULL ? transport->contact(text) : DT_CONTACT_NONE;
}

/* Returns what the result of the ended command proves about the node. */
static dt_contact judge_command(const attempt *command, const dt_transport *transport)
{
    int code = WIFEXITED(command->status) ? WEXITSTATUS(command->status) : -1;

    if (code == 0)
        return DT_CONTACT_COMMAND;
    if (code == 127 && contact_of(command, transport) == DT_CONTACT_UNKNOWN)
        return DT_CONTACT_UNKNOWN;
    if (code != 255 && code >= 0 && transport->is_transport_line == NULL)
        return DT_CONTACT_HOST; /* the exit code comes from a shell on the node */
    return contact_of(command, transport);
}

static dt_contact wait_for(attempt *command, attempt *ping, const dt_transport *transport)
{
    double begun = dt_clock_monotonic_seconds(), now = begun;
    dt_contact best = DT_CONTACT_NONE;

    for (; now < begun + MOST_SECONDS; now = dt_clock_monotonic_seconds()) {
        bool pinged = ping->pid == 0;

        if (has_ended_well(command))
            return DT_CONTACT_COMMAND;
        if (has_ended(command)) {
            dt_contact found = judge_command(command, transport);

            if (found != DT_CONTACT_NONE)
                return found;
        }
        if (!pinged)
            pinged = has_ended(ping);
        if (best == DT_CONTACT_NONE && ping->complaint >= 0)
            best = contact_of(ping, transport);
        if ((command->ended && (pinged || best != DT_CONTACT_NONE)) ||
            (best != DT_CONTACT_NONE && now > begun + COMMAND_SECONDS))
            return best;
        dt_clock_sleep_seconds(SLICE_SECONDS);
    }
    return best;
}

dt_contact dt_contact_try(const char *node, const char *const *words)
{
    attempt command = {.answer = -1, .complaint = -1}, ping = {.answer = -1, .complaint = -1};
    dt_contact found = DT_CONTACT_UNKNOWN;
    const dt_transport *transport;
    const char **argv;
    dt_arena arena;

    dt_arena_init(&arena, 4096);
    if (dt_transport_find(&transport, node, NULL) == DT_OK &&
        transport->command(&argv, node, words, &arena, NULL) == DT_OK) {
        dt_remote_renew(node);
        begin(&command, argv);
        if (transport->ping != NULL && transport->ping(&argv, node, &arena, NULL) == DT_OK)
            begin(&ping, argv);
        if (command.pid != 0)
            found = wait_for(&command, &ping, transport);
        end(&command);
        end(&ping);
    }
    dt_arena_release(&arena);
    return found;
}
