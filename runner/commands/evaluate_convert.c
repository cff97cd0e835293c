/* dtrun evaluate --convert: writes files of tasks from those of published benchmarks. */
#include <string.h>

#include "runner/benchmarks/benchmarks.h"
#include "runner/cli/report.h"
#include "runner/commands/evaluate_convert.h"

static dt_status check_options(const dt_call *call, dt_error *err)
{
    static const char *const allowed[] = {"convert", "output", "force", "json", NULL};
    const dt_arguments *args = call->args;

    for (size_t i = 0, k; i < args->options_count; i++) {
        for (k = 0; allowed[k] != NULL && strcmp(allowed[k], args->options[i].name) != 0;)
            k++;
        if (args->values[i].given && allowed[k] == NULL)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "--convert and --%s cannot be combined: convert the files first",
                           args->options[i].name);
    }
    if (call->json && !dt_arguments_get(args, "output")->given)
        return DT_FAIL(err, DT_ERR_USAGE, "--convert with --json needs --output FILE");
    return DT_OK;
}

static dt_status report(const dt_converted *counts, int form, const dt_call *call, dt_error *err)
{
    const char *path = dt_arguments_get(call->args, "output")->text;
    json_t *object;

    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "benchmark", json_string(dt_benchmark_names[form]));
        json_object_set_new(object, "file", dt_json_text(path));
        json_object_set_new(object, "rows", json_integer(counts->rows));
        return dt_report_json(object, err);
    }
    if (path != NULL)
        dt_report_note(call, "wrote %lld rows to %s: dtrun evaluate MODEL --task %s",
                       (long long)counts->rows, path, path);
    return DT_OK;
}

dt_status dt_evaluate_convert(dt_call *call, dt_error *err)
{
    const dt_arguments *args = call->args;
    int form = dt_arguments_get(args, "convert")->choice;
    dt_converted counts;
    dt_output output;
    dt_status st = DT_OK;
    dt_strbuf lines;

    dt_strbuf_init(&lines);
    DT_TRY(check_options(call, err));
    DT_TRY(dt_benchmark_convert(&lines, &counts, form, (const char *const *)args->operands,
                                (size_t)args->operands_count, err));
    if (counts.unnamed > 0)
        dt_report_note(call,
                       "%lld of %lld rows have no 'subject': their prompts lack the sentence that "
                       "names it",
                       (long long)counts.unnamed, (long long)counts.rows);
    DT_TRY(dt_output_open(&output, dt_arguments_get(args, "output")->text,
                          dt_arguments_flag(args, "force"), call->arena, err));
    dt_strbuf_add(&output.text, lines.data, lines.length);
    DT_TRY(dt_output_close(&output, DT_OK, err));
    DT_TRY(report(&counts, form, call, err));
out:
    dt_strbuf_release(&lines);
    return st;
}
