/* fuzz_json: what stands in for jansson (base/bare) refuses a text and says where, or takes it;
 * then what it writes reads back as the same value, in each form.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_form(const json_t *json, size_t flags)
{
    char *text = json_dumps(json, flags | JSON_ENCODE_ANY), *again;
    json_t *back = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);

    DT_ASSERT(json_equal(json, back));
    again = json_dumps(back, flags | JSON_ENCODE_ANY);
    DT_ASSERT(strcmp(text, again) == 0);
    free(again);
    free(text);
    json_decref(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    json_error_t error = {0};
    json_t *json = json_loadb((const char *)bytes, size, JSON_DECODE_ANY, &error), *copy;

    if (json == NULL) {
        DT_ASSERT(error.line > 0 && error.text[0] != '\0' && (size_t)error.position <= size);
        return 0;
    }
    check_form(json, JSON_COMPACT);
    check_form(json, JSON_INDENT(2));
    check_form(json, 0);
    copy = json_deep_copy(json);
    DT_ASSERT(json_equal(json, copy));
    json_decref(copy);
    json_decref(json);
    return 0;
}
