#include "recipes/doc.h"

#include <string.h>

#include "recipes/presets.h"
#include "recipes/rules.h"
#include "recipes/values.h"

#include "base/banned.h"

static const char opening[] =
    "# The recipe\n"
    "\n"
    "<!-- Written by dtrun-recipe-doc from recipes/fields.c; a test compares. -->\n"
    "\n"
    "One YAML file says what a run is. The smallest:\n"
    "\n"
    "```yaml\n"
    "model: gpt2-small\n"
    "data: corpus.txt\n"
    "schedule: {steps: 20000}\n"
    "```\n"
    "\n"
    "Keys are strict: an unknown key, a wrong type or a value out of range is an error that says\n"
    "where it stands, and `dtrun validate RECIPE` finds all of them without starting anything:\n"
    "\n"
    "```\n"
    "gpt.yaml:14:9: unknown key 'batchsize' (did you mean 'batch.sequences'?)\n"
    "   14 |         batchsize: 8\n"
    "      |         ^\n"
    "```\n"
    "\n"
    "- **Shorthand.** A scalar given for a map means its field marked *short*: `strategy: ddp` is\n"
    "  `strategy: {kind: ddp}`, and `batch: 16` is `batch: {sequences: 16}`. `model:` takes a "
    "kind\n"
    "  or a preset.\n"
    "- **On the command line.** `--set optimizer.lr=1e-3` goes on top of the file, as often as\n"
    "  needed; lists and maps are written `--set 'nodes=[localhost]'`, an item of a list\n"
    "  `--set 'data.train[1]=more.txt'`.\n"
    "- **Layers.** `extends: base.yaml` puts a recipe on top of another (beside it, or by a path; "
    "or on a\n"
    "  list of them, or on a model's preset), and `dtrun launch gpt.yaml -f tonight.yaml` puts one "
    "on top\n"
    "  of the recipe. Maps are merged field by field; scalars and lists are replaced; nothing is\n"
    "  computed. From below: what it extends, the recipe, each `-f`, each `--set`. Of `data.split` "
    "and\n"
    "  `data.validation`, and of `nodes` and `hostfile`, the later layer counts.\n"
    "- **Origins.** `dtrun validate --origins` and `dtrun show RUN --origins` tell of each value "
    "which\n"
    "  line or `--set` gave it, and what it stands over; it is kept with the run.\n"
    "- **Sweeps.** `sweep: {optimizer.lr: [1e-4, 3e-4], seed: [1, 2]}` makes a recipe stand for "
    "several "
    "runs,\n"
    "  with these values on top; `search` says which, and how many at once; `early_stop` stops "
    "the\n"
    "  worse ones. What takes one recipe (validate, smoke, plan) takes the first.\n"
    "- **The environment.** `${env:NAME}` is what NAME has when the recipe is read, "
    "`${env:NAME:-8}` is 8\n"
    "  where it has nothing; in quotes inside of `{}` and `[]`. Only `notify.webhook` is filled "
    "in\n"
    "  where it is used, and never kept: other values are no place for secrets.\n"
    "- **In an editor.** `# yaml-language-server: $schema=PATH` in its first line, with what "
    "`dtrun schema`\n"
    "  prints at PATH, lets an editor complete and check a recipe; `dtrun validate --sarif` is for "
    "code\n"
    "  hosts.\n"
    "- **From a pipe.** The recipe `-` is read from stdin.\n"
    "- **Version.** `recipe: 1` states the version of this page that the file was written for. It "
    "may be\n"
    "  left out. Another version is refused.\n"
    "- **Numbers** may be written `20000`, `20_000` or `2e4`, without quotes and leading zeros.\n"
    "- **Paths** of the file start at the file's folder, those of `--set` at the current folder;\n"
    "  `~/` is the home folder. A text that begins with `*` needs quotes.\n"
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

    if (field->choices == NULL)
        dt_strbuf_add_str(out, types[field->type]);
    for (size_t i = 0; field->choices != NULL && field->choices[i] != NULL; i++)
        dt_strbuf_add_fmt(out, "%s`%s`", i != 0 ? ", " : "", field->choices[i]);
    dt_field_range(out, field);
}

/* `inside`: "mixture[]." for fields of items, "" else. */
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
                      "What other programs call a field is read as that field, in its place or at "
                      "the top of the recipe,\nand with `--set`; what is stored and shown has the "
                      "field's own name. A field is given once, by one of\nits names.\n\n"
                      "| Read as | Also |\n|---|---|\n");
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
    dt_strbuf_add_str(out,
                      "\n## Rules\n\n"
                      "What a recipe keeps to across its fields, wherever it is read: by validate, "
                      "launch and resume.\nWarnings go to stderr, and are errors with `--strict`."
                      "\n\n| Name | Rule | Else it is |\n|---|---|---|\n");
    for (size_t i = 0; i < dt_rules_count; i++) {
        const dt_rule *rule = &dt_rules[i];

        dt_strbuf_add_fmt(out, "| `%s` | %s | %s |\n", rule->name, rule->says,
                          rule->warning ? "warned of" : "an error");
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
    dt_strbuf_add_str(out, "\n## Presets\n\n| Preset | stands for |\n|---|---|\n");
    for (size_t i = 0; i < dt_presets_count; i++) {
        const dt_preset_value *value = dt_presets[i].values;

        dt_strbuf_add_fmt(out, "| `%s` | ", dt_presets[i].name);
        for (int k = 0; k < DT_PRESET_VALUES && value[k].path != NULL; k++)
            dt_strbuf_add_fmt(out, "%s`%s: %s`", k > 0 ? ", " : "", strchr(value[k].path, '.') + 1,
                              value[k].text);
        dt_strbuf_add_str(out, " |\n");
    }
}
