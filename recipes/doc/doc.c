#include "recipes/doc/doc.h"

#include <string.h>

#include "recipes/fields/presets.h"
#include "recipes/fields/values.h"
#include "recipes/rules/rules.h"

static const char opening[] =
    "# The recipe\n"
    "\n"
    "<!-- Written by dtrun-recipe-doc from recipes/fields/fields.c; a test compares. -->\n"
    "\n"
    "One YAML file describes a run. The smallest:\n"
    "\n"
    "```yaml\n"
    "model: gpt2-small\n"
    "data: corpus.txt\n"
    "schedule: {steps: 20000}\n"
    "```\n"
    "\n"
    "Keys are strict: an unknown key, a wrong type or a value out of range is an error with its\n"
    "position. `dtrun validate RECIPE` finds all errors without starting anything:\n"
    "\n"
    "```\n"
    "gpt.yaml:14:9: unknown key 'batchsize' (did you mean 'batch.sequences'?)\n"
    "   14 |         batchsize: 8\n"
    "      |         ^\n"
    "```\n"
    "\n"
    "- **Shorthand.** A scalar instead of a map sets the field marked *short*: `strategy: ddp` is\n"
    "  `strategy: {kind: ddp}`, and `batch: 16` is `batch: {sequences: 16}`. `model:` takes a "
    "kind\n"
    "  or a preset.\n"
    "- **On the command line.** `--set optimizer.lr=1e-3` overrides the file, and can be\n"
    "  repeated. Set a list or map with `--set 'nodes=[localhost]'`, an item of a list with\n"
    "  `--set 'data.train[1]=more.txt'`.\n"
    "- **Layers.** `extends: base.yaml` applies a recipe on top of another: a path relative to "
    "its\n"
    "  folder, a model preset, or a list of them. `dtrun launch gpt.yaml -f tonight.yaml` applies\n"
    "  one on top of the recipe. Maps are merged field by field; scalars and lists are replaced.\n"
    "  Order, lowest precedence first: `extends`, the recipe, each `-f`, each `--set`. If both\n"
    "  `data.split` and `data.validation` are set, or both `nodes` and `hostfile`, the later "
    "layer\n"
    "  wins.\n"
    "- **Origins.** `dtrun validate --origins` and `dtrun show RUN --origins` show which line or\n"
    "  `--set` set each value, and which value it overrides. The origins are stored with the run.\n"
    "- **Another program.** A recipe with `command: python train.py` runs that program instead of\n"
    "  dtrun's own training ([commands](command.md)).\n"
    "- **Sweeps.** `sweep: {optimizer.lr: [1e-4, 3e-4], seed: [1, 2]}` makes several runs, one "
    "for\n"
    "  each combination of the values. `search` selects the combinations and how many run at\n"
    "  once; `early_stop` stops the worse ones. Commands that take one recipe (validate, smoke,\n"
    "  plan) use the first.\n"
    "- **The environment.** `${env:NAME}` is the value of NAME when the recipe is read,\n"
    "  `${env:NAME:-8}` is 8 if NAME is unset or empty. Inside `{}` and `[]` write it in quotes.\n"
    "  Do not put secrets into a recipe: only `notify.webhook` and `env` are filled in when they "
    "are\n"
    "  used, and never stored.\n"
    "- **In an editor.** Save the output of `dtrun schema` as PATH, and begin the recipe with\n"
    "  `# yaml-language-server: $schema=PATH`: the editor then completes and checks it.\n"
    "  `dtrun validate --sarif` is for code hosts.\n"
    "- **From a pipe.** The recipe `-` is read from stdin.\n"
    "- **Version.** `recipe: 1` is the version of the recipe format. It may be left out. Another\n"
    "  version is refused.\n"
    "- **Numbers** are written `20000`, `20_000` or `2e4`, without quotes or leading zeros.\n"
    "- **Paths** in the file are relative to the file's folder, those of `--set` to the current\n"
    "  folder; `~/` is the home folder. A text that begins with `*` needs quotes.\n"
    "- **The file** is one UTF-8 document of at most 1 MiB, indented by spaces, without anchors,\n"
    "  aliases and tags.\n";

static void add_default(dt_strbuf *out, const dt_field *field)
{
    if (field->derived != NULL)
        dt_strbuf_add_str(out, field->derived);
    else if (field->fallback == NULL)
        dt_strbuf_add_str(out, "**required**");
    else if (field->fallback[0] == '\0')
        dt_strbuf_add_str(out, "none");
    else
        dt_strbuf_add_fmt(out, "`%s`", field->fallback);
}

