/* fuzz_tokenizer: any tokenizer file. It is refused with its name, or it encodes any text, with ids
 * below the size of its vocabulary.
 */
#include <stdint.h>
#include <string.h>

#include "engine/tokens/bpe.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char text[] =
    "The caf\xc3\xa9 isn't <|endoftext|> 12345\r\n\t  \xe2\x96\x81<mask>\xcc\x81"
    " \xef\xac\x81 e\xcc\x81 A\xcc\x8a\xcc\xa3 "
    "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab\xe4\xbd\xa0\xe5\xa5\xbd XMLfile's \xc4\xb0 \xc2\xbd"
    " \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80?!/\n  \x01x   "
    " aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

static void use(const dt_bpe *bpe)
{
    dt_error err = DT_ERROR_INIT;
    dt_bpe_encoder *encoder;
    dt_ids ids = {0};
    dt_strbuf back;

    dt_strbuf_init(&back);
    DT_ASSERT(dt_bpe_encoder_open(&encoder, bpe, &err) == DT_OK);
    if (dt_bpe_encode(&ids, encoder, text, sizeof(text) - 1, &err) == DT_OK)
        for (size_t i = 0; i < ids.count; i++) {
            DT_ASSERT(ids.items[i] >= 0 && ids.items[i] < dt_bpe_vocab(bpe));
            dt_bpe_decode(&back, bpe, ids.items[i]);
        }
    else
        DT_ASSERT(err.code == DT_ERR_USAGE);
    DT_ASSERT(dt_bpe_end_of_text(bpe) < dt_bpe_vocab(bpe));
    (void)dt_bpe_cut(bpe, text, sizeof(text) - 1, 3);
    dt_ids_release(&ids);
    dt_bpe_encoder_close(encoder);
    dt_strbuf_release(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char name[] =
        "gpt2.tiktoken"; /* a tokenizer.json is recognised by its first character */
    dt_error err = DT_ERROR_INIT;
    dt_bpe *bpe;

    if (dt_bpe_parse(&bpe, (const char *)bytes, size, name, &err) == DT_OK)
        use(bpe);
    else
        DT_ASSERT(err.code == DT_ERR_NOMEM || strstr(err.message, name) != NULL);
    dt_bpe_free(bpe);
    return 0;
}
