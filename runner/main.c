/* dtrun: lists all commands, and runs the one on the command line. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/process.h"
#include "base/version.h"
#include "runner/cli/command.h"
#include "runner/cli/help.h"
#include "runner/cli/options.h"
#include "runner/cli/report.h"
#include "runner/queue/queue.h"
#include "runner/relay/relay.h"
#include "runner/sweep/sweep.h"

/* clang-format off */
const dt_command *const dt_commands[] = {
    &dt_command_launch,
    &dt_command_run,
    &dt_command_stop,
    &dt_command_queue,
    &dt_command_resume,
    &dt_command_fork,
    &dt_command_status,
    &dt_command_top,
    &dt_command_wait,
    &dt_command_list,
    &dt_command_show,
    &dt_command_compare,
    &dt_command_logs,
    &dt_command_metrics,
    &dt_command_export,
    &dt_command_import,
    &dt_command_tag,
    &dt_command_archive,
    &dt_command_note,
    &dt_command_rename,
    &dt_command_rm,
    &dt_command_gc,
    &dt_command_store,
    &dt_command_sql,
    &dt_command_generate,
    &dt_command_chat,
    &dt_command_score,
    &dt_command_evaluate,
    &dt_command_checkpoints,
    &dt_command_verify,
    &dt_command_doctor,
    &dt_command_plan,
    &dt_command_data,
    &dt_command_init,
    &dt_command_validate,
    &dt_command_smoke,
    &dt_command_schema,
    &dt_command_serve,
    &dt_command_mcp,
    &dt_command_completion,
    &dt_command_help,
    &dt_command_supervise,
    &dt_command_complete,
    &dt_command_drive,
    &dt_command_arbiter,
    NULL,
};
/* clang-format on */

enum { COMMANDS_COUNT = sizeof(dt_commands) / sizeof(dt_commands[0]) };

const dt_command *dt_command_find(const char *name)
{
    for (size_t i = 0; dt_commands[i] != NULL; i++)
        if (strcmp(dt_commands[i]->name, name) == 0)
            return dt_commands[i];
    return NULL;
}

const char *dt_command_suggest(const char *name)
{
    const char *names[COMMANDS_COUNT] = {NULL};
    size_t count = 0;

    for (size_t i = 0; dt_commands[i] != NULL; i++)
        if (!dt_commands[i]->hidden)
            names[count++] = dt_commands[i]->name;
    return dt_suggest(name, names);
}

/* Sweeps and the queue go on if their processes were killed. */
static void ensure_helpers(void)
{
    dt_error problem = DT_ERROR_INIT;

    dt_drive_ensure_all();
    if (dt_arbiter_ensure(&problem) != DT_OK)
        dt_report_say("dtrun: %s", problem.message);
    dt_error_clear(&problem);
}

static int print_version(bool json)
{
    dt_error err = DT_ERROR_INIT;
    json_t *object;

    if (!json) {
        printf("dtrun %s (%s)\n", DT_VERSION, DT_COMMIT);
        return fflush(stdout) == 0 ? DT_EXIT_GOOD : DT_EXIT_SYSTEM;
    }
    object = dt_report_object();
    json_object_set_new(object, "dtrun", json_string(DT_VERSION));
    json_object_set_new(object, "commit", json_string(DT_COMMIT));
    if (dt_report_json(object, &err) != DT_OK)
        return dt_report_error(NULL, false, &err);
    return DT_EXIT_GOOD;
}

static int print_overview(int fd)
{
    dt_strbuf text;
    dt_term term;

    dt_term_init(&term, fd);
    dt_strbuf_init(&text);
    dt_help_overview(&text);
    dt_help_fit(&text, &term);
    dprintf(fd, "%s", text.data);
    dt_strbuf_release(&text);
    return fd == STDOUT_FILENO ? DT_EXIT_GOOD : DT_EXIT_USAGE;
}

static int refuse_command(const char *name)
{
    const char *meant = dt_command_suggest(name);
    dt_error err = DT_ERROR_INIT;

    if (name[0] == '-')
        DT_FAIL(&err, DT_ERR_USAGE, "unknown option '%s': options come after the command", name);
    else if (meant != NULL)
        DT_FAIL(&err, DT_ERR_USAGE, "unknown command '%s' (did you mean '%s'?)", name, meant);
    else
        DT_FAIL(&err, DT_ERR_USAGE, "unknown command '%s'", name);
    return dt_report_error(NULL, false, &err);
}

/* Whether --json is given; also works when the options cannot be parsed. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

static dt_status call_command(const dt_command *command, int argc, char **argv, int *exit_code,
                              dt_error *err)
{
    dt_status st = DT_OK;
    dt_arena arena;
    dt_arguments args;
    dt_call call;
    dt_problems problems;
    const char *server;
    dt_strbuf text;
    dt_term term;

    dt_arena_init(&arena, 0);
    dt_problems_init(&problems, &arena);
    dt_strbuf_init(&text);
    DT_TRY(dt_arguments_parse(&args, command, argc, argv, &arena, err));
    if (dt_arguments_flag(&args, "help")) {
        dt_term_init(&term, STDOUT_FILENO);
        dt_help_command(&text, command);
        dt_help_fit(&text, &term);
        DT_TRY(dt_report_text(&text, err));
    } else {
        call = (dt_call){&args, &arena, dt_arguments_flag(&args, "json"), DT_EXIT_GOOD, &problems};
        DT_TRY(dt_relay_server(&server, command, &args, err));
        /* A driver or an arbiter that a request to `dtrun serve` started would end with the request. */
        if (server == NULL && command->runs != DT_RUNS_NONE && !dt_relay_is_served())
            ensure_helpers();
        st = server != NULL ? dt_relay_call(&call, server, err) : command->run(&call, err);
        *exit_code = call.exit_code;
        if (st == DT_ERR_RECIPE &&
            problems.errors > 0) { /* report all problems, not only the first */
            *exit_code = dt_report_bad_recipe(&call, err);
            st = DT_OK;
        }
    }
out:
    dt_strbuf_release(&text);
    dt_arena_release(&arena);
    return st;
}

int main(int argc, char **argv)
{
    const dt_command *command;
    dt_error err = DT_ERROR_INIT;
    int exit_code = DT_EXIT_GOOD;

    dt_startup(0);
    dt_child_catch_signals();
    dt_relay_follow_server();
    if (argc < 2)
        return print_overview(STDERR_FILENO);
    if (strcmp(argv[1], "--version") == 0)
        return print_version(wants_json(argc, argv));
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_overview(STDOUT_FILENO);
    command = dt_command_find(argv[1]);
    if (command == NULL)
        return refuse_command(argv[1]);
    if (call_command(command, argc - 1, argv + 1, &exit_code, &err) != DT_OK)
        return dt_report_error(command, wants_json(argc - 1, argv + 1), &err);
    return exit_code;
}
