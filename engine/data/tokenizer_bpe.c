/* tokenizer_bpe: handles tokenizers that were trained by another program, and those of sentence
 * pairs, with the file that is stored in checkpoints. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/file.h"
#include "engine/data/tokenizer_int.h"

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

void dt_tokenizer_bpe_to_json(json_t *out, const dt_tokenizer *tokenizer)
{
    json_object_set_new(out, "file", json_string(tokenizer->file_name));
    json_object_set_new(out, "xxh3_128", json_string(tokenizer->digest));
}

dt_status dt_tokenizer_bpe_from_json(dt_tokenizer **out, const json_t *json, dt_tokenizer_kind kind,
                                     int64_t vocab, dt_error *err)
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

dt_status dt_tokenizer_bpe_encode(int32_t **tokens, int64_t *count, const dt_tokenizer *tokenizer,
                                  const char *text, size_t length, dt_error *err)
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
