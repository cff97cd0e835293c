#include "runner/convert/convert_int.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "base/process.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"

extern char **environ;

enum { RECORDS_MOST = 64, NOTE_MOST = 8 << 20, WAIT_MS = 10000, ASKED_MS = 3000 };

static const char *const standins[] = {
    "torchrun", "accelerate", "accelerate-launch", "deepspeed", "mpirun",  "mpiexec",
    "srun",     "sbatch",     "fairseq-train",     "python",    "python3", NULL};

/* The script of a stand-in; %d is the number of records that are kept. The first words pass a Python that
 * launches nothing on to the next one in PATH. */
static const char script_of_standin[] =
    "#!/bin/sh\n"
    "name=${0##*/}\n"
    "case $name in python|python3)\n"
    "    launches=no before=\n"
    "    for word in \"$@\"; do\n"
    "        case $before$word in\n"
    "        -mtorch.distributed.run|-mtorch.distributed.launch|-maccelerate.commands.launch) "
    "launches=yes; break ;;\n"
    "        -m*) [ -z \"$before\" ] || break ;;\n"
    "        -*) ;;\n"
    "        *) break ;;\n"
    "        esac\n"
    "        before=\n"
    "        [ \"$word\" != -m ] || before=-m\n"
    "    done\n"
    "    if [ $launches = no ]; then\n"
    "        IFS=:\n"
    "        for folder in $PATH; do\n"
    "            if [ \"$folder\" != \"$DTRUN_RECORD/bin\" ] && [ -x \"$folder/$name\" ]; then\n"
    "                unset IFS\n"
    "                exec \"$folder/$name\" \"$@\"\n"
    "            fi\n"
    "        done\n"
    "        echo \"$name: not found\" >&2\n"
    "        exit 127\n"
    "    fi ;;\n"
    "esac\n"
    "number=1\n"
    "until /bin/mkdir \"$DTRUN_RECORD/$number\" 2>/dev/null; do\n"
    "    number=$((number + 1))\n"
    "    if [ $number -gt 64 ]; then : >\"$DTRUN_RECORD/more\"; exit 0; fi\n"
    "done\n"
    "printf '%s\\0' \"$name\" \"$@\" >\"$DTRUN_RECORD/$number/words\"\n"
    "pwd >\"$DTRUN_RECORD/$number/folder\"\n"
    "/usr/bin/env -0 >\"$DTRUN_RECORD/$number/environment\"\n"
    ": >\"$DTRUN_RECORD/$number/done\"\n"
    "[ $name != sbatch ] || echo 'Submitted batch job 1'\n"
    "exit 0\n";

/* --- the question */

static dt_status ask(const dt_call *call, dt_error *err)
{
    char line[16];

    dt_report_note(call, "the script runs with stand-ins for torchrun, accelerate, deepspeed, "
                         "mpirun, srun, sbatch, fairseq-train and 'python -m torch.distributed.*', "
                         "which only note their words");
    dt_report_note(call, "every other command of it really runs, and so does a launcher that is "
                         "called by its path");
    if (dt_arguments_flag(call->args, "yes"))
        return DT_OK;
    if (!isatty(STDIN_FILENO))
        return DT_FAIL(err, DT_ERR_USAGE, "--record asks before the script runs: add --yes");
    dt_report_say("run it? [y/N]");
    if (fgets(line, sizeof(line), stdin) == NULL || (line[0] != 'y' && line[0] != 'Y'))
        return DT_FAIL(err, DT_ERR_USAGE, "the script was not run");
    return DT_OK;
}

/* --- the stand-ins */

static dt_status make_standins(const char *folder, dt_arena *arena, dt_error *err)
{
    const char *bin = dt_arena_printf(arena, "%s/bin", folder);
    dt_status st = dt_file_make_dirs(bin, 0700, err);

    for (size_t i = 0; standins[i] != NULL && st == DT_OK; i++)
        st = dt_file_write_atomic(dt_arena_printf(arena, "%s/%s", bin, standins[i]),
                                  script_of_standin, sizeof(script_of_standin) - 1, 0700, err);
    return st;
}

