/* tokenizer: the tokenizer of a dataset: characters, bytes, ids, or one with a file of its own. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/file.h"
#include "engine/data/data_int.h"
#include "recipes/fields/values.h"

/* --- the characters of a text */

void dt_char_set_add(dt_char_set *set, uint32_t code)
{
    set->bits[code / 64] |= (uint64_t)1 << (code % 64);
}

static int64_t char_set_count(const dt_char_set *set)
{
    int64_t count = 0;

    for (size_t i = 0; i < sizeof(set->bits) / sizeof(set->bits[0]); i++)
        for (uint64_t left = set->bits[i]; left != 0; left &= left - 1)
            count++;
    return count;
}

/* List the code points, ascending; `out` has dt_char_set_count elements. */
static void char_set_list(uint32_t *out, const dt_char_set *set)
{
    for (uint32_t code = 0; code < DT_UTF8_CODES; code++)
        if (set->bits[code / 64] >> (code % 64) & 1)
            *out++ = code;
}

/* --- all kinds */

static const char *const kind_names[] = {
    [DT_TOKENIZER_CHAR] = "char", [DT_TOKENIZER_BYTE] = "byte", [DT_TOKENIZER_IDS] = "ids",
    [DT_TOKENIZER_ROWS] = "rows", [DT_TOKENIZER_BPE] = "bpe",   [DT_TOKENIZER_PAIRS] = "pairs"};

#define KINDS (sizeof(kind_names) / sizeof(kind_names[0]))

const char *dt_tokenizer_kind_name(dt_tokenizer_kind kind)
{
    return kind_names[kind];
}

dt_status dt_tokenizer_make(dt_tokenizer **out, dt_tokenizer_kind kind, int64_t vocab,
                            bool characters, dt_error *err)
{
    dt_tokenizer *made = calloc(1, sizeof(*made));

    *out = NULL;
    if (made != NULL && characters)
        made->characters = calloc((size_t)vocab, sizeof(*made->characters));
    if (made == NULL || (characters && made->characters == NULL)) {
        free(made);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a vocabulary of %lld", (long long)vocab);
    }
    dt_strbuf_init(&made->file);
    made->kind = kind;
    made->vocab = vocab;
    *out = made;
    return DT_OK;
}

static void index_ascii(dt_tokenizer *tokenizer)
{
    for (int code = 0; code < 128; code++)
        tokenizer->ascii[code] = -1;
    for (int64_t i = 0; i < tokenizer->vocab && tokenizer->characters[i] < 128; i++)
        tokenizer->ascii[tokenizer->characters[i]] = (int32_t)i;
}

dt_status dt_tokenizer_new_char(dt_tokenizer **out, const dt_char_set *set, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t count = char_set_count(set);

    DT_ASSERT(count > 0);
    DT_TRY(dt_tokenizer_make(out, DT_TOKENIZER_CHAR, count, true, err));
    char_set_list((*out)->characters, set);
    index_ascii(*out);
out:
    return st;
}

dt_status dt_tokenizer_new_byte(dt_tokenizer **out, dt_error *err)
{
    return dt_tokenizer_make(out, DT_TOKENIZER_BYTE, 256, false, err);
}

dt_status dt_tokenizer_new_ids(dt_tokenizer **out, int64_t vocab, dt_error *err)
{
    DT_ASSERT(vocab > 0 && vocab <= INT32_MAX);
    return dt_tokenizer_make(out, DT_TOKENIZER_IDS, vocab, false, err);
}

dt_status dt_tokenizer_new_rows(dt_tokenizer **out, dt_error *err)
{
    return dt_tokenizer_make(out, DT_TOKENIZER_ROWS, 1, false, err);
}

dt_status dt_tokenizer_copy(dt_tokenizer **out, const dt_tokenizer *from, dt_error *err)
{
    dt_status st = DT_OK;
    bool characters = from->characters != NULL;

    DT_TRY(dt_tokenizer_make(out, from->kind, from->vocab, characters, err));
    if (characters) {
        memcpy((*out)->characters, from->characters,
               (size_t)from->vocab * sizeof(*from->characters));
        index_ascii(*out);
    }
out:
    return st;
}

void dt_tokenizer_free(dt_tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    dt_bpe_free(tokenizer->bpe);
    dt_sides_free(tokenizer->sides);
    dt_strbuf_release(&tokenizer->file);
    free(tokenizer->characters);
    free(tokenizer);
}

