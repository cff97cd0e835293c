/* plan_int: declares functions shared by making a plan (plan.c) and reading one (plan_json.c, plan_json.c). */
#ifndef DT_RECIPES_PLAN_PLAN_INT_H
#define DT_RECIPES_PLAN_PLAN_INT_H

#include "recipes/plan/plan.h"

#endif
