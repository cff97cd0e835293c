/* tool: converts the command lines of one program to recipes.
 *
 * Adding a tool: its table of flags and its functions in separate files, its row in tools.c, fixtures in
 * tests/convert/NAME/.
 */
#ifndef DT_RUNNER_CONVERT_TOOL_H
#define DT_RUNNER_CONVERT_TOOL_H

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

/* command.c: carries or lists a command of the script before the one that became the recipe's command. */
void dt_command_precedes(dt_draft *draft, const dt_shell_command *command);

/* NULL-terminated. */
extern const dt_convert_tool *const dt_convert_tools[];

/* Converts the first command of the script that a tool supports (any tool, or only `tool`), also inside "bash -c", "eval"
 * and "ssh HOST". `job`: its nodes and devices, or NULL. *found: the tool; NULL: no command was found. */
dt_status dt_tools_convert(const dt_convert_tool **found, dt_draft *draft,
                           const dt_shell_script *script, const dt_launcher *job,
                           const dt_convert_tool *tool, const char *folder, dt_error *err);

/* Converts an #SBATCH script: its nodes, and the command that it starts if a tool supports it. */
dt_status dt_slurm_convert(dt_draft *draft, const char *text, size_t length, const char *path,
                           dt_error *err);

#endif
