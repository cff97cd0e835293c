/* prepare_node: dt_node_prepare as a command, for scripts.
 *
 *   prepare_node NODE RUN FOLDER PLAN.json    prints the place as JSON; progress on stderr
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "runner/node_setup/node_setup.h"

static void print_progress(void *context, const char *text)
{
    fprintf(stderr, "... %s\n", text);
}

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;
    dt_node_layout place = {0};
    dt_status st = DT_OK;
    json_t *plan = NULL;
    dt_strbuf text, path;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    dt_strbuf_init(&path);
    if (argc != 5)
        return 2;
    DT_TRY(dt_json_read(&plan, argv[4], 1 << 20, &err));
    dt_strbuf_add_fmt(&path, "%s/checkpoints", argv[3]);
    {
        dt_prepare_request request = {.node = argv[1],
                                      .run = argv[2],
                                      .attempt = 1,
                                      .node_count =
                                          (int64_t)json_array_size(json_object_get(plan, "nodes")),
                                      .here = argv[3],
                                      .checkpoints_here = path.data,
                                      .plan = plan,
                                      .progress = print_progress};

        DT_TRY(dt_node_prepare(&place, &request, &arena, &err));
    }
    DT_TRY(dt_node_layout_write(&place, argv[3], &err));
    dt_strbuf_reset(&path);
    dt_strbuf_add_fmt(&path, "%s/place.json", argv[3]);
    DT_TRY(dt_file_read(&text, path.data, 1 << 20, &err));
    fputs(text.data, stdout);
out:
    if (st != DT_OK)
        fprintf(stderr, "%s: %s\n", dt_status_name(err.code), err.message);
    json_decref(plan);
    json_decref(place.paths);
    dt_strbuf_release(&text);
    dt_strbuf_release(&path);
    dt_arena_release(&arena);
    return st != DT_OK;
}
