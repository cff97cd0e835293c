/* recipes_support: a recipe from a text in memory, and the message it fails with. */
#ifndef DT_TESTS_RECIPES_SUPPORT_H
#define DT_TESTS_RECIPES_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recipes/read/reader.h"

/* The least that a recipe needs; texts are put after it. */
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

/* The recipe must be good, and is the caller's until reading_close. */
void expect_good(reading *r, const char *text, const char *set);

/* The recipe must be refused with DT_ERR_RECIPE and exactly this message. */
void expect_refused(const char *text, const char *set, const char *message);

#endif
