/* tool: what makes a recipe of a command line of one program.
 *
 * Adding a tool: its table of flags and its functions in files of their own, its row in tools.c, fixtures in
 * tests/convert/NAME/.
 */
#ifndef DT_RUNNER_CONVERT_TOOL_H
#define DT_RUNNER_CONVERT_TOOL_H

#include "runner/convert/launcher.h"

typedef struct dt_convert_tool {
    const char *name; /* dtrun import NAME */
    const char *what; /* what it is given, for a message: "fairseq-train command" */
    const char *
        hint; /* what a command of it looks like, after `what` where there is none; NULL: nothing */
    const dt_flag_table *flags;
    /* Whether the command is one of the tool's; the launcher's part has been read. */
    bool (*knows)(const dt_launcher *launcher);
    /* `folder`: where the script lies, from which files are named too; NULL: none. */
    dt_status (*convert)(dt_draft *draft, const dt_launcher *launcher, const char *folder,
                         dt_error *err);
} dt_convert_tool;

extern const dt_convert_tool dt_tool_fairseq, dt_tool_llmc, dt_tool_nanogpt;

/* NULL-terminated. */
extern const dt_convert_tool *const dt_convert_tools[];

/* The first command of the script that a tool knows (any, or `tool` alone), into the draft; those inside of
 * "bash -c", "eval" and "ssh HOST" too. `job`: the nodes and devices that it runs on, or NULL. *found: which tool it
 * was; NULL: there is none. */
dt_status dt_tools_convert(const dt_convert_tool **found, dt_draft *draft,
                           const dt_shell_script *script, const dt_launcher *job,
                           const dt_convert_tool *tool, const char *folder, dt_error *err);

/* An #SBATCH script: its nodes, and what it starts where a tool knows that. */
dt_status dt_slurm_convert(dt_draft *draft, const char *text, size_t length, const char *path,
                           dt_error *err);

#endif
