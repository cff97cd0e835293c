/* Defaults that follow from other fields: recipes/reading.h. */
#include "recipes/nodes.h"
#include "recipes/presets.h"
#include "recipes/reading.h"
#include "recipes/values.h"

#include "base/banned.h"

/* What was derived is from now on given, where that stands which it follows from. */
static void derived_from(dt_reading *reading, const char *path, const char *from)
{
    reading->field[dt_reading_row(path)] = *dt_reading_mark(reading, from);
}

/* The preset's values where the recipe leaves them out. On an earlier recipe (all of whose fields
 * are there) a preset that is set anew brings its own. */
static void derive_model(dt_reading *reading)
{
    const dt_preset *preset = dt_preset_find(reading->recipe->model.preset);
    const dt_text_mark *now = dt_reading_mark(reading, "model.preset");

    for (size_t i = 0; preset != NULL && i < DT_PRESET_VALUES; i++) {
        const dt_preset_value *value = &preset->values[i];
        const char *source;

        if (value->path == NULL)
            break;
        source = reading->field[dt_reading_row(value->path)].source;
        if (source != NULL && (source != reading->resolved || now->source == reading->resolved))
            continue;
        DT_ASSERT(dt_field_set_text(reading->recipe, dt_field_find(value->path), value->text,
                                    NULL) == DT_OK);
        derived_from(reading, value->path, "model.preset");
    }
}

static dt_status refuse_missing(const dt_reading *reading, const dt_field *field)
{
    if (field->derived != NULL)
        DT_FAIL(reading->err, DT_ERR_RECIPE,
                "'%s' is missing (%s): give it, or 'preset: gpt2-small' for all dimensions",
                field->path, field->help);
    else
        DT_FAIL(reading->err, DT_ERR_RECIPE, "'%s' is missing (%s)", field->path, field->help);
    dt_text_mark_prefix(reading->err, dt_reading_mark(reading, field->path));
    return DT_ERR_RECIPE;
}

/* The hostfile's nodes, and every range as its machines. */
static dt_status derive_nodes(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;
    const char *from = recipe->hostfile[0] != '\0' ? "hostfile" : "nodes";
    dt_string_list items = recipe->nodes;
    dt_status st = DT_OK;

    if (recipe->hostfile[0] != '\0') {
        const char *nodes = reading->field[dt_reading_row("nodes")].source;

        if (nodes != NULL && nodes != reading->resolved)
            DT_THROW(reading->err, DT_ERR_RECIPE,
                     "'hostfile' and 'nodes' both name machines: keep one");
        DT_TRY(dt_nodes_read_hostfile(&items, recipe->hostfile, reading->arena, reading->err));
    }
    DT_TRY(dt_nodes_expand(&recipe->nodes, &items, reading->arena, reading->err));
    derived_from(reading, "nodes", from);
    recipe->hostfile = ""; /* its nodes are the recipe's now, whatever becomes of the file */
out:
    if (st != DT_OK)
        dt_text_mark_prefix(reading->err, dt_reading_mark(reading, from));
    return st;
}

dt_status dt_reading_derive(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;
    dt_status st = DT_OK;

    derive_model(reading);
    DT_TRY(derive_nodes(reading));
    if (!dt_reading_given(reading, "name")) {
        recipe->name = reading->stem;
        derived_from(reading, "name", "name");
    }
    if (!dt_reading_given(reading, "schedule.warmup_init_lr")) {
        recipe->schedule.warmup_init_lr = recipe->schedule.min_lr;
        derived_from(reading, "schedule.warmup_init_lr", "schedule.min_lr");
    }
    for (size_t i = 0; i < dt_fields_count; i++)
        if (dt_fields[i].fallback == NULL && reading->field[i].source == NULL)
            return refuse_missing(reading, &dt_fields[i]);
out:
    return st;
}
