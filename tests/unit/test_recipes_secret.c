/* Which URLs contain a secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "recipes/read/reading.h"

#define COMMIT "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"

static const struct {
    const char *url;
    const char *webhook, *data; /* part of the message; NULL: no secret */
} cases[] = {
    {"", NULL, NULL},
    {"http://127.0.0.1:8080/hook", NULL, NULL},
    {"http://127.0.0.1:1/", NULL, NULL},
    {"https://ntfy.sh/my-trainings", NULL, NULL},
    {"https://example.org/notify/training/of-the-large-model", NULL, NULL},
    {"https://example.org/my-very-long-training-channel", NULL, NULL},
    {"https://example.org/123456789012345678901234567890", NULL, NULL}, /* a number */
    {"https://me:secret@example.org/x", "before '@'", "before '@'"},
    {"https://token@example.org/x", "before '@'", "before '@'"},
    {"https://:secret@example.org/x", "before '@'", "before '@'"},
    {"https://example.org/a@b", NULL, NULL},
    {"https://example.org/x?token=abc", "after '?'", NULL},
    {"https://example.org?token=abc", "after '?'", NULL},
    {"https://example.org/x?download", NULL, NULL},
    {"https://example.org/x?key=&b=", NULL, NULL},
    {"https://example.org/x?X-Amz-Signature=" COMMIT, "key after '?'", "key after '?'"},
    {"https://hooks.example.com/services/T00000000/B00000000/aBcDeFgHiJkLmNoPqRsTuVwX",
     "key in its path", NULL},
    {"https://chat.example.com/api/webhooks/123456789012345678/a1b2c3d4e5f6a7b8c9d0",
     "key in its path", NULL},
    {"https://api.example.org/bot123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11/send", "key in its path",
     NULL},
    {"https://x.example.com/550e8400-e29b-41d4-a716-446655440000", "key in its path", NULL},
    {"https://example.org/resolve/" COMMIT "/corpus.txt#sha256=" COMMIT, "key in its path", NULL},
    {"https://example.org/corpus.txt#sha256=" COMMIT, NULL, NULL}, /* a digest of data */
    {"${env:HOOK}", NULL, NULL},
    {"https://example.org/${env:A_VERY_LONG_NAME_OF_A_VARIABLE_2}", NULL, NULL},
    {"https://${env:USER}:${env:PASS}@example.org/", NULL, NULL},
    {"https://me:${env:PASS}@example.org/", "before '@'", "before '@'"},
    {"https://example.org/x?token=${env:T}&b=${env:B}", NULL, NULL},
    {"https://example.org/x?token=${env:T:-abc}", "after '?'", NULL},
    {"https://example.org/${env:T:-a1b2c3d4e5f6a7b8c9d0}", "key in its path", NULL},
    {"https://example.org/${env:T", NULL, NULL},
};

static const char *say(const char *text)
{
    return text != NULL ? text : "nothing";
}

static void check(const char *url, dt_url_use use, const char *wanted)
{
    const char *got = dt_url_secret(url, use);

    if ((got == NULL) != (wanted == NULL) || (got != NULL && strstr(got, wanted) == NULL))
        fail_msg("%s: '%s' instead of '%s'", url, say(got), say(wanted));
}

static void test_what_looks_like_a_secret_is_named(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(cases[i].url, DT_URL_WEBHOOK, cases[i].webhook);
        check(cases[i].url, DT_URL_DATA, cases[i].data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_looks_like_a_secret_is_named)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
