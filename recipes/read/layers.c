#include "recipes/read/reading.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/presets.h"
#include "recipes/fields/values.h"
#include "recipes/read/read_int.h"
#include "recipes/read/reader.h"

enum { DEPTH_MAX = 8 };

/* A text that is being applied, and the node that names it. */
typedef struct layer {
    const char *path, *text;
    const struct layer *above; /* the text that extends it */
    int depth;
} layer;

/* --- keys that are not fields --- */

static dt_yaml_node *find_entry(const dt_yaml_node *root, const char *key)
{
    dt_yaml_node *entry = root->first;

    while (entry != NULL && strcmp(entry->key->text, key) != 0)
        entry = entry->next;
    return entry;
}

static dt_status refuse_version(const dt_reading *reading, const dt_yaml_node *entry,
                                double version)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (version > DT_RECIPE_VERSION)
        dt_strbuf_add_fmt(
            &text,
            "the recipe has version %.16g, but this dtrun reads version %d: use a newer dtrun",
            version, DT_RECIPE_VERSION);
    else
        dt_strbuf_add_fmt(&text,
                          "'" DT_RECIPE_VERSION_KEY "' is the recipe's version (expected %d)",
                          DT_RECIPE_VERSION);
    return dt_reading_refuse(reading, &entry->mark, &text);
}

/* Checks "recipe: 1" before the other keys, since the version defines their meaning. */
static dt_status check_version(const dt_reading *reading, const dt_yaml_node *root)
{
    const dt_yaml_node *entry = find_entry(root, DT_RECIPE_VERSION_KEY);
    double number = 0;

    if (entry == NULL)
        return DT_OK;
    if (entry->kind != DT_YAML_SCALAR || !entry->plain || !dt_text_number(&number, entry->text) ||
        number != DT_RECIPE_VERSION)
        return refuse_version(reading, entry, number);
    return DT_OK;
}

/* --- extends --- */

static dt_status apply(dt_reading *reading, const layer *of);

static dt_status refuse_extends(const dt_reading *reading, const dt_yaml_node *node,
                                const char *message)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "'" DT_RECIPE_EXTENDS_KEY "' %s", message);
    return dt_reading_refuse(reading, &node->mark, &text);
}

/* Returns whether one of the texts above is the same file. */
static bool is_open(const layer *above, const char *path)
{
    char wanted[PATH_MAX], open[PATH_MAX];

    if (realpath(path, wanted) == NULL)
        return false; /* reading it reports the error */
    for (; above != NULL; above = above->above)
        if (realpath(above->path, open) != NULL && strcmp(open, wanted) == 0)
            return true;
    return false;
}

/* Returns the path for messages: relative to the file that extends it. */
static const char *path_beside(const layer *above, const char *name, dt_arena *arena)
{
    const char *slash = strrchr(above->path, '/');

    if (name[0] == '/' || slash == NULL || strncmp(above->path, "/dev/", 5) == 0)
        return dt_arena_strdup(arena, name);
    return dt_arena_printf(arena, "%.*s/%s", (int)(slash - above->path), above->path, name);
}

/* Applies the dimensions of a preset below the text. */
static dt_status extend_preset(dt_reading *reading, const layer *above, const dt_yaml_node *node)
{
    dt_yaml_node *value = dt_tree_scalar(node->text, &node->mark, reading->arena);

    /* A separate source, so that fields of the text do not count as duplicates. */
    value->mark.source = dt_arena_strdup(reading->arena, above->path);
    return dt_reading_apply(reading, "model.preset", &value->mark, value);
}

static dt_status extend_file(dt_reading *reading, const layer *above, const dt_yaml_node *node)
{
    layer of = {.above = above, .depth = above->depth + 1};
    dt_recipe_source read;
    dt_status st = DT_OK;

    if (of.depth > DEPTH_MAX)
        return refuse_extends(reading, node, "is nested more than 8 files deep");
    of.path = path_beside(above, node->text, reading->arena);
    if (is_open(above, of.path))
        return refuse_extends(reading, node, "is circular: a file extends itself");
    st = dt_recipe_source_read(&read, of.path, reading->arena, reading->err);
    if (st != DT_OK) {
        dt_text_mark_prefix(reading->err, &node->mark);
        goto out;
    }
    of.path = read.path;
    of.text = read.text;
    DT_TRY(apply(reading, &of));
out:
    return st;
}

