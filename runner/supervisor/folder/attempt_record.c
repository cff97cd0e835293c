#define _GNU_SOURCE
#include "runner/supervisor/folder/attempt_record.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "recipes/fields/version.h"

#include "base/banned.h"

#define NAME      "history.json"
#define MAX_BYTES ((size_t)16 << 20)
#define VERSION   1

static void write_path(dt_strbuf *out, const char *folder, int64_t attempt)
{
    dt_strbuf_reset(out);
    dt_strbuf_add_fmt(out, "%s/attempt-%lld/" NAME, folder, (long long)attempt);
}

bool dt_attempt_record_exists(const char *folder, int64_t attempt)
{
    dt_strbuf path;
    bool there;

    dt_strbuf_init(&path);
    write_path(&path, folder, attempt);
    there = dt_file_exists(path.data);
    dt_strbuf_release(&path);
    return there;
}

int64_t dt_attempt_record_newest(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int64_t newest = 0;
    long long attempt;

    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (sscanf(entry->d_name, "attempt-%lld", &attempt) == 1 && attempt > newest &&
            dt_attempt_record_exists(folder, attempt))
            newest = attempt;
    if (dir != NULL)
        closedir(dir);
    return newest;
}

/* --- to the file */

static json_t *nodes_to_json(const dt_attempt_record *record)
{
    json_t *nodes = json_array();

    for (int64_t i = 0; i < record->node_count; i++)
        json_array_append_new(nodes, json_pack("{s:o, s:o, s:I}", "name",
                                               dt_json_text(record->nodes[i].name), "state",
                                               dt_json_text(record->nodes[i].state), "acknowledged",
                                               (json_int_t)record->nodes[i].acknowledged));
    return nodes;
}

static json_t *to_json(const dt_attempt_record *record)
{
    const dt_run *run = &record->run;
    json_t *json = json_object();

    json_object_set_new(json, "version", json_integer(VERSION));
    json_object_set_new(json, "run", json_string(run->id));
    json_object_set_new(json, "name", dt_json_text(run->name));
    json_object_set_new(json, "attempt", json_integer(run->attempt));
    json_object_set_new(json, "state", json_string(dt_run_state_name(run->state)));
    json_object_set_new(json, "stop_asked", json_boolean(record->stop_asked));
    json_object_set_new(json, "exit_code", json_integer(run->exit_code));
    json_object_set_new(json, "reason", dt_json_text(run->reason));
    json_object_set_new(json, "run_created_ms", json_integer(run->created_ms));
    json_object_set_new(json, "created_ms", json_integer(record->created_ms));
    json_object_set_new(json, "started_ms", json_integer(run->started_ms));
    json_object_set_new(json, "first_step_ms", json_integer(run->first_step_ms));
    json_object_set_new(json, "ended_ms", json_integer(run->ended_ms));
    json_object_set_new(json, "start_step", json_integer(record->start_step));
    json_object_set_new(json, "step", json_integer(run->step));
    json_object_set_new(json, "steps_total", json_integer(run->steps_total));
    json_object_set_new(json, "loss", dt_json_number(run->loss));
    json_object_set_new(json, "valid_loss", dt_json_number(run->valid_loss));
    json_object_set_new(json, "tokens_per_second", dt_json_number(run->tokens_per_second));
    json_object_set_new(json, "recipe_path", dt_json_text(run->recipe_path));
    json_object_set_new(json, "recipe_json", dt_json_text(run->recipe_json));
    json_object_set_new(json, "recipe_hash", dt_json_text(run->recipe_hash));
    json_object_set_new(json, "changes_json", dt_json_text(record->changes_json));
    json_object_set_new(json, "provenance_json", dt_json_text(record->provenance_json));
    json_object_set_new(json, "nodes", nodes_to_json(record));
    return json;
}

dt_status dt_attempt_record_write(const dt_attempt_record *record, const char *folder,
                                  dt_error *err)
{
    json_t *json = to_json(record);
    dt_strbuf path, text;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    write_path(&path, folder, record->run.attempt);
    dt_json_write_pretty(&text, json);
    st = dt_file_write_atomic(path.data, text.data, text.length, 0600, err);
    dt_strbuf_release(&text);
    dt_strbuf_release(&path);
    json_decref(json);
    return st;
}

/* --- from the file */

typedef struct reading {
    const json_t *json;
    const char *where;
    dt_arena *arena;
} reading;

static dt_status read_text(const char **out, const reading *from, const char *key, dt_error *err)
{
    const char *text;
    dt_status st = dt_json_get_string(&text, from->json, key, from->where, err);

    if (st != DT_OK)
        return st;
    *out = dt_arena_strdup(from->arena, text);
    return DT_OK;
}

