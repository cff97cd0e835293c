#include "recipes_support.h"

void reading_open(reading *r)
{
    static const dt_error none = DT_ERROR_INIT;

    dt_arena_init(&r->arena, 0);
    r->err = none;
    r->st = DT_OK;
}

void reading_close(reading *r)
{
    dt_arena_release(&r->arena);
}

void reading_text(reading *r, const char *text, const char *set)
{
    const char *const sets[] = {set};
    dt_recipe_source source = {
        .path = "/r/gpt.yaml", .text = text, .sets = sets, .sets_count = set != NULL ? 1 : 0};

    reading_open(r);
    r->st = dt_recipe_read(&r->recipe, &source, &r->arena, &r->err);
}

void expect_good(reading *r, const char *text, const char *set)
{
    reading_text(r, text, set);
    assert_string_equal(r->err.message, "");
    assert_int_equal(r->st, DT_OK);
}

void expect_refused(const char *text, const char *set, const char *message)
{
    reading r;

    reading_text(&r, text, set);
    assert_string_equal(r.err.message, message);
    assert_int_equal(r.st, DT_ERR_RECIPE);
    assert_int_equal(r.err.code, DT_ERR_RECIPE);
    reading_close(&r);
}
