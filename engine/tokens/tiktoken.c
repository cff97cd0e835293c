/* tiktoken: reads a tiktoken file, with lines such as "IQ== 0". Two tokens merge if their bytes together are a
 * third token, whose id is the rank of the merge.
 */
#include <string.h>

#include "engine/tokens/tokens_int.h"

typedef struct special {
    const char *text;
    int id;
} special;

/* Facts that the files do not contain. The ids of special tokens are those for a file with `tokens`
 * tokens. */
static const struct kind {
    const char *names[4]; /* names of files, without .tiktoken */
    int64_t tokens;
    dt_split_kind split;
    special specials[6];
} kinds[] = {
    {{"gpt2", "r50k_base"}, 50256, DT_SPLIT_GPT2, {{"<|endoftext|>", 50256}}},
    {{"p50k_base"}, 50280, DT_SPLIT_GPT2, {{"<|endoftext|>", 50256}}},
    {{"cl100k_base"},
     100256,
     DT_SPLIT_CL100K,
     {{"<|endoftext|>", 100257},
      {"<|fim_prefix|>", 100258},
      {"<|fim_middle|>", 100259},
      {"<|fim_suffix|>", 100260},
      {"<|endofprompt|>", 100276}}},
    {{"o200k_base"},
     199998,
     DT_SPLIT_O200K,
     {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
    {{"llama3"},
     128000,
     DT_SPLIT_LLAMA3,
     {{"<|begin_of_text|>", 128000},
      {"<|end_of_text|>", 128001},
      {"<|start_header_id|>", 128006},
      {"<|end_header_id|>", 128007},
      {"<|eot_id|>", 128009}}},
    {{"qwen"},
     151643,
     DT_SPLIT_QWEN,
     {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}}},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool has_name(const struct kind *kind, const char *file)
{
    const char *slash = strrchr(file, '/'), *name = slash != NULL ? slash + 1 : file;

    for (size_t i = 0; i < 4 && kind->names[i] != NULL; i++) {
        size_t length = strlen(kind->names[i]);

        if (strncmp(name, kind->names[i], length) == 0 &&
            (name[length] == '\0' || name[length] == '.'))
            return true;
    }
    return false;
}

static const struct kind *find_kind(const char *file, int64_t tokens)
{
    for (size_t i = 0; i < KINDS; i++)
        if (has_name(&kinds[i], file))
            return &kinds[i];
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].tokens == tokens)
            return &kinds[i];
    return NULL;
}

static bool read_number(int64_t *out, const char *text, size_t length)
{
    *out = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || *out > DT_VOCAB_MAX)
            return false;
        *out = *out * 10 + (text[i] - '0');
    }
    return length > 0;
}

static dt_status add_line(dt_bpe *bpe, const char *line, size_t length, int64_t number,
                          dt_strbuf *bytes, dt_error *err)
{
    const char *space = memchr(line, ' ', length);
    dt_status st = DT_OK;
    int64_t id;

    dt_strbuf_reset(bytes);
    if (space == NULL || !dt_base64_decode(bytes, line, (size_t)(space - line)) ||
        !read_number(&id, space + 1, length - (size_t)(space + 1 - line)))
        DT_THROW(err, DT_ERR_CORRUPT,
                 "line %lld: expected a token in base64 and its number: this is neither a "
                 "tokenizer.json nor a tiktoken file",
                 (long long)number);
    DT_TRY(dt_vocab_add(&bpe->vocab, id, bytes->data, bytes->length, true, err));
out:
    return st;
}

static dt_status read_lines(int64_t *count, dt_bpe *bpe, const char *text, size_t length,
                            dt_error *err)
{
    const char *end = text + length, *next;
    dt_status st = DT_OK;
    dt_strbuf bytes;

    *count = 0;
    dt_strbuf_init(&bytes);
    for (const char *line = text; line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));

        next = stop != NULL ? stop + 1 : end;
        stop = stop != NULL ? stop : end;
        if (stop > line && stop[-1] == '\r')
            stop--;
        if (stop > line)
            DT_TRY(add_line(bpe, line, (size_t)(stop - line), ++*count, &bytes, err));
    }
out:
    dt_strbuf_release(&bytes);
    return st;
}

/* Adds a merge for every way to cut a token into two other tokens. */
static dt_status add_merges(dt_bpe *bpe, dt_error *err)
{
    dt_status st = DT_OK;
    size_t length;

    for (int64_t id = 0; id < bpe->vocab.size; id++) {
        const char *text = dt_vocab_text(&bpe->vocab, id, &length);

        for (size_t cut = 1; text != NULL && cut < length; cut++) {
            int32_t left = dt_vocab_find(&bpe->vocab, text, cut);
            int32_t right = left >= 0 ? dt_vocab_find(&bpe->vocab, text + cut, length - cut) : -1;

            if (right >= 0)
                DT_TRY(dt_pairs_put(&bpe->merges, left, right, (uint32_t)id, (int32_t)id, err));
        }
    }
out:
    return st;
}

/* Adds the special tokens. In a file with another number of tokens, their ids are shifted to follow
 * the last token at the same distance. */
static dt_status add_specials(dt_bpe *bpe, const struct kind *kind, int64_t tokens, dt_error *err)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < 6 && kind->specials[i].text != NULL; i++) {
        const char *text = kind->specials[i].text;
        int64_t id = kind->specials[i].id;
        dt_added_token token = {0};

        if (tokens != kind->tokens && id >= kind->tokens)
            id += tokens - kind->tokens;
        token.id = (int32_t)id;
        DT_TRY(dt_vocab_add(&bpe->vocab, id, text, strlen(text), false, err));
        DT_TRY(dt_added_put(&bpe->raw, text, strlen(text), &token, err));
        dt_bpe_note_added(bpe, text, token.id, true);
        if (strcmp(text, "<|endoftext|>") == 0 || strcmp(text, "<|end_of_text|>") == 0)
            bpe->end_of_text = token.id;
    }
out:
    return st;
}

dt_status dt_bpe_read_tiktoken(dt_bpe *bpe, const char *text, size_t length, const char *name,
                               dt_error *err)
{
    const struct kind *kind;
    dt_status st = DT_OK;
    int64_t tokens;

    DT_TRY(read_lines(&tokens, bpe, text, length, err));
    kind = find_kind(name, tokens);
    if (kind == NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "cannot tell from the name of the tiktoken file or its %lld tokens how text is "
                 "split: expected a file gpt2, r50k_base, p50k_base, cl100k_base, "
                 "o200k_base, llama3 or qwen",
                 (long long)tokens);
    bpe->byte_level = bpe->ignore_merges = true;
    DT_TRY(dt_split_add_kind(&bpe->split, kind->split, err));
    for (int byte = 0; byte < 256; byte++)
        bpe->bytes[byte] = dt_vocab_find(&bpe->vocab, &(char){(char)byte}, 1);
    DT_TRY(add_merges(bpe, err));
    DT_TRY(add_specials(bpe, kind, tokens, err));
out:
    return st;
}
