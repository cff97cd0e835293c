/* task_fields: selects the fields of a recipe whose task is not training. All other fields of such a run are those
 * of the checkpoint that it uses.
 */
#ifndef DT_RECIPES_FIELDS_TASK_FIELDS_H
#define DT_RECIPES_FIELDS_TASK_FIELDS_H

#include "recipes/fields/field_find.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether a recipe with this task (not TRAIN) may set the field. */
bool dt_field_is_of_task(const dt_field *field, dt_task_kind task);
/* Returns the option of `dtrun-engine generate` that the field sets, as in "top-k" (static);
 * NULL: none. */
const char *dt_field_generate_option(const dt_field *field);
/* Returns the name of a task, as in recipes. */
const char *dt_task_name(dt_task_kind task);

#ifdef __cplusplus
}
#endif
#endif