/* Returns the environment of the script: PATH begins with the stand-ins, and bash has them as functions. */
static char **make_environment(const char *folder, dt_arena *arena)
{
    const char *path = getenv("PATH");
    size_t count = 0, at = 0, more = sizeof(standins) / sizeof(standins[0]) + 3;
    char **all;

    while (environ[count] != NULL)
        count++;
    all = dt_arena_alloc_array(arena, count + more, sizeof(all[0]));
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "PATH=", 5) != 0 && strncmp(environ[i], "DTRUN_RECORD=", 13) != 0)
            all[at++] = environ[i];
    all[at++] = dt_arena_printf(arena, "PATH=%s/bin:%s", folder,
                                path != NULL ? path : "/usr/local/bin:/usr/bin:/bin");
    all[at++] = dt_arena_printf(arena, "DTRUN_RECORD=%s", folder);
    for (size_t i = 0; standins[i] != NULL; i++)
        all[at++] =
            dt_arena_printf(arena, "BASH_FUNC_%s%%%%=() { \"$DTRUN_RECORD/bin/%s\" \"$@\"; }",
                            standins[i], standins[i]);
    all[at] = NULL;
    return all;
}

/* --- running */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for the script, and a while for what it left in the background. *left: some of it still runs. */
static int wait_for_all(pid_t script, bool *left)
{
    int64_t end = 0, asked = 0;
    int status, result = -1;

    for (;;) {
        pid_t ended = waitpid(-1, &status, WNOHANG);

        if (result < 0 && dt_interrupt_seen() && asked == 0) {
            asked = now_ms(); /* a terminal has signalled it already */
            kill(script, SIGTERM);
        }
        if (asked > 0 && now_ms() > asked + ASKED_MS) {
            kill(script, SIGKILL);
            asked = INT64_MAX - ASKED_MS;
        }
        if (ended == script) {
            result = status;
            end = now_ms() + WAIT_MS;
        } else if (ended < 0 && errno != EINTR) {
            *left = false;
            return result;
        } else if (ended == 0) {
            if (result >= 0 && (now_ms() > end || dt_interrupt_seen())) {
                *left = true;
                return result;
            }
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        }
    }
}

/* Matches the processes of the script, by the variable that names the folder of the notes. */
static bool is_of_script(const void *folder, char state, const char *words, size_t length)
{
    for (size_t at = 0; at < length; at += strlen(words + at) + 1)
        if (strncmp(words + at, "DTRUN_RECORD=", 13) == 0)
            return strcmp(words + at + 13, folder) == 0;
    return false;
}

static dt_status run(const char *folder, char **words, int count, const dt_call *call,
                     dt_error *err)
{
    const char **arguments =
        dt_arena_alloc_array(call->arena, (size_t)count + 1, sizeof(arguments[0]));
    char **environment = make_environment(folder, call->arena);
    dt_error problem = DT_ERROR_INIT;
    bool left = false;
    dt_child script;
    int status, code;

    for (int i = 0; i < count; i++)
        arguments[i] = words[i];
    dt_interrupt_catch();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (dt_child_start(&script,
                       &(dt_child_spec){.argv = arguments,
                                        .environment = environment,
                                        .in = DT_CHILD_SHARE,
                                        .out = STDERR_FILENO, /* stdout is for the recipe */
                                        .errors = DT_CHILD_SHARE,
                                        .foreground = true},
                       &problem) != DT_OK)
        return DT_FAIL(err, script.is_found ? DT_ERR_IO : DT_ERR_USAGE, "%s", problem.message);
    status = wait_for_all(script.pid, &left);
    if (dt_interrupt_seen())
        (void)dt_proc_end_all("environ", is_of_script, folder, 5);
    if (dt_interrupt_seen())
        return DT_FAIL(err, DT_ERR_USAGE, "interrupted: nothing was converted");
    if (left)
        dt_report_note(call, "commands of the script still run in the background");
    code = dt_exit_code(status);
    if (code < 0)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' was ended by signal %d: nothing was converted",
                       words[0], -code);
    if (code == DT_EXIT_NO_PROGRAM)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "'%s' ended with code 127: a command of it does not exist", words[0]);
    if (code != 0)
        dt_report_note(call, "the script ended with code %d", code);
    return DT_OK;
}

/* --- the notes */

/* Splits text at NUL characters. */
static char **split(const dt_strbuf *text, int *count, dt_arena *arena)
{
    char **items;
    int64_t most = 1;

    for (size_t i = 0; i < text->length; i++)
        most += text->data[i] == '\0';
    items = dt_arena_alloc_array(arena, (size_t)most + 1, sizeof(items[0]));
    *count = 0;
    for (size_t at = 0; at < text->length; at += strlen(text->data + at) + 1)
        items[(*count)++] = dt_arena_strdup(arena, text->data + at);
    return items;
}

