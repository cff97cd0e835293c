/* fuzz_words: any dictionary or codes. Each is refused with its name, or it turns words into pieces
 * and ids, each below its size.
 */
#include <stdint.h>
#include <string.h>

#include "engine/tokens/fairseq.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char name[] = "words.txt";
static const char text[] = "The caf\xc3\xa9  h\xc3\xa4user\xc2\xa0\x1f 12345 <unk> aaaaaaaaaaa"
                           " schiffe\xe6\x97\xa5\xe6\x9c\xac \t</w> a@@ b";

static void check(dt_status st, const dt_error *err)
{
    DT_ASSERT(st == DT_ERR_NOMEM || (st == DT_ERR_CORRUPT && strstr(err->message, name) != NULL));
}

static void use_dictionary(const dt_dictionary *dictionary, const char *line, size_t length)
{
    dt_ids ids = {0};
    dt_strbuf back;

    dt_strbuf_init(&back);
    DT_ASSERT(dt_dictionary_encode(&ids, dictionary, line, length, NULL) == DT_OK);
    for (size_t i = 0; i < ids.count; i++) {
        DT_ASSERT(ids.items[i] >= 0 && ids.items[i] < dt_dictionary_size(dictionary));
        dt_dictionary_decode(&back, dictionary, ids.items[i]);
    }
    dt_ids_release(&ids);
    dt_strbuf_release(&back);
}

/* Without spaces and marks the pieces are the input text. */
static void use_codes(const dt_codes *codes)
{
    dt_strbuf out;
    size_t at = 0;

    dt_strbuf_init(&out);
    DT_ASSERT(dt_codes_apply(&out, codes, text, sizeof(text) - 1, NULL) == DT_OK);
    for (size_t i = 0; i < out.length; i++) {
        while (at < sizeof(text) - 1 && text[at] == ' ')
            at++;
        if (out.data[i] == ' ')
            continue;
        if (at < sizeof(text) - 1 && out.data[i] == text[at])
            at++;
        else
            DT_ASSERT(out.data[i] == '@');
    }
    DT_ASSERT(at == sizeof(text) - 1);
    dt_strbuf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    dt_error err = DT_ERROR_INIT, other = DT_ERROR_INIT;
    dt_dictionary dictionary;
    dt_codes codes;
    dt_status st = dt_dictionary_parse(&dictionary, (const char *)bytes, size, name, &err);

    if (st == DT_OK)
        use_dictionary(&dictionary, text, sizeof(text) - 1);
    else
        check(st, &err);
    dt_dictionary_release(&dictionary);
    st = dt_codes_parse(&codes, (const char *)bytes, size, name, &other);
    if (st == DT_OK)
        use_codes(&codes);
    else
        check(st, &other);
    dt_codes_release(&codes);
    return 0;
}
