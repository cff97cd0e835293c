/* Defaults that follow from other fields: recipes/reading.h. */
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
    const dt_mark *now = dt_reading_mark(reading, "model.preset");

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
    dt_mark_prefix(reading->err, dt_reading_mark(reading, field->path));
    return DT_ERR_RECIPE;
}

dt_status dt_reading_derive(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;

    derive_model(reading);
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
    return DT_OK;
}