static dt_status read_texts(dt_attempt_record *out, const reading *from, dt_error *err)
{
    dt_run *run = &out->run;
    dt_status st;

    DT_TRY(read_text(&run->id, from, "run", err));
    DT_TRY(read_text(&run->name, from, "name", err));
    DT_TRY(read_text(&run->reason, from, "reason", err));
    DT_TRY(read_text(&run->recipe_path, from, "recipe_path", err));
    DT_TRY(read_text(&run->recipe_json, from, "recipe_json", err));
    DT_TRY(read_text(&run->recipe_hash, from, "recipe_hash", err));
    DT_TRY(read_text(&out->changes_json, from, "changes_json", err));
    DT_TRY(read_text(&out->provenance_json, from, "provenance_json", err));
out:
    return st;
}

static dt_status read_numbers(dt_attempt_record *out, const reading *from, dt_error *err)
{
    dt_run *run = &out->run;
    struct {
        const char *key;
        int64_t *value;
    } const fields[] = {{"attempt", &run->attempt},
                        {"run_created_ms", &run->created_ms},
                        {"created_ms", &out->created_ms},
                        {"started_ms", &run->started_ms},
                        {"first_step_ms", &run->first_step_ms},
                        {"ended_ms", &run->ended_ms},
                        {"start_step", &out->start_step},
                        {"step", &run->step},
                        {"steps_total", &run->steps_total}};
    dt_status st = DT_OK;

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && st == DT_OK; i++)
        st = dt_json_get_int(fields[i].value, from->json, fields[i].key, from->where, err);
    return st;
}

static dt_status read_nodes(dt_attempt_record *out, const reading *from, dt_error *err)
{
    json_t *array, *entry;
    dt_status st = DT_OK;
    dt_node *nodes;
    size_t i;

    DT_TRY(dt_json_get_array(&array, from->json, "nodes", from->where, err));
    nodes = dt_arena_alloc_array(from->arena, json_array_size(array) + 1, sizeof(*nodes));
    json_array_foreach(array, i, entry) {
        const reading one = {entry, from->where, from->arena};

        nodes[i] = (dt_node){.node = (int64_t)i};
        DT_TRY(read_text(&nodes[i].name, &one, "name", err));
        DT_TRY(read_text(&nodes[i].state, &one, "state", err));
        DT_TRY(dt_json_get_int(&nodes[i].acknowledged, entry, "acknowledged", from->where, err));
    }
    out->nodes = nodes;
    out->node_count = (int64_t)json_array_size(array);
out:
    return st;
}

static double read_real(const reading *from, const char *key)
{
    const json_t *value = json_object_get(from->json, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static dt_status read_end(dt_attempt_record *out, const reading *from, dt_error *err)
{
    const char *state;
    int64_t code;
    dt_status st;

    DT_TRY(dt_json_get_string(&state, from->json, "state", from->where, err));
    DT_TRY(dt_json_get_int(&code, from->json, "exit_code", from->where, err));
    DT_TRY(dt_json_get_bool(&out->stop_asked, from->json, "stop_asked", from->where, err));
    if (!dt_run_state_parse(&out->run.state, state))
        DT_THROW(err, DT_ERR_CORRUPT, "%s: unknown state '%s'", from->where, state);
    out->run.exit_code = (int)code;
out:
    return st;
}

dt_status dt_attempt_record_read(dt_attempt_record *out, const char *folder, int64_t attempt,
                                 dt_arena *arena, dt_error *err)
{
    json_t *json = NULL;
    dt_strbuf path;
    reading from;
    dt_status st;

    *out = (dt_attempt_record){0};
    dt_strbuf_init(&path);
    write_path(&path, folder, attempt);
    DT_TRY(dt_json_read(&json, path.data, MAX_BYTES, err));
    from = (reading){json, path.data, arena};
    DT_TRY(dt_version_check(json, "version", VERSION, path.data, err));
    DT_TRY(read_texts(out, &from, err));
    DT_TRY(read_numbers(out, &from, err));
    DT_TRY(read_end(out, &from, err));
    DT_TRY(read_nodes(out, &from, err));
    if (out->run.attempt != attempt)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' belongs to attempt %lld", path.data,
                 (long long)out->run.attempt);
    out->run.loss = read_real(&from, "loss");
    out->run.valid_loss = read_real(&from, "valid_loss");
    out->run.tokens_per_second = read_real(&from, "tokens_per_second");
    out->run.boot_id = out->run.recipe_text = "";
out:
    json_decref(json);
    dt_strbuf_release(&path);
    return st;
}