int64_t dt_tokenizer_vocab(const dt_tokenizer *tokenizer)
{
    return tokenizer->vocab;
}

int32_t dt_tokenizer_find(const dt_tokenizer *tokenizer, uint32_t code)
{
    int64_t low = 0, high = tokenizer->vocab - 1;

    if (code < 128)
        return tokenizer->ascii[code];
    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (tokenizer->characters[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return tokenizer->characters[low] == code ? (int32_t)low : -1;
}

static void tokenizer_bpe_to_json(json_t *out, const dt_tokenizer *tokenizer);

json_t *dt_tokenizer_to_json(const dt_tokenizer *tokenizer)
{
    json_t *out = json_pack("{s:s, s:I}", "kind", dt_tokenizer_kind_name(tokenizer->kind), "vocab",
                            (json_int_t)tokenizer->vocab);
    dt_strbuf text;

    if (dt_tokenizer_has_file(tokenizer))
        tokenizer_bpe_to_json(out, tokenizer);
    if (tokenizer->kind != DT_TOKENIZER_CHAR)
        return out;
    dt_strbuf_init(&text);
    for (int64_t i = 0; i < tokenizer->vocab; i++)
        dt_tokenizer_decode(&text, tokenizer, (int32_t)i);
    json_object_set_new(out, "characters", json_stringn(text.data, text.length));
    dt_strbuf_release(&text);
    return out;
}

/* Parse the characters of the JSON form: valid UTF-8 (checked by the parser), ascending, each once. */
static dt_status char_from_json(dt_tokenizer **out, const json_t *json, int64_t vocab,
                                dt_error *err)
{
    dt_status st = DT_OK;
    const char *text;
    dt_char_set *set = NULL;
    size_t length, used;
    int64_t last = -1;

    DT_TRY(dt_json_get_string(&text, json, "characters", "tokenizer", err));
    length = json_string_length(json_object_get(json, "characters"));
    set = calloc(1, sizeof(*set));
    if (set == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a vocabulary");
    for (size_t at = 0; at < length; at += used) {
        uint32_t code = 0;

        used = dt_utf8_decode(&code, (const unsigned char *)text + at, length - at);
        if (used == 0 || (int64_t)code <= last)
            DT_THROW(err, DT_ERR_CORRUPT,
                     "tokenizer: 'characters': byte %zu is broken or out of order", at);
        last = code;
        dt_char_set_add(set, code);
    }
    if (length == 0 || char_set_count(set) != vocab)
        DT_THROW(err, DT_ERR_CORRUPT, "tokenizer: 'characters' holds %lld, and 'vocab' says %lld",
                 (long long)char_set_count(set), (long long)vocab);
    DT_TRY(dt_tokenizer_new_char(out, set, err));
out:
    free(set);
    return st;
}

static dt_status tokenizer_bpe_from_json(dt_tokenizer **out, const json_t *json,
                                         dt_tokenizer_kind kind, int64_t vocab, dt_error *err);

dt_status dt_tokenizer_from_json(dt_tokenizer **out, const json_t *json, dt_error *err)
{
    dt_status st = DT_OK;
    const char *kind;
    int64_t vocab;
    size_t k = 0;

    *out = NULL;
    DT_TRY(dt_json_get_string(&kind, json, "kind", "tokenizer", err));
    DT_TRY(dt_json_get_int(&vocab, json, "vocab", "tokenizer", err));
    if (vocab <= 0 || vocab > INT32_MAX)
        DT_THROW(err, DT_ERR_CORRUPT, "tokenizer: 'vocab' is %lld; expected 1 to %d",
                 (long long)vocab, INT32_MAX);
    while (k < KINDS && strcmp(kind, kind_names[k]) != 0)
        k++;
    if (k == DT_TOKENIZER_CHAR)
        DT_TRY(char_from_json(out, json, vocab, err));
    else if (k == DT_TOKENIZER_BYTE && vocab == 256)
        DT_TRY(dt_tokenizer_new_byte(out, err));
    else if (k == DT_TOKENIZER_IDS)
        DT_TRY(dt_tokenizer_new_ids(out, vocab, err));
    else if (k == DT_TOKENIZER_ROWS)
        DT_TRY(dt_tokenizer_new_rows(out, err));
    else if (k == DT_TOKENIZER_BPE || k == DT_TOKENIZER_PAIRS)
        DT_TRY(tokenizer_bpe_from_json(out, json, (dt_tokenizer_kind)k, vocab, err));
    else
        DT_THROW(err, DT_ERR_CORRUPT, "tokenizer: unsupported kind '%s' with a vocabulary of %lld",
                 kind, (long long)vocab);
out:
    return st;
}

static dt_status encode_chars(int32_t *tokens, int64_t *count, const dt_tokenizer *tokenizer,
                              const unsigned char *text, size_t length, dt_error *err)
{
    size_t used;

    for (size_t at = 0; at < length; at += used) {
        uint32_t code = 0;

        used = dt_utf8_decode(&code, text + at, length - at);
        if (used == 0)
            return DT_FAIL(err, DT_ERR_USAGE, "byte %zu of the text is not UTF-8 (0x%02x)", at,
                           text[at]);
        tokens[*count] = dt_tokenizer_find(tokenizer, code);
        if (tokens[(*count)++] < 0)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "the character '%.*s' (U+%04X) is not in the vocabulary: the model was "
                           "trained on text without it; leave it out",
                           (int)used, (const char *)text + at, code);
    }
    return DT_OK;
}

/* Parse ids written as numbers, "12 7 400". */
static dt_status encode_ids(int32_t *tokens, int64_t *count, const dt_tokenizer *tokenizer,
                            const char *text, dt_error *err)
{
    for (const char *at = text; *at != '\0';) {
        char *end;
        long long value;

        if (isspace((unsigned char)*at)) {
            at++;
            continue;
        }
        errno = 0;
        value = strtoll(at, &end, 10);
        if (end == at || errno != 0 || value < 0 || value >= tokenizer->vocab ||
            (*end != '\0' && !isspace((unsigned char)*end)))
            return DT_FAIL(err, DT_ERR_USAGE,
                           "'%.20s' is not a list of tokens: this model was trained on token ids; "
                           "give numbers from 0 to %lld with spaces between them",
                           at, (long long)tokenizer->vocab - 1);
        tokens[(*count)++] = (int32_t)value;
        at = end;
    }
    return DT_OK;
}

static dt_status tokenizer_bpe_encode(int32_t **tokens, int64_t *count,
                                      const dt_tokenizer *tokenizer, const char *text,
                                      size_t length, dt_error *err);

dt_status dt_tokenizer_encode(int32_t **tokens, int64_t *count, const dt_tokenizer *tokenizer,
                              const char *text, size_t length, dt_error *err)
{
    dt_status st = DT_OK;
    int32_t *made;
    dt_strbuf copy;

    *tokens = NULL;
    *count = 0;
    if (dt_tokenizer_has_file(tokenizer))
        return tokenizer_bpe_encode(tokens, count, tokenizer, text, length, err);
    made = calloc(length + 1, sizeof(*made)); /* these kinds make at most one token per byte */
    dt_strbuf_init(&copy);
    if (made == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %zu bytes of text", length);
    switch (tokenizer->kind) {
    case DT_TOKENIZER_CHAR:
        DT_TRY(encode_chars(made, count, tokenizer, (const unsigned char *)text, length, err));
        break;
    case DT_TOKENIZER_BYTE:
        for (size_t i = 0; i < length; i++)
            made[(*count)++] = (unsigned char)text[i];
        break;
    case DT_TOKENIZER_IDS:
        dt_strbuf_add(&copy, text, length); /* strtoll needs a terminated string */
        DT_TRY(encode_ids(made, count, tokenizer, copy.data, err));
        break;
    case DT_TOKENIZER_ROWS:
        DT_THROW(err, DT_ERR_USAGE,
                 "the model was trained on rows of numbers and cannot read text");
    case DT_TOKENIZER_BPE: /* handled above */
    case DT_TOKENIZER_PAIRS:
        break;
    }
    *tokens = made;
    made = NULL;
out:
    free(made);
    dt_strbuf_release(&copy);
    return st;
}

void dt_tokenizer_decode(dt_strbuf *out, const dt_tokenizer *tokenizer, int32_t token)
{
    char bytes[DT_UTF8_MAX];

    if (tokenizer->kind == DT_TOKENIZER_IDS || tokenizer->kind == DT_TOKENIZER_ROWS)
        dt_strbuf_add_fmt(out, "%d ", token);
    else if (tokenizer->kind == DT_TOKENIZER_BPE)
        dt_bpe_decode(out, tokenizer->bpe, token);
    else if (tokenizer->kind == DT_TOKENIZER_PAIRS)
        dt_side_decode(out, tokenizer->sides->target, token);
    else if (token < 0 ||
             token >= tokenizer->vocab) /* model.vocab can exceed the tokenizer's vocabulary */
        dt_strbuf_add_str(out, "\xef\xbf\xbd"); /* U+FFFD */
    else if (tokenizer->kind == DT_TOKENIZER_BYTE)
        dt_strbuf_add_char(out, (char)token);
    else
        dt_strbuf_add(out, bytes, dt_utf8_encode(bytes, tokenizer->characters[token]));
}

/* --- kinds with a file: tokenizers that another program trained, and those of sentence pairs. The file is
 * stored in checkpoints */

static void digest(char *hex, const char *bytes, size_t length)
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, length));
    for (size_t i = 0; i < sizeof(canonical.digest); i++)
        snprintf(hex + 2 * i, 3, "%02x", canonical.digest[i]);
}

