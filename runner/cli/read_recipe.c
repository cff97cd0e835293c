#include "runner/cli/read_recipe.h"

#include "base/banned.h"

dt_status dt_read_recipe(dt_recipe *out, dt_recipe_source *source, const char *path,
                         const dt_value *sets, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    *source = (dt_recipe_source){0};
    DT_TRY(dt_recipe_source_read(source, path, arena, err));
    if (sets != NULL) {
        source->sets = sets->items;
        source->sets_count = sets->items_count;
    }
    DT_TRY(dt_recipe_read(out, source, arena, err));
out:
    return st;
}
