#include "runner/slurm/tool.h"

#include <string.h>

#include "base/child.h"
#include "base/exit.h"

#define ANSWER_MAX_BYTES (1 << 20)

/* Removes the program's prefix from "sbatch: error: Batch job submission failed: Invalid partition". */
static const char *last_words(char *text)
{
    size_t length = strlen(text);
    char *line, *said;

    while (length > 0 && (unsigned char)text[length - 1] <= ' ')
        text[--length] = '\0';
    line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    said = strstr(line, "error: ");
    for (char *p = line; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    return said != NULL ? said + strlen("error: ") : line;
}

dt_status dt_slurm_tool(dt_strbuf *answer, const char *const *argv, const char *input,
                        dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf problems;
    char end[DT_EXIT_WORDS_BYTES];
    const char *words;
    int code = 0;

    dt_strbuf_init(&problems);
    if (answer != NULL)
        dt_strbuf_reset(answer);
    st = dt_child_run(&code,
                      &(dt_child_call){.argv = argv,
                                       .input = input,
                                       .out = answer,
                                       .errors = &problems,
                                       .most_bytes = ANSWER_MAX_BYTES,
                                       .seconds = DT_SLURM_TOOL_SECONDS,
                                       .missing =
                                           "'nodes: slurm' needs Slurm's programs in PATH (Debian: "
                                           "slurm-client; elsewhere often 'module load slurm')"},
                      &problem);
    if (st == DT_ERR_TIMEOUT)
        DT_THROW(err, st, "%s: is Slurm's controller up ('scontrol ping')?", problem.message);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    if (code != 0) {
        words = last_words(problems.data);
        dt_exit_words_of_shell(end, code);
        DT_THROW(err, DT_ERR_IO, "%s%s%.600s", argv[0], words[0] != '\0' ? ": " : " ",
                 words[0] != '\0' ? words : end);
    }
out:
    dt_strbuf_release(&problems);
    return st;
}
