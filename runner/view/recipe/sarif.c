#include "runner/view/recipe/sarif.h"

#include <ctype.h>
#include <string.h>

#include "base/version.h"
#include "recipes/rules/rules.h"

static json_t *rules(void)
{
    json_t *all = json_array();

    for (size_t i = 0; i < dt_rules_count; i++)
        json_array_append_new(all, json_pack("{s:s, s:{s:s}, s:{s:s}}", "id", dt_rules[i].name,
                                             "shortDescription", "text", dt_rules[i].says,
                                             "defaultConfiguration", "level",
                                             dt_rules[i].warning ? "warning" : "error"));
    return all;
}

json_t *dt_sarif_new(void)
{
    json_t *run = json_pack("{s:{s:{s:s, s:s, s:o}}, s:s, s:[]}", "tool", "driver", "name", "dtrun",
                            "version", DT_VERSION, "rules", rules(), "columnKind",
                            "unicodeCodePoints", "results");

    return json_pack("{s:s, s:s, s:[o]}", "$schema",
                     "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs",
                     run);
}

/* Converts a path to a URI; other characters than those of URIs are percent-encoded. */
static json_t *uri_of(const char *path)
{
    dt_strbuf uri;
    json_t *text;

    dt_strbuf_init(&uri);
    dt_strbuf_add_str(&uri, path[0] == '/' ? "file://" : "");
    for (; *path != '\0'; path++) {
        unsigned char c = (unsigned char)*path;

        if (isalnum(c) || strchr("/._-~", c) != NULL)
            dt_strbuf_add_char(&uri, *path);
        else
            dt_strbuf_add_fmt(&uri, "%%%02X", c);
    }
    text = json_string(uri.data);
    dt_strbuf_release(&uri);
    return text;
}

static void add_result(json_t *sarif, const char *rule, const char *level, const char *message,
                       const dt_text_mark *mark)
{
    json_t *run = json_array_get(json_object_get(sarif, "runs"), 0);
    json_t *result = json_pack("{s:s, s:s, s:{s:o}}", "ruleId", rule, "level", level, "message",
                               "text", dt_json_text(message));
    json_t *place;

    if (mark->source != NULL) {
        place = json_pack("{s:{s:o}}", "artifactLocation", "uri", uri_of(mark->source));
        if (mark->line > 0)
            json_object_set_new(
                place, "region",
                json_pack("{s:i, s:i}", "startLine", mark->line, "startColumn", mark->column));
        json_object_set_new(result, "locations", json_pack("[{s:o}]", "physicalLocation", place));
    }
    json_array_append_new(json_object_get(run, "results"), result);
}

void dt_sarif_add(json_t *sarif, const dt_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        const dt_problem *problem = &problems->items[i];

        add_result(sarif, problem->rule, problem->warning ? "warning" : "error",
                   dt_text_without_mark(problem->message, &problem->mark), &problem->mark);
    }
}

void dt_sarif_add_error(json_t *sarif, const char *path, const char *message)
{
    const dt_text_mark mark = {path, 0, 0};

    add_result(sarif, "read", "error", message, &mark);
}
