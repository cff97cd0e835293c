/* plan_int: declares functions shared by making a plan (plan.c) and reading one (plan_json.c, plan_task.c). */
#ifndef DT_RECIPES_PLAN_PLAN_INT_H
#define DT_RECIPES_PLAN_PLAN_INT_H

#include "recipes/plan/plan.h"

/* plan.c. Returns whether each node has one rank with all of its devices: dp, and a command with processes: node. */
bool dt_plan_has_one_rank(const dt_recipe *recipe);

/* plan_task.c. New reference. */
json_t *dt_plan_task_to_json(const dt_plan_task *task);
/* Reads the task of the plan `json`. DT_ERR_CORRUPT. */
dt_status dt_plan_task_from_json(dt_plan_task *out, const json_t *json, dt_arena *arena,
                                 dt_error *err);

/* plan_keys.c. DT_ERR_CORRUPT: the object has a key that is not in the NULL-terminated list. `map`: "" or "ranks". */
dt_status dt_plan_check_keys(const json_t *object, const char *const *known, const char *map,
                             dt_error *err);
dt_status dt_plan_get_int(int64_t *out, const json_t *object, const char *key, int64_t low,
                          int64_t high, const char *where, dt_error *err);
/* Copies the string into the arena; `empty` allows "". */
dt_status dt_plan_get_string(const char **out, const json_t *object, const char *key, bool empty,
                             const char *where, dt_arena *arena, dt_error *err);
/* The same for an absolute path. */
dt_status dt_plan_get_path(const char **out, const json_t *object, const char *key, bool empty,
                           dt_arena *arena, dt_error *err);

#endif
