/* forget: removes the files of an ended run on a node (remote_helper/forget.c). */
#include <stdio.h>
#include <string.h>

#include "runner/node_setup/node_setup_int.h"

#include "base/banned.h"

#define FORGET_SECONDS 30.0

/* Reads a line "files COUNT BYTES". */
static void read_files(dt_strbuf *files, const char *line, const dt_node_layout *layout)
{
    long long count, bytes;

    if (sscanf(line, "files %lld %lld", &count, &bytes) == 2 && count > 0)
        dt_strbuf_add_fmt(files, "%lld files (%.1f MB) in '%s'", count, (double)bytes / 1e6,
                          layout->workdir);
}

dt_status dt_node_forget(dt_strbuf *kept, dt_strbuf *files, const dt_node_layout *layout,
                         const char *home, const atomic_bool *cancelled, dt_error *err)
{
    const char *checkpoints = layout->checkpoints_shared ? "-" : layout->checkpoints;
    const char *workdir = layout->workdir != NULL ? layout->workdir : "-";
    const char *const words[] = {layout->agent, "node",  "forget", layout->folder,
                                 checkpoints,   workdir, NULL};
    dt_status st = DT_OK;
    dt_strbuf answer;

    dt_strbuf_init(&answer);
    if (layout->here)
        goto out; /* this machine: the run itself has the files */
    DT_TRY(dt_nodes_ask(&answer, layout->node, words, home, strlen(home), FORGET_SECONDS, cancelled,
                        err));
    for (const char *line = answer.data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        if (strncmp(line, "files ", 6) == 0)
            read_files(files, line, layout);
        else if (strncmp(line, "kept ", 5) == 0)
            dt_strbuf_add_fmt(kept, "%s%.*s", kept->length > 0 ? ", " : "", (int)(end - line - 5),
                              line + 5);
out:
    dt_strbuf_release(&answer);
    return st;
}
