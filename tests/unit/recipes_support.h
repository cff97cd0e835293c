/* recipes_support: reads a recipe from a text in memory, and checks its error message. */
#ifndef DT_TESTS_RECIPES_SUPPORT_H
#define DT_TESTS_RECIPES_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recipes/read/reader.h"

/* The shortest complete recipe; tests append to it. */
#define LEAST "model: gpt2-small\ndata: a.txt\nschedule: {steps: 100}\n"

typedef struct reading {
    dt_arena arena;
    dt_recipe recipe;
    dt_error err;
    dt_status st;
} reading;

void reading_open(reading *r);
void reading_close(reading *r);

/* Reads `text` as the file "/r/gpt.yaml" with one `--set` on top (may be NULL). */
void reading_text(reading *r, const char *text, const char *set);

/* The recipe must be valid; the caller calls reading_close. */
void expect_good(reading *r, const char *text, const char *set);

/* The recipe must be refused with DT_ERR_RECIPE and exactly this message. */
void expect_refused(const char *text, const char *set, const char *message);

#endif