static dt_status extend_one(dt_reading *reading, const layer *above, dt_yaml_node *node)
{
    dt_status st = DT_OK;

    if (node->kind == DT_YAML_SCALAR)
        DT_TRY(dt_references_fill(reading, node));
    if (node->kind != DT_YAML_SCALAR || node->text[0] == '\0' || dt_yaml_node_is_null(node))
        return refuse_extends(reading, node,
                              "must be the name of a recipe file or preset, or a list of them");
    reading->layer++;
    st = dt_preset_find(node->text) != NULL ? extend_preset(reading, above, node)
                                            : extend_file(reading, above, node);
out:
    reading->unread = reading->unread || st != DT_OK;
    return dt_reading_report(reading, st, DT_RECIPE_EXTENDS_KEY);
}

static dt_status extend(dt_reading *reading, const layer *above, dt_yaml_node *entry)
{
    dt_status st = DT_OK;

    if (entry == NULL || entry->kind != DT_YAML_LIST)
        return entry != NULL ? extend_one(reading, above, entry) : DT_OK;
    for (dt_yaml_node *item = entry->first; item != NULL; item = item->next)
        DT_TRY(extend_one(reading, above, item));
out:
    return st;
}

/* --- a layer --- */

static dt_status add_source(dt_reading *reading, const layer *of)
{
    dt_origins *origins = reading->origins;

    if (reading->too_many) /* already reported; ends the reading */
        return DT_ERR_RECIPE;
    reading->too_many = origins->sources_count == DT_ORIGIN_SOURCES;
    if (reading->too_many)
        return DT_FAIL(reading->err, DT_ERR_RECIPE, "%s: the recipe consists of more than %d files",
                       of->path, DT_ORIGIN_SOURCES);
    origins->sources[origins->sources_count++] = (dt_problem_source){of->path, of->text};
    return DT_OK;
}

static dt_status parse(dt_yaml_node **out, dt_reading *reading, const layer *of)
{
    const dt_text_mark start = {of->path, 1, 1};
    dt_status st = DT_OK;
    dt_strbuf text;

    DT_TRY(dt_tree_parse(out, of->text, &start, reading->arena, reading->err));
    dt_strbuf_init(&text);
    if (*out == NULL || dt_yaml_node_is_null(*out)) {
        dt_strbuf_add_str(&text, "the recipe is empty (the least it needs: model, data, schedule)");
        return dt_reading_refuse(reading, &start, &text);
    }
    if ((*out)->kind != DT_YAML_MAP) {
        dt_strbuf_add_fmt(&text, "the recipe is %s: ", dt_yaml_kind_name(*out));
        if ((*out)->kind != DT_YAML_SCALAR ||
            !dt_yaml_missing_blank(&text, (*out)->text, strcspn((*out)->text, " ")))
            dt_strbuf_add_str(&text, "expected a map of fields, such as 'data: ...'");
        return dt_reading_refuse(reading, &(*out)->mark, &text);
    }
out:
    return st;
}

/* Applies what the text extends first, then the text, with relative paths from its folder. */
static dt_status apply(dt_reading *reading, const layer *of)
{
    const char *folder = reading->folder;
    dt_status st = DT_OK;
    dt_yaml_node *root;

    DT_TRY(add_source(reading, of));
    DT_TRY(parse(&root, reading, of));
    DT_TRY(check_version(reading, root));
    DT_TRY(extend(reading, of, find_entry(root, DT_RECIPE_EXTENDS_KEY)));
    reading->layer++; /* lower layers already have their numbers */
    DT_TRY(dt_path_folder(&reading->folder, of->path, reading->arena, reading->err));
    if (find_entry(root, DT_RECIPE_SWEEP_KEY) != NULL) {
        reading->sweep = find_entry(root, DT_RECIPE_SWEEP_KEY);
        reading->sweep_folder = reading->folder;
    }
    DT_TRY(dt_reading_apply(reading, "", &root->mark, root));
out:
    reading->folder = folder;
    return st;
}

dt_status dt_layer_apply(dt_reading *reading, const char *path, const char *text)
{
    const layer of = {.path = path, .text = text, .depth = 1};

    return apply(reading, &of);
}
