/* data_show KIND FILE...: prints "vocab N", then the training tokens of a recipe with these
 * files, one a line. KIND: a value of data.tokens, "auto", "llmc", "nanogpt" or "int32". */
#include <stdio.h>
#include <string.h>

#include "engine/data/data_int.h"

static dt_tokens_kind kind_of(const char *name)
{
    if (strcmp(name, "llmc") == 0)
        return DT_TOKENS_LLMC;
    if (strcmp(name, "int32") == 0)
        return DT_TOKENS_INT32;
    return strcmp(name, "nanogpt") == 0 ? DT_TOKENS_NANOGPT : DT_TOKENS_AUTO;
}

int main(int argc, char **argv)
{
    dt_recipe recipe = {.batch.tokens = 4};
    dt_error err = DT_ERROR_INIT;
    dt_dataset *dataset = NULL;

    if (argc < 3)
        return 2;
    recipe.data.tokens = kind_of(argv[1]);
    recipe.data.train.items = (const char **)argv + 2;
    recipe.data.train.count = argc - 2;
    if (dt_dataset_open(&dataset, &recipe, NULL, &err) != DT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("vocab %lld\n", (long long)dt_tokenizer_vocab(dt_dataset_tokenizer(dataset)));
    for (int64_t i = 0; i < dt_dataset_train_tokens(dataset); i++) {
        int32_t token;

        dt_token_stream_read(&token, &dataset->train, i, 1);
        printf("%d\n", token);
    }
    dt_dataset_close(dataset);
    return 0;
}
