/* node_layout: reads and writes attempt-N/node-K/place.json, the paths on a node. */
#include <string.h>

#include "base/file.h"
#include "runner/node_setup/node_setup_int.h"

#define PLACE_MAX_BYTES ((size_t)4 << 20)
#define PLACE_FILE      DT_NODE_LAYOUT_FILE

dt_status dt_node_layout_write(const dt_node_layout *layout, const char *here, dt_error *err)
{
    json_t *json =
        json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:s, s:b, s:o}", "node", layout->node, "here",
                  (int)layout->here, "agent", layout->agent, "engine", layout->engine, "folder",
                  layout->folder, "checkpoints", layout->checkpoints, "address", layout->address,
                  "checkpoints_shared", (int)layout->checkpoints_shared, "paths",
                  layout->paths != NULL ? json_incref(layout->paths) : json_object());
    dt_strbuf path, text;
    dt_status st = DT_OK;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    if (json == NULL)
        DT_THROW(err, DT_ERR_CORRUPT, "cannot write the paths of node '%s' as JSON", layout->node);
    if (layout->other_address != NULL)
        json_object_set_new(json, "other_address", json_string(layout->other_address));
    if (layout->workdir != NULL)
        json_object_set_new(json, "workdir", json_string(layout->workdir));
    if (layout->saved != NULL)
        json_object_set_new(json, "saved", json_string(layout->saved));
    if (layout->setup != NULL)
        json_object_set_new(json, "setup", json_string(layout->setup));
    dt_strbuf_add_fmt(&path, "%s/" PLACE_FILE, here);
    dt_json_write_pretty(&text, json);
    DT_TRY(dt_file_make_dirs(here, 0700, err));
    DT_TRY(dt_file_write_atomic(path.data, text.data, text.length, 0600, err));
out:
    json_decref(json);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

/* Copies a string into the arena, so that it outlives the document. */
static dt_status take_string(const char **out, const json_t *json, const char *key, dt_arena *arena,
                             dt_error *err)
{
    const char *text;
    dt_status st = dt_json_get_string(&text, json, key, PLACE_FILE, err);

    if (st != DT_OK)
        return st;
    *out = dt_arena_strdup(arena, text);
    return DT_OK;
}

dt_status dt_node_layout_parse(dt_node_layout *out, const char *text, dt_arena *arena,
                               dt_error *err)
{
    json_t *json = NULL;
    dt_status st;

    *out = (dt_node_layout){0};
    DT_TRY(dt_json_parse(&json, text, strlen(text), PLACE_FILE, err));
    DT_TRY(take_string(&out->node, json, "node", arena, err));
    DT_TRY(take_string(&out->agent, json, "agent", arena, err));
    DT_TRY(take_string(&out->engine, json, "engine", arena, err));
    DT_TRY(take_string(&out->folder, json, "folder", arena, err));
    DT_TRY(take_string(&out->checkpoints, json, "checkpoints", arena, err));
    DT_TRY(take_string(&out->address, json, "address", arena, err));
    if (json_object_get(json, "other_address") != NULL)
        DT_TRY(take_string(&out->other_address, json, "other_address", arena, err));
    if (json_object_get(json, "workdir") != NULL)
        DT_TRY(take_string(&out->workdir, json, "workdir", arena, err));
    if (json_object_get(json, "saved") != NULL)
        DT_TRY(take_string(&out->saved, json, "saved", arena, err));
    if (json_object_get(json, "setup") != NULL)
        DT_TRY(take_string(&out->setup, json, "setup", arena, err));
    DT_TRY(dt_json_get_bool(&out->here, json, "here", PLACE_FILE, err));
    DT_TRY(dt_json_get_bool(&out->checkpoints_shared, json, "checkpoints_shared", PLACE_FILE, err));
    DT_TRY(dt_json_get_object(&out->paths, json, "paths", PLACE_FILE, err));
    json_incref(out->paths);
out:
    json_decref(json);
    return st;
}

dt_status dt_node_layout_read(dt_node_layout *out, const char *here, dt_arena *arena, dt_error *err)
{
    dt_strbuf path, text;
    dt_status st;

    *out = (dt_node_layout){0};
    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/" PLACE_FILE, here);
    DT_TRY(dt_file_read(&text, path.data, PLACE_MAX_BYTES, err));
    DT_TRY(dt_node_layout_parse(out, text.data, arena, err));
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}
