/* tool: what the other folders use of the conversion: the programs whose command lines become recipes, and
 * dtrun import for them.
 *
 * Adding a tool: its table of flags and its functions in separate files, its row in tools.c, fixtures in
 * tests/convert/NAME/.
 */
#ifndef DT_RUNNER_CONVERT_TOOL_H
#define DT_RUNNER_CONVERT_TOOL_H

#include "runner/cli/command.h"
#include "runner/convert/launcher.h"

typedef struct dt_convert_tool {
    const char *name; /* NAME of dtrun import NAME */
    const char *what; /* its input, for the message "cannot find a fairseq-train command" */
    const char *hint; /* appended to that message; NULL: nothing */
    const dt_flag_table *flags;
    /* Returns true if the command is one of this tool; the launcher was already read. */
    bool (*knows)(const dt_launcher *launcher);
    /* `folder`: of the script, in which files are also searched; NULL: none. */
    dt_status (*convert)(dt_draft *draft, const dt_launcher *launcher, const char *folder,
                         dt_error *err);
} dt_convert_tool;

extern const dt_convert_tool dt_tool_fairseq, dt_tool_llmc, dt_tool_nanogpt, dt_tool_command;

/* command.c: returns why the word looks like a secret; NULL: it does not. `next`: the word after it, or
 * NULL. The result names the flag, never the value. */
const char *dt_secret_reason(const char *word, const char *next, dt_arena *arena);
/* Returns true if the variable "NAME=value" looks like a secret. */
bool dt_secret_is_variable(const char *assignment);

/* NULL-terminated. */
extern const dt_convert_tool *const dt_convert_tools[];

/* Converts the command of the script, if a tool supports it (any tool but `command`, or only `tool`).
 * `job`: the size of its Slurm job, or NULL. *found: the tool; NULL: none supports it. */
dt_status dt_tools_convert(const dt_convert_tool **found, dt_draft *draft, const dt_script *script,
                           const dt_launcher *job, const dt_convert_tool *tool, const char *folder,
                           dt_error *err);

/* Converts a script of sbatch: its nodes, and the command that it starts. `options`: words of an sbatch
 * command line, which replace those of the script. */
dt_status dt_slurm_convert(dt_draft *draft, const char *text, size_t length, const char *path,
                           const dt_shell_command *options, dt_error *err);

/* convert: converts other programs' command lines to recipes, for dtrun import fairseq, llm.c, nanogpt,
 * slurm and command.
 *
 * Reads the one command of a script (script.h), or takes its words as a shell split them, or notes them while the script
 * runs (convert_int.h); reads the launcher in front (launcher.h), and converts each flag to fields of a
 * recipe (flags.h) with the program's table of flags. What is not certain is refused.
 */

/* Returns true if NAME is a supported program: fairseq, llm.c, nanogpt, slurm, command. */
bool dt_convert_knows(const char *name);
/* Runs dtrun import NAME: writes the recipe to stdout or to the file of -o, and what was not carried to stderr. */
dt_status dt_convert(dt_call *call, dt_error *err);
/* Runs dtrun import --record: runs a script with stand-ins for launchers, and writes a recipe for each of
 * their commands. */
dt_status dt_convert_record(dt_call *call, dt_error *err);

#endif