/* A tiktoken file keeps its name, which determines how it splits text. */
static void name_file(dt_tokenizer *out, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    size_t length = strcspn(name, ".");

    if (out->file.length > 0 && strchr("{ \t\r\n", out->file.data[0]) != NULL)
        snprintf(out->file_name, sizeof(out->file_name), "tokenizer.json");
    else
        snprintf(out->file_name, sizeof(out->file_name), "%.*s.tiktoken",
                 (int)(length < 40 ? length : 40), name);
}

static dt_status parse(dt_tokenizer *out, const char *path, dt_error *err)
{
    if (out->kind == DT_TOKENIZER_PAIRS)
        return dt_sides_parse(&out->sides, out->file.data, out->file.length, path, err);
    if (out->file.length > DT_BPE_MAX_BYTES)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "'%s' has %zu bytes; a tokenizer file can have at most %zu", path,
                       out->file.length, (size_t)DT_BPE_MAX_BYTES);
    return dt_bpe_parse(&out->bpe, out->file.data, out->file.length, path, err);
}

static int64_t parsed_vocab(const dt_tokenizer *tokenizer)
{
    return tokenizer->kind == DT_TOKENIZER_PAIRS ? tokenizer->sides->target->vocab
                                                 : dt_bpe_vocab(tokenizer->bpe);
}