static void add_takes(dt_strbuf *out, const dt_field *field)
{
    static const char *const types[] = {
        [DT_FIELD_STRING] = "text",
        [DT_FIELD_INT] = "whole number, ",
        [DT_FIELD_NUMBER] = "number, ",
        [DT_FIELD_BOOL] = "true or false",
        [DT_FIELD_DURATION] = "time, ",
        [DT_FIELD_CHOICE] = "",
        [DT_FIELD_STRINGS] = "text or list of text",
        [DT_FIELD_MAPS] = "list of maps, or one",
    };

    if (field->assignments)
        dt_strbuf_add_str(out, "map of text");
    else if (field->choices == NULL)
        dt_strbuf_add_str(out, types[field->type]);
    for (size_t i = 0; field->choices != NULL && field->choices[i] != NULL; i++)
        dt_strbuf_add_fmt(out, "%s`%s`", i != 0 ? ", " : "", field->choices[i]);
    dt_field_range(out, field);
}

/* Adds a row of a table of fields. inside: "mixture[]." for fields of items, else "". */
static void add_row(dt_strbuf *out, const dt_field *field, const char *inside)
{
    size_t length = dt_field_group_length(field);
    const char *key = length != 0 ? field->path + length + 1 : field->path;
    dt_strbuf below;

    dt_strbuf_add_fmt(out, "| `%s%s`%s | ", inside, key, field->shorthand ? " *short*" : "");
    add_takes(out, field);
    dt_strbuf_add_str(out, " | ");
    add_default(out, field);
    dt_strbuf_add_fmt(out, " | %s |\n", field->help);
    if (field->items == NULL)
        return;
    dt_strbuf_init(&below);
    dt_strbuf_add_fmt(&below, "%s%s[].", inside, key);
    for (size_t i = 0; i < field->items->count; i++)
        add_row(out, &field->items->fields[i], below.data);
    dt_strbuf_release(&below);
}

static void add_head(dt_strbuf *out, const char *group, size_t length)
{
    dt_strbuf_add_fmt(out, "\n## %.*s\n\n", (int)length, group);
    dt_strbuf_add_str(out, "| Key | Takes | Default | Meaning |\n|---|---|---|---|\n");
}

static void add_aliases(dt_strbuf *out)
{
    dt_strbuf_add_str(out,
                      "\n## Other names\n\n"
                      "Names that other programs use for a field are accepted in its place, at "
                      "the top of the recipe\nand with `--set`. dtrun stores and shows the "
                      "field's own name. Set a field only once, by one of\nits names.\n\n"
                      "| Field | Other names |\n|---|---|\n");
    for (size_t i = 0; i < dt_fields_count; i++) {
        const char *const *alias = dt_fields[i].aliases;

        if (alias == NULL)
            continue;
        dt_strbuf_add_fmt(out, "| `%s` | ", dt_fields[i].path);
        for (const char *separator = ""; *alias != NULL; alias++, separator = ", ")
            dt_strbuf_add_fmt(out, "%s`%s`", separator, *alias);
        dt_strbuf_add_str(out, " |\n");
    }
}

static void add_rules(dt_strbuf *out)
{
    dt_strbuf_add_str(
        out, "\n## Rules\n\n"
             "Rules across several fields, checked whenever a recipe is read: by validate, "
             "launch and resume.\nWarnings go to stderr, and are errors with `--strict`."
             "\n\n| Name | Rule | If broken |\n|---|---|---|\n");
    for (size_t i = 0; i < dt_rules_count; i++) {
        const dt_rule *rule = &dt_rules[i];

        dt_strbuf_add_fmt(out, "| `%s` | %s | %s |\n", rule->name, rule->says,
                          rule->warning ? "warning" : "error");
    }
}

void dt_recipe_doc(dt_strbuf *out)
{
    dt_strbuf_add_str(out, opening);
    add_head(out, "Top level", strlen("Top level"));
    for (size_t i = 0; i < dt_fields_count; i++)
        if (dt_field_group_length(&dt_fields[i]) == 0)
            add_row(out, &dt_fields[i], "");
    for (size_t i = 0; i < dt_fields_count; i++) {
        const char *path = dt_fields[i].path;
        size_t length = dt_field_group_length(&dt_fields[i]);

        if (length == 0)
            continue;
        if (i == 0 || strncmp(dt_fields[i - 1].path, path, length + 1) != 0)
            add_head(out, path, length);
        add_row(out, &dt_fields[i], "");
    }
    add_rules(out);
    add_aliases(out);
    dt_strbuf_add_str(out, "\n## Presets\n\n| Preset | Sets |\n|---|---|\n");
    for (size_t i = 0; i < dt_presets_count; i++) {
        const dt_preset_value *value = dt_presets[i].values;

        dt_strbuf_add_fmt(out, "| `%s` | ", dt_presets[i].name);
        for (int k = 0; k < DT_PRESET_VALUES && value[k].path != NULL; k++)
            dt_strbuf_add_fmt(out, "%s`%s: %s`", k > 0 ? ", " : "", strchr(value[k].path, '.') + 1,
                              value[k].text);
        dt_strbuf_add_str(out, " |\n");
    }
}
