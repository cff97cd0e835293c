/* forget: removes the files of an ended run on a node (remote_helper/forget.c). */
#include <stdio.h>
#include <string.h>

#include "runner/node_setup/node_setup.h"
#include "runner/node_setup/node_setup_int.h"

#define FORGET_SECONDS 30.0
#define WIPE_SECONDS   300.0
#define NAMES_MAX      5
#define TOPS_MAX       20

/* Adds the first names, and the recipe's line that brings all of them: its paths are folders and files of
 * the workdir. */
static void add_names(dt_strbuf *out, const json_t *paths, long long count)
{
    json_t *tops = json_object(), *path;
    const char *top;
    json_t *unused;
    int64_t named = 0;
    size_t i;

    json_array_foreach((json_t *)paths, i, path) {
        const char *text = json_string_value(path),
                   *slash = text != NULL ? strchr(text, '/') : NULL;

        if (text == NULL)
            continue;
        if (i < NAMES_MAX)
            dt_strbuf_add_fmt(out, "%s'%s'", i > 0 ? ", " : ": ", text);
        json_object_setn_new(tops, text, slash != NULL ? (size_t)(slash - text) + 1 : strlen(text),
                             json_true());
    }
    if (count > NAMES_MAX)
        dt_strbuf_add_fmt(out, " and %lld more", count - NAMES_MAX);
    if (json_object_size(tops) > 0 && json_object_size(tops) <= TOPS_MAX) {
        dt_strbuf_add_str(out, "; the line 'collect: [");
        json_object_foreach(tops, top, unused)
            dt_strbuf_add_fmt(out, "%s%s", named++ > 0 ? ", " : "", top);
        dt_strbuf_add_str(out, "]' in the recipe brings them here");
    }
    json_decref(tops);
}

/* Reads a line "files COUNT BYTES PATHS". */
static void read_files(dt_strbuf *files, const char *line, const char *end,
                       const dt_node_layout *layout)
{
    json_t *paths = NULL;
    long long count, bytes;
    int used = 0;

    if (sscanf(line, "files %lld %lld %n", &count, &bytes, &used) != 2 || count <= 0)
        return;
    dt_strbuf_add_fmt(files, "%lld %s (%.1f MB) in '%s'", count, count == 1 ? "file" : "files",
                      (double)bytes / 1e6, layout->workdir);
    if (used > 0 && line + used < end &&
        dt_json_parse(&paths, line + used, (size_t)(end - line - used), "files", NULL) == DT_OK)
        add_names(files, paths, count);
    json_decref(paths);
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
            read_files(files, line, end, layout);
        else if (strncmp(line, "kept ", 5) == 0)
            dt_strbuf_add_fmt(kept, "%s%.*s", kept->length > 0 ? ", " : "", (int)(end - line - 5),
                              line + 5);
out:
    dt_strbuf_release(&answer);
    return st;
}

dt_status dt_node_wipe(const dt_node_layout *layout, dt_error *err)
{
    dt_bootstrap bootstrap = {0};
    json_t *facts = NULL;
    const char *agent;
    dt_strbuf answer;
    dt_status st = DT_OK;
    dt_arena arena;
    int64_t skew_ms;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&answer);
    if (layout->here)
        goto out;
    DT_TRY(dt_bootstrap_init(&bootstrap, &arena, err));
    DT_TRY(dt_bootstrap_probe(&facts, &skew_ms, &bootstrap, layout->node, "-", NULL, err));
    DT_TRY(dt_bootstrap_agent(&agent, &bootstrap, layout->node, facts, &arena, err));
    {
        const char *const words[] = {agent, "node", "wipe", layout->folder, NULL};

        DT_TRY(dt_nodes_ask(&answer, layout->node, words, NULL, 0, WIPE_SECONDS, NULL, err));
    }
out:
    json_decref(facts);
    dt_bootstrap_release(&bootstrap);
    dt_strbuf_release(&answer);
    dt_arena_release(&arena);
    return st;
}
