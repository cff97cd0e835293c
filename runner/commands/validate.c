/* dtrun validate: recipes and their data, checked without starting anything. */
#include <string.h>

#include "recipes/fields.h"
#include "runner/cli/command.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/launch/preflight.h"
#include "runner/term/format.h"

#include "base/banned.h"

enum { HASH_SIZE = 33 };

typedef struct verdict {
    char hash[HASH_SIZE];
    dt_preflight flight;
    dt_error tight; /* why it does not fit the memory of this machine; no message: it does */
} verdict;

static dt_status check(verdict *out, const char *path, const dt_call *call, dt_error *err)
{
    dt_recipe_source source;
    dt_status st = DT_OK;
    dt_recipe recipe;

    DT_TRY(dt_read_recipe(&recipe, &source, path, dt_arguments_get(call->args, "set"), call->arena,
                          err));
    st = dt_preflight_recipe(&out->flight, &recipe, &source, call->arena, err);
    if (st != DT_OK) {
        if (strncmp(err->message, path, strlen(path)) != 0 &&
            strncmp(err->message, "--set ", 6) != 0) /* most say by themselves where it stands */
            dt_error_prefix(err, "%s", path);
        goto out;
    }
    dt_recipe_hash(out->hash, &recipe);
    (void)dt_preflight_fits_here(&out->flight, &recipe, &out->tight);
out:
    return st;
}

static json_t *to_json(const char *path, const verdict *good, const dt_error *problem)
{
    json_t *object = json_object(), *warnings = good != NULL ? json_array() : NULL;

    json_object_set_new(object, "path", dt_json_text(path));
    json_object_set_new(object, "valid", json_boolean(good != NULL));
    if (good != NULL) {
        json_object_set_new(object, "hash", json_string(good->hash));
        json_object_set_new(object, "parameters",
                            json_integer(good->flight.memory.parameter_count));
        json_object_set_new(object, "ranks", json_integer(good->flight.plan.world_size));
        json_object_set_new(object, "rank_bytes", json_integer(good->flight.memory.total_bytes));
        json_object_set_new(object, "warnings", warnings);
        if (good->tight.message[0] != '\0')
            json_array_append_new(warnings, dt_json_text(good->tight.message));
    } else {
        json_object_set_new(object, "message", dt_json_text(problem->message));
    }
    return object;
}

static void add_text(dt_strbuf *out, const char *path, const verdict *good)
{
    char parameters[DT_FORMAT_SIZE], bytes[DT_FORMAT_SIZE];

    dt_strbuf_add_fmt(
        out, "%s: good (%s parameters, %lld %s of %s memory)\n", path,
        dt_format_count(parameters, sizeof(parameters),
                        (double)good->flight.memory.parameter_count),
        (long long)good->flight.plan.world_size,
        good->flight.plan.world_size == 1 ? "rank" : "ranks",
        dt_format_bytes(bytes, sizeof(bytes), (double)good->flight.memory.total_bytes));
    if (good->tight.message[0] != '\0')
        dt_strbuf_add_fmt(out, "%s: warning: launched here now it would be refused: %s\n", path,
                          good->tight.message);
}

/* One broken recipe does not hide the next: each gets its verdict. */
static dt_status validate(dt_call *call, dt_error *err)
{
    json_t *object = dt_report_object(), *array = json_array();
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (int i = 0; i < call->args->operands_count; i++) {
        verdict good = {.tight = DT_ERROR_INIT};
        const char *path = call->args->operands[i];
        dt_error problem = DT_ERROR_INIT;
        bool valid = check(&good, path, call, &problem) == DT_OK;
        json_array_append_new(array, to_json(path, valid ? &good : NULL, &problem));
        if (valid)
            add_text(&text, path, &good);
        else if (!call->json)
            (void)dt_report_error(call->args->command, false, &problem);
        if (!valid && call->exit_code == DT_EXIT_GOOD)
            call->exit_code = dt_report_exit_code(problem.code);
    }
    json_object_set(object, "recipes", array);
    DT_TRY(call->json ? dt_report_json(json_incref(object), err) : dt_report_text(&text, err));
out:
    json_decref(object);
    json_decref(array);
    dt_strbuf_release(&text);
    return st;
}

static const dt_option options[] = {
    {.name = "set",
     .letter = 's',
     .kind = DT_OPTION_LIST,
     .value = "KEY=VALUE",
     .help = "check with this change, as launch takes it"},
    {0},
};

const dt_command dt_command_validate = {
    .name = "validate",
    .summary = "check recipes and their data without starting anything",
    .operands = "RECIPE...",
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =
        "Every recipe gets a verdict; 2 when any is not good. One that does not fit the memory of\n"
        "this machine is good for another: it gets a warning, with the parts by size.\n",
    .run = validate,
};
