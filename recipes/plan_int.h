/* plan_int: what making a plan (plan.c) and reading one (plan_json.c) share. */
#ifndef DT_RECIPES_PLAN_INT_H
#define DT_RECIPES_PLAN_INT_H

#include "recipes/plan.h"

#define DT_PLAN_NO_MEMORY "no memory for the plan"

/* *out, a pointer: to so many elements in the arena. */
dt_status dt_plan_take(void *out, dt_arena *arena, int64_t count, size_t elem_bytes, dt_error *err);

#endif
