/* on_node: lists or ends what runs on one node, whichever history it belongs to. */
#include <string.h>

#include "runner/cli/report.h"
#include "runner/stop/direct.h"
#include "runner/stop/stop.h"

static void say_running(dt_strbuf *text, const json_t *entry, const char *what)
{
    dt_strbuf_add_fmt(text, "%s attempt %s: %s\n", json_string_value(json_object_get(entry, "run")),
                      json_string_value(json_object_get(entry, "attempt")), what);
}

dt_status dt_stop_on_node(const char *node, const char *ref, dt_call *call, dt_error *err)
{
    bool now = dt_arguments_flag(call->args, "now");
    bool list = ref == NULL && !dt_arguments_flag(call->args, "all");
    json_t *runs = NULL, *entry, *told = json_array();
    dt_status st = DT_OK;
    const char *agent, *wanted = NULL;
    dt_strbuf text;
    size_t i;

    dt_strbuf_init(&text);
    DT_TRY(dt_direct_agent(&agent, node, call->arena, err));
    DT_TRY(dt_direct_running(&runs, agent, node, call->arena, err));
    if (ref != NULL)
        DT_TRY(dt_direct_pick(&wanted, runs, ref, err));
    json_array_foreach(runs, i, entry) {
        const char *folder = json_string_value(json_object_get(entry, "folder"));
        const char *problem = NULL;
        bool stays;
        const char *run = json_string_value(json_object_get(entry, "run"));

        if (folder == NULL || run == NULL ||
            (ref != NULL && (wanted == NULL || strcmp(run, wanted) != 0)))
            continue;
        if (!list)
            DT_TRY(dt_direct_end(&problem, agent, node, folder, now, &stays, call->arena, err));
        if (problem != NULL)
            call->exit_code = DT_EXIT_LEFT;
        say_running(&text, entry,
                    list              ? "is running"
                    : problem != NULL ? problem
                                      : "nothing of it is left");
        json_object_set_new(entry, "stopped", json_boolean(!list && problem == NULL));
        json_array_append(told, entry);
    }
    if (call->json) {
        json_t *object = dt_report_object();

        json_object_set_new(object, "node", dt_json_text(node));
        json_object_set(object, "runs", told);
        DT_TRY(dt_report_json(object, err));
        goto out;
    }
    if (json_array_size(told) == 0)
        dt_strbuf_add_fmt(&text, "nothing of %s runs on %s\n", ref != NULL ? ref : "dtrun", node);
    else if (list)
        dt_strbuf_add_fmt(&text, "'dtrun stop --node %s RUN' stops one, '--all' all of them\n",
                          node);
    DT_TRY(dt_report_text(&text, err));
out:
    json_decref(runs);
    json_decref(told);
    dt_strbuf_release(&text);
    return st;
}
