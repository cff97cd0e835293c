/* program: finds the programs that are installed next to dtrun, runs a program to its end and collects its
 * output. */
#include "runner/cli/program.h"

#include <string.h>

#include "base/dirs.h"
#include "base/process.h"

static dt_status find(const char **path, const char *name, const char *variable, dt_arena *arena,
                      dt_error *err)
{
    dt_error cause = DT_ERROR_INIT;

    if (dt_dir_program(path, name, variable, arena, &cause) == DT_OK)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_IO, "%s: the installation is incomplete (set %s to use another)",
                   cause.message, variable);
}

dt_status dt_program_agent(const char **path, dt_arena *arena, dt_error *err)
{
    return find(path, "dtrun-agent", "DTRUN_AGENT", arena, err);
}

dt_status dt_program_engine(const char **path, dt_arena *arena, dt_error *err)
{
    return find(path, "dtrun-engine", "DTRUN_ENGINE", arena, err);
}

/* Returns the last line that starts with `name`, without that prefix; else the last line. */
static const char *find_complaint(dt_strbuf *errors, const char *name)
{
    const char *found = NULL, *last = "";

    for (char *line = errors->data, *next; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (strncmp(line, name, strlen(name)) == 0)
            found = line + strlen(name);
        if (line[0] != '\0')
            last = line;
    }
    return found != NULL ? found : last;
}

dt_status dt_program_engine_status(int exit_code, dt_strbuf *errors, dt_error *err)
{
    char end[DT_EXIT_WORDS_BYTES];
    const char *complaint;

    if (exit_code == 0)
        return DT_OK;
    complaint = find_complaint(errors, "dtrun-engine: ");
    if (complaint[strspn(complaint, " ")] != '\0')
        return DT_FAIL(err, exit_code == 2 ? DT_ERR_USAGE : DT_ERR_CORRUPT, "%s", complaint);
    return DT_FAIL(err, DT_ERR_IO, "dtrun-engine %s, without a message",
                   dt_exit_words_of_shell(end, exit_code));
}