/* Returns true for variables that a shell sets, or that are ours. */
static bool is_own(const char *variable)
{
    static const char *const names[] = {
        "_=", "SHLVL=", "PWD=", "OLDPWD=", "PS1=", "IFS=", "DTRUN_RECORD=", "BASH_FUNC_", NULL};

    for (size_t i = 0; names[i] != NULL; i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool was_set(const char *variable)
{
    for (size_t i = 0; environ[i] != NULL; i++)
        if (strcmp(environ[i], variable) == 0)
            return true;
    return false;
}

/* Removes the stand-ins from "PATH=...". */
static const char *without_standins(const char *variable, const char *folder, dt_arena *arena)
{
    const char *bin = dt_arena_printf(arena, "%s/bin:", folder);
    const char *found = strncmp(variable, "PATH=", 5) == 0 ? strstr(variable, bin) : NULL;

    if (found == NULL)
        return variable;
    return dt_arena_printf(arena, "%.*s%s", (int)(found - variable), variable, found + strlen(bin));
}

static dt_status read_one(dt_record *out, const char *folder, size_t number, dt_arena *arena,
                          dt_error *err)
{
    const char *base = dt_arena_printf(arena, "%s/%zu", folder, number);
    char *here = getcwd(NULL, 0), **variables;
    dt_status st = DT_OK;
    dt_strbuf text;
    int count;

    *out = (dt_record){0};
    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, dt_arena_printf(arena, "%s/words", base), NOTE_MOST, err));
    out->words = split(&text, &out->count, arena);
    dt_strbuf_reset(&text);
    DT_TRY(dt_file_read(&text, dt_arena_printf(arena, "%s/environment", base), NOTE_MOST, err));
    variables = split(&text, &count, arena);
    for (int i = 0; i < count; i++) {
        const char *variable = without_standins(variables[i], folder, arena);

        if (!is_own(variable) && !was_set(variable))
            dt_shell_add_to(&out->changed, variable, strlen(variable), 0, arena);
    }
    dt_strbuf_reset(&text);
    DT_TRY(dt_file_read(&text, dt_arena_printf(arena, "%s/folder", base), NOTE_MOST, err));
    if (text.length > 1 && here != NULL) {
        const char *at = dt_arena_strndup(arena, text.data, text.length - 1);

        out->folder = strcmp(at, here) != 0 ? at : NULL;
    }
out:
    dt_strbuf_release(&text);
    free(here);
    return st;
}

static dt_status read_all(dt_records *out, const char *folder, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    out->items = dt_arena_alloc_array(arena, RECORDS_MOST, sizeof(out->items[0]));
    if (dt_file_exists(dt_arena_printf(arena, "%s/more", folder)))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "the script starts more than %d trainings: use 'sweep' for these",
                       RECORDS_MOST);
    for (size_t i = 1; i <= RECORDS_MOST && st == DT_OK; i++)
        if (dt_file_exists(dt_arena_printf(arena, "%s/%zu/done", folder, i)))
            st = read_one(&out->items[out->count++], folder, i, arena, err);
    if (st == DT_OK && out->count == 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "the script started none of the launchers, or by their paths");
    return st;
}

dt_status dt_record_run(dt_records *out, char **words, int count, dt_call *call, dt_error *err)
{
    const char *base = getenv("TMPDIR");
    dt_error ignored = DT_ERROR_INIT;
    char *folder = dt_arena_printf(call->arena, "%s/dtrun-record-XXXXXX",
                                   base != NULL && base[0] == '/' ? base : "/tmp");
    dt_status st = ask(call, err);

    *out = (dt_records){0};
    if (st != DT_OK)
        return st;
    if (mkdtemp(folder) == NULL)
        return DT_FAIL(err, DT_ERR_IO, "cannot make a folder '%s': %s", folder, strerror(errno));
    DT_TRY(make_standins(folder, call->arena, err));
    DT_TRY(run(folder, words, count, call, err));
    DT_TRY(read_all(out, folder, call->arena, err));
out:
    (void)dt_file_remove_tree(folder, &ignored);
    return st;
}
