/* task_fields: selects the fields that have an effect on a task. The other fields of a run that does not train are
 * those of the checkpoint that it uses.
 */
#ifndef DT_RECIPES_FIELDS_TASK_FIELDS_H
#define DT_RECIPES_FIELDS_TASK_FIELDS_H

#include "recipes/fields/field_find.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether a recipe with this task may set the field. */
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