static dt_status read_file(dt_tokenizer *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_file_read(&out->file, path, DT_SIDES_MAX_BYTES, err));
    DT_TRY(parse(out, path, err));
    digest(out->digest, out->file.data, out->file.length);
out:
    return st;
}

/* Reads the other files of the folder that contains tokenizer.json. */
static dt_status read_folder(dt_tokenizer *out, const char *file, dt_error *err)
{
    const char *slash = strrchr(file, '/');
    dt_strbuf folder;
    dt_status st;

    if (strcmp(slash != NULL ? slash + 1 : file, "tokenizer.json") != 0)
        return DT_OK;
    dt_strbuf_init(&folder);
    dt_strbuf_add(&folder, slash != NULL ? file : ".", slash != NULL ? (size_t)(slash - file) : 1);
    st = dt_bpe_read_folder(out->bpe, folder.data, err);
    dt_strbuf_release(&folder);
    return st;
}

dt_status dt_tokenizer_read(dt_tokenizer **out, const dt_recipe *recipe, dt_error *err)
{
    const char *path = recipe->data.tokenizer;
    dt_status st = DT_OK;
    dt_tokenizer *made = NULL;
    dt_strbuf file;
    struct stat info;

    *out = NULL;
    dt_strbuf_init(&file);
    dt_strbuf_add_str(&file, path);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        dt_strbuf_add_str(&file, "/tokenizer.json");
    DT_TRY(dt_tokenizer_make(&made, DT_TOKENIZER_BPE, 1, false, err));
    st = stat(file.data, &info) != 0 && errno == ENOENT
             ? DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' does not exist, and dtrun does not download tokenizers: give the path "
                       "of a tokenizer.json or of its folder",
                       file.data)
             : read_file(made, file.data, err);
    if (st == DT_OK)
        st = read_folder(made, file.data, err);
    if (st != DT_OK && st != DT_ERR_NOMEM && err != NULL)
        st = err->code = DT_ERR_RECIPE;
    if (st != DT_OK) {
        dt_error_prefix(err, "data.tokenizer");
        goto out;
    }
    (void)dt_tokenizer_set_end_of_text(made, recipe);
    made->vocab = dt_bpe_vocab(made->bpe);
    name_file(made, file.data);
    *out = made;
    made = NULL;
