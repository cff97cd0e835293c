/* allowed: decides which commands can run on a server, and finds the server. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runner/relay/relay.h"

#include "base/banned.h"

/* "list, show, ..." */
static void list_travelling(dt_strbuf *out)
{
    for (size_t i = 0; dt_commands[i] != NULL; i++)
        if (dt_commands[i]->remote_ok)
            dt_strbuf_add_fmt(out, "%s%s", out->length > 0 ? ", " : "", dt_commands[i]->name);
}

static const dt_command *find_travelling(const char *name)
{
    for (size_t i = 0; dt_commands[i] != NULL; i++)
        if (dt_commands[i]->remote_ok && strcmp(dt_commands[i]->name, name) == 0)
            return dt_commands[i];
    return NULL;
}

/* Whether it would look for its runs on this machine. */
static bool concerns_runs(const dt_command *command)
{
    static const char *const others[] = {"top", "gc", "store", "sql"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(command->name, others[i]) == 0)
            return true;
    return !command->hidden && strstr(command->operands, "RUN") != NULL;
}

dt_status dt_relay_server(const char **url, const dt_command *command, const dt_arguments *args,
                          dt_error *err)
{
    const char *wanted = getenv("DTRUN_SERVER");
    dt_status st = DT_OK;
    dt_strbuf travelling;

    *url = wanted != NULL && wanted[0] != '\0' ? wanted : NULL;
    if (command->remote_ok && dt_arguments_get(args, "server")->given)
        *url = dt_arguments_get(args, "server")->text;
    if (*url == NULL || command->remote_ok)
        return DT_OK;
    if (!concerns_runs(command)) {
        *url = NULL;
        return DT_OK;
    }
    dt_strbuf_init(&travelling);
    list_travelling(&travelling);
    st = DT_FAIL(err, DT_ERR_USAGE,
                 "DTRUN_SERVER is set, but '%s' only works on local runs: unset it, or run this "
                 "there (a server answers: %s)",
                 command->name, travelling.data);
    dt_strbuf_release(&travelling);
    return st;
}

dt_status dt_relay_check(int argc, char **argv, dt_error *err)
{
    const dt_command *command = find_travelling(argv[0]);
    dt_status st = DT_OK;
    dt_strbuf travelling;
    dt_arguments args;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&travelling);
    list_travelling(&travelling);
    if (command == NULL)
        DT_THROW(err, DT_ERR_USAGE, "a server does not run '%s' for clients (supported: %s)",
                 argv[0], travelling.data);
    DT_TRY(dt_arguments_parse(&args, command, argc, argv, &arena, err));
    if (dt_arguments_get(&args, "server")->given)
        DT_THROW(err, DT_ERR_USAGE, "--server cannot be used in a request to a server");
out:
    dt_strbuf_release(&travelling);
    dt_arena_release(&arena);
    return st;
}

bool dt_relay_is_served(void)
{
    return getenv("DTRUN_TERMINAL") != NULL;
}

void dt_relay_follow_server(void)
{
    pid_t server = getppid();

    if (!dt_relay_is_served())
        return;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != server)
        _exit(DT_EXIT_SYSTEM);
}
