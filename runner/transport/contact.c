#include "runner/transport/transport.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "runner/transport/transport_int.h"

#define COMMAND_SECONDS 6.0 /* after this time the command has failed */
#define MOST_SECONDS    9.0
#define SLICE_SECONDS   0.01
#define COMPLAINT_BYTES 32768
#define ANSWER_BYTES    131072 /* most bytes read of the output of the login shell and the command */

/* One child process (the command or the ping), with its stdout and stderr in memory files. */
typedef struct attempt {
    dt_child child;
    const char *socket; /* of the connection that it may share; NULL: none */
    bool stood;         /* that connection was open before */
    int answer, complaint, code;
    bool started, ended;
    char end_mark[DT_REMOTE_END_MARK_SIZE]; /* "": the transport prints none */
} attempt;

static void begin(attempt *one, const char **argv, const dt_transport *transport)
{
    *one = (attempt){.socket =
                         transport->shared_socket != NULL ? transport->shared_socket(argv) : NULL,
                     .answer = memfd_create("answer", MFD_CLOEXEC),
                     .complaint = memfd_create("complaint", MFD_CLOEXEC)};
    if (one->answer < 0 || one->complaint < 0)
        return;
    one->stood = dt_remote_is_open(one->socket);
    dt_remote_find_end_mark(one->end_mark, argv);
    one->started = dt_child_start(&one->child,
                                  &(dt_child_spec){.argv = argv,
                                                   .out = one->answer,
                                                   .errors = one->complaint,
                                                   .follows = true},
                                  NULL) == DT_OK;
    if (one->started && transport->spares_group)
        dt_child_spare_group(&one->child);
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
    if (dt_child_has_ended(&one->child, &one->code))
        one->ended = true;
    return one->ended;
}

static void end(attempt *one)
{
    if (!one->stood && dt_remote_is_open(one->socket))
        dt_child_spare_group(
            &one->child); /* its ProxyCommand may carry the shared connection now */
    dt_child_end(&one->child);
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
    return transport->contact != NULL ? transport->contact(text) : DT_CONTACT_NONE;
}

/* Returns what the result of the ended command proves about the node. */
static dt_contact judge_command(const attempt *command, const dt_transport *transport)
{
    if (command->code == 0)
        return DT_CONTACT_COMMAND;
    if (command->code != DT_REMOTE_SSH_FAILED && command->code >= 0 &&
        transport->is_transport_line == NULL)
        return DT_CONTACT_HOST; /* the exit code comes from a shell on the node */
    return contact_of(command, transport);
}

static dt_contact wait_for(attempt *command, attempt *ping, const dt_transport *transport)
{
    double begun = dt_clock_monotonic_seconds(), now = begun;
    dt_contact best = DT_CONTACT_NONE;

    for (; now < begun + MOST_SECONDS; now = dt_clock_monotonic_seconds()) {
        bool pinged = !ping->started;

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
        begin(&command, argv, transport);
        if (transport->ping != NULL && transport->ping(&argv, node, &arena, NULL) == DT_OK)
            begin(&ping, argv, transport);
        if (command.started)
            found = wait_for(&command, &ping, transport);
        end(&command);
        end(&ping);
    }
    dt_arena_release(&arena);
    return found;
}
