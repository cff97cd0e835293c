/* Continuing one text: a token is drawn from finite logits only. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "engine/generate/text.h"

enum { VOCAB = 256 };

static void test_a_token_is_drawn_from_finite_logits_only(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static const double temperatures[] = {0, 1};
    json_t *bytes = json_pack("{s:s, s:i}", "kind", "byte", "vocab", VOCAB);
    dt_loaded from = {0};

    assert_int_equal(dt_tokenizer_from_json(&from.tokenizer, bytes, NULL), DT_OK);
    for (size_t t = 0; t < sizeof(temperatures) / sizeof(temperatures[0]); t++) {
        dt_text_rules rules = {.tokens = 8, .sampling = {.temperature = temperatures[t]}};
        dt_text text;

        assert_int_equal(dt_text_open(&text, &from, &rules, "a", 1, 1, NULL), DT_OK);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            for (int64_t place = 0; place < VOCAB; place += VOCAB - 1) {
                float logits[VOCAB] = {0};
                dt_error err = DT_ERROR_INIT;

                logits['b'] = 100;
                logits[place] = bad[i];
                assert_int_equal(dt_text_take(&text, logits, &err), DT_ERR_RECIPE);
                assert_int_equal(text.added, 0);
                dt_error_clear(&err);
            }
        }
        float logits[VOCAB] = {0};

        logits['b'] = 1e38f;
        assert_int_equal(dt_text_take(&text, logits, NULL), DT_OK);
        assert_int_equal(text.added, 1);
        assert_int_equal(text.text.length, 1);
        assert_int_equal(text.text.data[0], 'b');
        dt_text_close(&text);
    }
    dt_tokenizer_free(from.tokenizer);
    json_decref(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_is_drawn_from_finite_logits_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
