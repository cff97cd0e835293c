/* dtrun schema: prints the JSON Schema of recipes, for editors. */
#include "recipes/doc/doc.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"

static dt_status schema(dt_call *call, dt_error *err)
{
    json_t *document = dt_recipe_schema(), *object;
    dt_status st;
    dt_strbuf text;

    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "schema", document);
        return dt_report_json(object, err);
    }
    dt_strbuf_init(&text);
    dt_json_write_pretty(&text, document);
    st = dt_report_text(&text, err);
    dt_strbuf_release(&text);
    json_decref(document);
    return st;
}

const dt_command dt_command_schema = {
    .name = "schema",
    .summary = "print the JSON Schema of recipes, for editors",
    .operands = "",
    .notes =

        "JSON Schema 2020-12 with the type, the limits and the meaning of every key. An editor\n"
        "with the YAML language server completes and checks a recipe whose first line names it:\n"
        "  dtrun schema > recipe.schema.json\n"
        "  # yaml-language-server: $schema=recipe.schema.json\n"
        "Missing keys, and rules between keys, are checked by 'dtrun validate' only.\n",
    .run = schema,
};