out:
    dt_tokenizer_free(made);
    dt_strbuf_release(&file);
    return st;
}

dt_status dt_tokenizer_pairs_read(dt_tokenizer **out, const char *path, dt_error *err)
{
    dt_tokenizer *made = NULL;
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(dt_tokenizer_make(&made, DT_TOKENIZER_PAIRS, 1, false, err));
    DT_TRY(read_file(made, path, err));
    made->vocab = parsed_vocab(made);
    snprintf(made->file_name, sizeof(made->file_name), DT_SIDES_FILE);
    *out = made;
    made = NULL;
out:
    dt_tokenizer_free(made);
    return st;
}

dt_status dt_tokenizer_pairs_take(dt_tokenizer **out, const char *bytes, size_t length,
                                  const char *name, dt_error *err)
{
    dt_tokenizer *made = NULL;
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(dt_tokenizer_make(&made, DT_TOKENIZER_PAIRS, 1, false, err));
    dt_strbuf_add(&made->file, bytes, length);
    DT_TRY(parse(made, name, err));
    digest(made->digest, made->file.data, made->file.length);
    made->vocab = parsed_vocab(made);
    snprintf(made->file_name, sizeof(made->file_name), DT_SIDES_FILE);
    *out = made;
    made = NULL;
out:
    dt_tokenizer_free(made);
    return st;
}

/* --- kinds with a file: their parts of the functions of data.h */
static void tokenizer_bpe_to_json(json_t *out, const dt_tokenizer *tokenizer)
{
    json_object_set_new(out, "file", json_string(tokenizer->file_name));
    json_object_set_new(out, "xxh3_128", json_string(tokenizer->digest));
}

static dt_status tokenizer_bpe_from_json(dt_tokenizer **out, const json_t *json,
                                         dt_tokenizer_kind kind, int64_t vocab, dt_error *err)
{
    dt_status st = DT_OK;
    const char *name, *hex;

    DT_TRY(dt_json_get_string(&name, json, "file", "tokenizer", err));
    DT_TRY(dt_json_get_string(&hex, json, "xxh3_128", "tokenizer", err));
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL ||
        strlen(name) >= sizeof((*out)->file_name) || strlen(hex) != sizeof((*out)->digest) - 1)
        DT_THROW(err, DT_ERR_CORRUPT, "tokenizer: 'file' or its digest is malformed");
    DT_TRY(dt_tokenizer_make(out, kind, vocab, false, err));
    snprintf((*out)->file_name, sizeof((*out)->file_name), "%s", name);
    snprintf((*out)->digest, sizeof((*out)->digest), "%s", hex);
out:
    return st;
}

dt_status dt_tokenizer_load(dt_tokenizer *tokenizer, const char *folder, dt_error *err)
{
    char wanted[sizeof(tokenizer->digest)];
    dt_status st = DT_OK;
    dt_strbuf path;

    if (!dt_tokenizer_has_file(tokenizer) || tokenizer->bpe != NULL || tokenizer->sides != NULL)
        return DT_OK;
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", folder, tokenizer->file_name);
    memcpy(wanted, tokenizer->digest, sizeof(wanted));
    DT_TRY(read_file(tokenizer, path.data, err));
    if (strcmp(wanted, tokenizer->digest) != 0 || parsed_vocab(tokenizer) != tokenizer->vocab)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' is not the file that the checkpoint was saved with",
                 path.data);
out:
    dt_strbuf_release(&path);
    return st;
}

const dt_sides *dt_tokenizer_sides(const dt_tokenizer *tokenizer)
{
    return tokenizer->sides;
}

const dt_bpe *dt_tokenizer_bpe(const dt_tokenizer *tokenizer)
{
    return tokenizer->bpe;
}

