/* recipe_parts: what the recipes of `dtrun init` have in common: files, nodes, the head, and their check. */
#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/read/reader.h"
#include "runner/init/init.h"

enum { LINE = 100 };

void dt_init_add_quoted(dt_strbuf *out, const char *text)
{
    dt_strbuf_add_char(out, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            dt_strbuf_add_char(out, '\\');
        if (*text == '\n')
            dt_strbuf_add_str(out, "\\n");
        else if (*text == '\t')
            dt_strbuf_add_str(out, "\\t");
        else
            dt_strbuf_add_char(out, *text);
    }
    dt_strbuf_add_char(out, '"');
}

void dt_init_add_files(dt_strbuf *out, const char *key, const dt_string_list *files)
{
    dt_strbuf_add_fmt(out, "  %s:", key);
    for (int64_t i = 0; i < files->count; i++) {
        dt_strbuf_add_str(out, files->count == 1 ? " " : "\n    - ");
        dt_init_add_quoted(out, files->items[i]);
    }
    dt_strbuf_add_char(out, '\n');
}

/* Returns the text up to the next comma, and moves *at behind it; NULL: there is none. */
static const char *next_weight(const char **at, size_t *length)
{
    const char *start = *at;

    if (start == NULL)
        return NULL;
    *length = strcspn(start, ",");
    *at = start[*length] == ',' ? start + *length + 1 : NULL;
    return start;
}

void dt_init_add_train(dt_strbuf *out, const dt_init_wish *wish)
{
    const dt_string_list *files = &wish->look->train;
    const char *at = wish->mix, *weight;
    size_t length = 0;

    if (wish->mix == NULL) {
        dt_init_add_files(out, "train", files);
        return;
    }
    dt_strbuf_add_str(out, "  mixture:              # drawn by weight (docs/data.md)\n");
    for (int64_t i = 0; (weight = next_weight(&at, &length)) != NULL; i++) {
        dt_strbuf_add_str(out, "    - {files: ");
        dt_init_add_quoted(out, files->items[i]);
        dt_strbuf_add_fmt(out, ", weight: %.*s}\n", (int)length, weight);
    }
}

dt_status dt_init_check_mix(const dt_init_wish *wish, dt_error *err)
{
    const dt_string_list *files = &wish->look->train;
    const char *at = wish->mix, *weight;
    int64_t count = 0;
    size_t length = 0;

    if (wish->mix != NULL && wish->look->kind == DT_LOOK_ROWS)
        return DT_FAIL(err, DT_ERR_USAGE, "--mix: rows of numbers cannot be mixed");
    for (; (weight = next_weight(&at, &length)) != NULL; count++) {
        char text[32] = "";
        double number = 0;

        if (length < sizeof(text))
            memcpy(text, weight, length);
        if (!dt_text_number(&number, text) || !(number > 0) || number > 1e15)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "--mix: '%.*s' is not a weight (expected numbers above 0, as in "
                           "'0.7,0.3')",
                           (int)(length < 40 ? length : 40), weight);
    }
    if (wish->mix != NULL && count != files->count)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--mix has %lld weight%s for %lld training file%s: give one for each, in "
                       "their order",
                       (long long)count, count == 1 ? "" : "s", (long long)files->count,
                       files->count == 1 ? "" : "s");
    return DT_OK;
}

/* Writes "a,b" as a list; commas within brackets belong to ranges. */
static void add_nodes(dt_strbuf *out, const char *nodes)
{
    dt_strbuf one;
    int depth = 0;

    dt_strbuf_init(&one);
    dt_strbuf_add_str(out, "nodes: [");
    for (const char *at = nodes;; at++) {
        depth += (*at == '[') - (*at == ']');
        if (*at != '\0' && (*at != ',' || depth > 0)) {
            dt_strbuf_add_char(&one, *at);
            continue;
        }
        dt_init_add_quoted(out, one.data);
        if (*at == '\0')
            break;
        dt_strbuf_add_str(out, ", ");
        dt_strbuf_reset(&one);
    }
    dt_strbuf_add_str(out, "] # ssh destinations; check them with 'dtrun doctor'\n");
    dt_strbuf_release(&one);
}

void dt_init_add_place(dt_strbuf *out, const dt_init_wish *wish, bool gpus)
{
    if (wish->nodes != NULL)
        add_nodes(out, wish->nodes);
    if (gpus)
        dt_strbuf_add_str(out,
                          "strategy: fsdp          # on all GPUs of a node; 'gpus: N' uses fewer\n"
                          "precision: bf16\n");
    else if (wish->nodes == NULL)
        dt_strbuf_add_str(out, "ranks: 1                # 2 or more train with ddp\n");
}

void dt_init_add_comment(dt_strbuf *out, const char *label, const char *text)
{
    dt_strbuf_add_fmt(out, "# %-8s  ", label);
    for (size_t column = 12; *text != '\0'; text++, column++) {
        if (*text == ' ' && column + strcspn(text + 1, " ") > LINE - 2) {
            dt_strbuf_add_str(out, "\n#           ");
            column = 12;
        }
        dt_strbuf_add_char(out, *text != '\n' ? *text : ' ');
    }
    dt_strbuf_add_char(out, '\n');
}

dt_status dt_init_look_at(dt_preflight *flight, dt_run_estimate *estimate, const dt_init_wish *wish,
                          const char *text, dt_arena *arena, dt_error *err)
{
    const dt_gpu_spec *gpu = NULL;
    dt_recipe *recipe = dt_arena_alloc(arena, sizeof(*recipe));
    dt_recipe_source source = {.path = wish->path, .text = text, .unwritten = true};
    dt_status st = DT_OK;

    DT_TRY(dt_recipe_read(recipe, &source, arena, err));
    if (wish->gpus_as != NULL)
        DT_TRY(dt_run_estimate_preflight(flight, &gpu, recipe, NULL, wish->gpus_as, arena, err));
    else
        DT_TRY(dt_preflight_recipe(flight, recipe, NULL, arena, err));
    DT_TRY(dt_run_estimate_make(estimate, flight, gpu, arena, err));
out:
    return st;
}

void dt_init_add_schema(dt_strbuf *out)
{
    dt_strbuf_add_str(
        out, "# yaml-language-server: $schema=recipe.schema.json\n"
             "# Written by 'dtrun init'. With 'dtrun schema > recipe.schema.json' in this folder, "
             "editors check it;\n# docs/recipe.md describes every field.\n#\n");
}
