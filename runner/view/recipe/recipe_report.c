/* recipe_report: prints where the values of a recipe come from, and writes the problems of recipes as SARIF
 * 2.1.0. */
#include "runner/view/recipe/recipe_report.h"

#include <ctype.h>
#include <string.h>

#include "base/version.h"
#include "recipes/rules/rules.h"
#include "runner/term/term.h"

/* Origins of values. */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static void add_origin(dt_table *table, const char *path, const json_t *origin)
{
    const char *from = text_of(origin, "from"), *source = text_of(origin, "source");
    const json_t *line = json_object_get(origin, "line");
    dt_strbuf where;

    dt_strbuf_init(&where);
    dt_strbuf_add_str(&where, source);
    if (json_is_integer(line))
        dt_strbuf_add_fmt(&where, ":%lld:%lld", (long long)json_integer_value(line),
                          (long long)json_integer_value(json_object_get(origin, "column")));
    if (from[0] != '\0')
        dt_strbuf_add_fmt(&where, " (derived from %s)", from);
    dt_table_add(table, path != NULL ? DT_STYLE_BOLD : DT_STYLE_DIM, "%s",
                 path != NULL ? path : "  overrides");
    dt_table_add(table, path != NULL ? DT_STYLE_PLAIN : DT_STYLE_DIM, "%s",
                 text_of(origin, "value"));
    dt_table_add_whole(table, path != NULL ? DT_STYLE_PLAIN : DT_STYLE_DIM, "%s", where.data);
    dt_strbuf_release(&where);
}

void dt_origins_view(dt_strbuf *out, const dt_term *term, const json_t *fields, dt_arena *arena)
{
    static const dt_table_column columns[] = {{"field", false}, {"value", false}, {"from", false}};
    json_t *borrowed = (json_t *)fields, *chain; /* json_object_foreach reads only */
    const char *path;
    dt_table table;

    dt_table_init(&table, columns, 3, arena);
    json_object_foreach(borrowed, path, chain)
        for (size_t i = 0; i < json_array_size(chain); i++)
            add_origin(&table, i == 0 ? path : NULL, json_array_get(chain, i));
    dt_table_write(out, &table, term, 2);
}

/* Problems as SARIF. */

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