dt_bpe_around dt_tokenizer_around(const dt_tokenizer *tokenizer)
{
    return tokenizer->bpe != NULL ? dt_bpe_get_around(tokenizer->bpe) : (dt_bpe_around){0};
}

bool dt_tokenizer_set_end_of_text(dt_tokenizer *tokenizer, const dt_recipe *recipe)
{
    return tokenizer->kind != DT_TOKENIZER_BPE || recipe->data.end_of_text < 0 ||
           dt_bpe_set_end_of_text(tokenizer->bpe, recipe->data.end_of_text);
}

int32_t dt_tokenizer_end_of_text(const dt_tokenizer *tokenizer)
{
    return tokenizer->bpe != NULL ? dt_bpe_end_of_text(tokenizer->bpe) : -1;
}

bool dt_tokenizer_get_file(const dt_tokenizer *tokenizer, const char **name, const char **bytes,
                           size_t *length)
{
    *name = tokenizer->file_name;
    *bytes = tokenizer->file.data;
    *length = tokenizer->file.length;
    return dt_tokenizer_has_file(tokenizer);
}

dt_status dt_tokenizer_bpe_same(const dt_tokenizer *checkpoint, const dt_tokenizer *recipe,
                                dt_error *err)
{
    if (strcmp(checkpoint->digest, recipe->digest) != 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the checkpoint was trained with another tokenizer (%lld tokens) than the "
                       "recipe's (%lld): resume with the checkpoint's own, '%s'",
                       (long long)checkpoint->vocab, (long long)recipe->vocab,
                       checkpoint->file_name);
    return DT_OK;
}

static dt_status tokenizer_bpe_encode(int32_t **tokens, int64_t *count,
                                      const dt_tokenizer *tokenizer, const char *text,
                                      size_t length, dt_error *err)
{
    dt_side_encoder source = {0};
    dt_bpe_encoder *encoder = NULL;
    dt_status st = DT_OK;
    dt_ids ids = {0};

    if (tokenizer->kind == DT_TOKENIZER_PAIRS) {
        DT_TRY(dt_side_encoder_open(&source, tokenizer->sides->source, err));
        DT_TRY(dt_side_encode(&ids, &source, text, length, err));
    } else {
        DT_TRY(dt_bpe_encoder_open(&encoder, tokenizer->bpe, err));
        DT_TRY(dt_bpe_encode(&ids, encoder, text, length, err));
    }
    *count = (int64_t)ids.count;
    *tokens = ids.items;
    ids = (dt_ids){0};
    if (*tokens == NULL)
        *tokens = calloc(1, sizeof(**tokens));
out:
    dt_ids_release(&ids);
    dt_side_encoder_close(&source);
    dt_bpe_encoder_close(encoder);
    return st;
}

/* --- the tokens that begin and end texts */

dt_status dt_tokenizer_ends(dt_ids *out, const dt_tokenizer *tokenizer, const dt_recipe *recipe,
                            dt_error *err)
{
    const dt_string_list *ids = &recipe->model.end_ids;
    int32_t end = dt_tokenizer_end_of_text(tokenizer);
    dt_status st = DT_OK;

    for (int64_t i = 0; i < ids->count && st == DT_OK; i++) {
        double id = -1; /* dt_rule_end_ids has validated the number */

        dt_text_number(&id, ids->items[i]);
        st = dt_ids_add(out, (int32_t)id, err);
    }
    if (ids->count == 0 && end >= 0)
        st = dt_ids_add(out, end, err);
    return st;
}

dt_status dt_tokenizer_first_tokens(int32_t **out, int64_t *count, const dt_tokenizer *tokenizer,
                                    dt_error *err)
{
    dt_bpe_around around = dt_tokenizer_around(tokenizer);
    int32_t end = dt_tokenizer_end_of_text(tokenizer);

    *out = NULL;
    *count = 0;
    if (around.before_count > 0) {
        *out = calloc(around.before_count, sizeof(**out));
        if (*out == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a prompt");
        memcpy(*out, around.before, around.before_count * sizeof(**out));
        *count = (int64_t)around.before_count;
        return DT_OK;
    }
    if (end < 0 && dt_tokenizer_encode(out, count, tokenizer, "\n", 1, NULL) == DT_OK && *count > 0)
        return DT_OK;
    free(*out);
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a prompt");
    **out = end >= 0 ? end : 0;
    *count = 1;
    return DT_OK;
}
