#include "runner/supervisor/folder/copies.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"

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
