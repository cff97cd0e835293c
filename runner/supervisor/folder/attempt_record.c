/* attempt_record: reads and writes what exists twice of an attempt, in the run's folder and in the store. */
#include "runner/supervisor/folder/attempt_record.h"

#include <dirent.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "recipes/fields/fields.h"

/* --- history.json */

#define NAME      "history.json"
#define MAX_BYTES ((size_t)16 << 20)
#define VERSION   1

static void write_path(dt_strbuf *out, const char *folder, int64_t attempt)
{
    dt_strbuf_reset(out);
    dt_strbuf_add_fmt(out, "%s/attempt-%lld/" NAME, folder, (long long)attempt);
}

static bool attempt_record_exists(const char *folder, int64_t attempt)
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
            attempt_record_exists(folder, attempt))
            newest = attempt;
    if (dir != NULL)
        closedir(dir);
    return newest;
}

/* --- the keys of the file, in their order */

typedef enum type { TEXT, INTEGER, INT, REAL, BOOL, STATE } type;

typedef struct field {
    const char *key;
    type type; /* type of the member: const char *, int64_t, int, double (NaN: null,
              * infinite: "nan"), bool, dt_run_state */
    size_t offset;
} field;

#define AT(member) offsetof(dt_attempt_record, member)

static const field fields[] = {
    {"run", TEXT, AT(run.id)},
    {"name", TEXT, AT(run.name)},
    {"attempt", INTEGER, AT(run.attempt)},
    {"state", STATE, AT(run.state)},
    {"stop_asked", BOOL, AT(stop_asked)},
    {"exit_code", INT, AT(run.exit_code)},
    {"reason", TEXT, AT(run.reason)},
    {"run_created_ms", INTEGER, AT(run.created_ms)},
    {"created_ms", INTEGER, AT(created_ms)},
    {"started_ms", INTEGER, AT(run.started_ms)},
    {"first_step_ms", INTEGER, AT(run.first_step_ms)},
    {"ended_ms", INTEGER, AT(run.ended_ms)},
    {"start_step", INTEGER, AT(start_step)},
    {"step", INTEGER, AT(run.step)},
    {"steps_total", INTEGER, AT(run.steps_total)},
    {"loss", REAL, AT(run.loss)},
    {"valid_loss", REAL, AT(run.valid_loss)},
    {"tokens_per_second", REAL, AT(run.tokens_per_second)},
    {"recipe_path", TEXT, AT(run.recipe_path)},
    {"recipe_json", TEXT, AT(run.recipe_json)},
    {"recipe_hash", TEXT, AT(run.recipe_hash)},
    {"changes_json", TEXT, AT(changes_json)},
    {"provenance_json", TEXT, AT(provenance_json)},
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static json_t *field_to_json(const field *one, const void *member)
{
    switch (one->type) {
    case TEXT:
        return dt_json_text(*(const char *const *)member);
    case INTEGER:
        return json_integer(*(const int64_t *)member);
    case INT:
        return json_integer(*(const int *)member);
    case REAL:
        return isinf(*(const double *)member) ? json_string("nan")
                                              : dt_json_number(*(const double *)member);
    case BOOL:
        return json_boolean(*(const bool *)member);
    case STATE:
        return json_string(dt_run_state_name(*(const dt_run_state *)member));
    }
    return NULL;
}

static dt_status field_from_json(void *member, const field *one, const json_t *json,
                                 const char *where, dt_arena *arena, dt_error *err)
{
    const json_t *value = json_object_get(json, one->key);
    const char *text;
    int64_t number;
    dt_status st = DT_OK;

    switch (one->type) {
    case TEXT:
        DT_TRY(dt_json_get_string(&text, json, one->key, where, err));
        *(const char **)member = dt_arena_strdup(arena, text);
        break;
    case INTEGER:
        DT_TRY(dt_json_get_int(member, json, one->key, where, err));
        break;
    case INT:
        DT_TRY(dt_json_get_int(&number, json, one->key, where, err));
        *(int *)member = (int)number;
        break;
    case REAL:
        *(double *)member = json_is_number(value)   ? json_number_value(value)
                            : json_is_string(value) ? INFINITY
                                                    : NAN;
        break;
    case BOOL:
        DT_TRY(dt_json_get_bool(member, json, one->key, where, err));
        break;
    case STATE:
        DT_TRY(dt_json_get_string(&text, json, one->key, where, err));
        if (!dt_run_state_parse(member, text))
            DT_THROW(err, DT_ERR_CORRUPT, "%s: unknown state '%s'", where, text);
        break;
    }
out:
    return st;
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

dt_status dt_attempt_record_write(const dt_attempt_record *record, const char *folder,
                                  dt_error *err)
{
    json_t *json = json_object();
    dt_strbuf path, text;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    write_path(&path, folder, record->run.attempt);
    json_object_set_new(json, "version", json_integer(VERSION));
    for (size_t i = 0; i < FIELDS; i++)
        json_object_set_new(json, fields[i].key,
                            field_to_json(&fields[i], (const char *)record + fields[i].offset));
    json_object_set_new(json, "nodes", nodes_to_json(record));
    dt_json_write_pretty(&text, json);
    st = dt_file_write_atomic(path.data, text.data, text.length, 0600, err);
    dt_strbuf_release(&text);
    dt_strbuf_release(&path);
    json_decref(json);
    return st;
}

/* --- from the file */

static dt_status read_nodes(dt_attempt_record *out, const json_t *json, const char *where,
                            dt_arena *arena, dt_error *err)
{
    json_t *array, *entry;
    const char *name, *state;
    dt_status st = DT_OK;
    dt_node *nodes;
    size_t i;

    DT_TRY(dt_json_get_array(&array, json, "nodes", where, err));
    nodes = dt_arena_alloc_array(arena, json_array_size(array) + 1, sizeof(*nodes));
    json_array_foreach(array, i, entry) {
        DT_TRY(dt_json_get_string(&name, entry, "name", where, err));
        DT_TRY(dt_json_get_string(&state, entry, "state", where, err));
        nodes[i] = (dt_node){.node = (int64_t)i,
                             .name = dt_arena_strdup(arena, name),
                             .state = dt_arena_strdup(arena, state)};
        DT_TRY(dt_json_get_int(&nodes[i].acknowledged, entry, "acknowledged", where, err));
    }
    out->nodes = nodes;
    out->node_count = (int64_t)json_array_size(array);
out:
    return st;
}

dt_status dt_attempt_record_read(dt_attempt_record *out, const char *folder, int64_t attempt,
                                 dt_arena *arena, dt_error *err)
{
    json_t *json = NULL;
    dt_strbuf path;
    dt_status st;

    *out = (dt_attempt_record){0};
    dt_strbuf_init(&path);
    write_path(&path, folder, attempt);
    DT_TRY(dt_json_read(&json, path.data, MAX_BYTES, err));
    DT_TRY(dt_version_check(json, "version", VERSION, path.data, err));
    for (size_t i = 0; i < FIELDS; i++)
        DT_TRY(field_from_json((char *)out + fields[i].offset, &fields[i], json, path.data, arena,
                               err));
    DT_TRY(read_nodes(out, json, path.data, arena, err));
    if (out->run.attempt != attempt)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' belongs to attempt %lld", path.data,
                 (long long)out->run.attempt);
    out->run.boot_id = out->run.recipe_text = "";
out:
    json_decref(json);
    dt_strbuf_release(&path);
    return st;
}

/* A text in the file cannot have a line break, so the first line that begins so has the state. */
bool dt_attempt_record_may_have_ended(const char *folder, int64_t attempt)
{
    static const char key[] = "\n  \"state\": \"";
    char begin[1024] = "", *name;
    dt_run_state state;
    dt_strbuf path;
    FILE *file;

    dt_strbuf_init(&path);
    write_path(&path, folder, attempt);
    file = fopen(path.data, "re");
    dt_strbuf_release(&path);
    if (file != NULL) {
        begin[fread(begin, 1, sizeof(begin) - 1, file)] = '\0';
        fclose(file);
    }
    name = strstr(begin, key);
    if (name == NULL)
        return true;
    name += sizeof(key) - 1;
    name[strcspn(name, "\"")] = '\0';
    return !dt_run_state_parse(&state, name) || dt_run_state_is_terminal(state);
}

/* --- plan.json and place.json */

#define MAX_BYTES ((size_t)16 << 20)

/* Chooses between the file and the copy in the store; a text is "" if it does not exist. */
typedef enum choice { FILE_ALONE, BOTH_AGREE, COPY_ALONE, NEITHER } choice;

static choice choose(const char *file, bool file_good, const char *copy, bool copy_good)
{
    if (copy_good)
        return strcmp(file, copy) == 0 ? BOTH_AGREE : COPY_ALONE;
    return file_good ? FILE_ALONE : NEITHER;
}

static bool is_text(const dt_strbuf *bytes)
{
    return strlen(bytes->data) == bytes->length; /* a NUL byte means damage */
}

static void write_again(const char *path, const char *text)
{
    dt_error problem = DT_ERROR_INIT;

    dt_log_warn("'%s' is damaged: restored from the copy in the run store", path);
    if (dt_file_write_atomic(path, text, strlen(text), 0600, &problem) != DT_OK)
        dt_log_warn("%s", problem.message); /* the copy is used */
}

/* --- plan.json */

static dt_status parse_plan(dt_plan *plan, json_t **json, const char *text, const char *path,
                            const char *run, int64_t attempt, dt_arena *arena, dt_error *err)
{
    dt_status st;

    *json = NULL;
    DT_TRY(dt_json_parse(json, text, strlen(text), path, err));
    DT_TRY(dt_plan_from_json(plan, *json, arena, err));
    if (strcmp(plan->run, run) != 0 || plan->attempt != attempt)
        DT_THROW(err, DT_ERR_CORRUPT, "it is for run '%s', attempt %lld", plan->run,
                 (long long)plan->attempt);
out:
    if (st != DT_OK) {
        json_decref(*json);
        *json = NULL;
    }
    return st;
}

dt_status dt_copies_plan(dt_plan *plan, json_t **json, bool *restored, dt_store *store,
                         const char *run, int64_t attempt, const char *folder, dt_arena *arena,
                         dt_error *err)
{
    dt_error problem = DT_ERROR_INIT, copy_problem = DT_ERROR_INIT;
    json_t *from_copy = NULL, *from_file = NULL;
    dt_status st, file_st, copy_st = DT_ERR_NOT_FOUND;
    dt_strbuf path, file;
    dt_plan copied, read;
    const char *copy;

    *json = NULL;
    *restored = false;
    dt_strbuf_init(&path);
    dt_strbuf_init(&file);
    dt_strbuf_add_fmt(&path, "%s/attempt-%lld/plan.json", folder, (long long)attempt);
    DT_TRY(dt_store_plan_get(store, &copy, run, attempt, arena, err));
    file_st = dt_file_read(&file, path.data, MAX_BYTES, &problem);
    if (file_st == DT_OK && !is_text(&file))
        file_st = DT_FAIL(&problem, DT_ERR_CORRUPT, "it is not text");
    if (file_st == DT_OK)
        file_st =
            parse_plan(&read, &from_file, file.data, "plan.json", run, attempt, arena, &problem);
    if (copy[0] != '\0')
        copy_st = parse_plan(&copied, &from_copy, copy, "plan", run, attempt, arena, &copy_problem);
    if (copy_st == DT_ERR_UNSUPPORTED) /* the copy is authoritative, and of another version */
        DT_THROW(err, copy_st, "the plan '%s': %s", path.data, copy_problem.message);
    switch (choose(file.data, file_st == DT_OK, copy, from_copy != NULL)) {
    case COPY_ALONE:
        *restored = true;
        write_again(path.data, copy);
        /* fallthrough */
    case BOTH_AGREE:
        *plan = copied;
        *json = json_incref(from_copy);
        break;
    case FILE_ALONE:
        DT_TRY(dt_store_plan_set(store, run, attempt, file.data, err));
        *plan = read;
        *json = json_incref(from_file);
        break;
    case NEITHER:
        DT_THROW(err, file_st, "the plan '%s': %s", path.data, problem.message);
    }
out:
    json_decref(from_copy);
    json_decref(from_file);
    dt_strbuf_release(&path);
    dt_strbuf_release(&file);
    return st;
}

/* --- place.json */

dt_status dt_copies_place(dt_node_layout *place, bool *restored, dt_store *store, const char *run,
                          int64_t attempt, int64_t node, const char *here, dt_arena *arena,
                          dt_error *err)
{
    dt_node_layout copied = {0}, read = {0};
    dt_error problem = DT_ERROR_INIT;
    const char *copy = "";
    dt_status st = DT_OK, file_st;
    dt_strbuf path, file;

    *place = (dt_node_layout){0};
    *restored = false;
    dt_strbuf_init(&path);
    dt_strbuf_init(&file);
    dt_strbuf_add_fmt(&path, "%s/" DT_NODE_LAYOUT_FILE, here);
    if (store != NULL)
        DT_TRY(dt_store_place_get(store, &copy, run, attempt, node, arena, err));
    file_st = dt_file_read(&file, path.data, MAX_BYTES, &problem);
    if (file_st == DT_OK && !is_text(&file))
        file_st = DT_FAIL(&problem, DT_ERR_CORRUPT, "it is not text");
    if (file_st == DT_OK)
        file_st = dt_node_layout_parse(&read, file.data, arena, &problem);
    if (copy[0] != '\0')
        (void)dt_node_layout_parse(&copied, copy, arena, NULL);
    switch (choose(file.data, file_st == DT_OK, copy, copied.paths != NULL)) {
    case COPY_ALONE:
        *restored = true;
        write_again(path.data, copy);
        /* fallthrough */
    case BOTH_AGREE:
        *place = copied;
        copied.paths = NULL;
        break;
    case FILE_ALONE:
        dt_error_clear(&problem);
        if (store != NULL &&
            dt_store_place_set(store, run, attempt, node, file.data, &problem) != DT_OK)
            dt_log_warn("cannot copy '%s' to the run store now: %s", path.data, problem.message);
        *place = read;
        read.paths = NULL;
        break;
    case NEITHER:
        DT_THROW(err, file_st, "'%s': %s", path.data, problem.message);
    }
out:
    json_decref(copied.paths);
    json_decref(read.paths);
    dt_strbuf_release(&path);
    dt_strbuf_release(&file);
    return st;
}
