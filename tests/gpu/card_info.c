/* card_info [cuda:N]: prints this card (default cuda:0) of this machine as one JSON object; exits
 * with 77 and one line with the reason if there is none. The scripts of this folder call it first.
 * */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/device/device_cuda.h"

static dt_status print_card(int index, dt_error *err)
{
    const dt_cuda_entry *entry;
    dt_cuda_card card;
    dt_strbuf text;
    json_t *object;
    int count;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_load(&entry, err));
    DT_TRY(entry->count(&count, err));
    if (index < 0 || index >= count)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "no card %d: this machine has %d", index, count);
    DT_TRY(entry->card(&card, index, err));
    object = json_pack("{s:s, s:I, s:I, s:i, s:s}", "name", card.name, "total_bytes",
                       (json_int_t)card.total_bytes, "free_bytes", (json_int_t)card.free_bytes,
                       "processors", card.processors, "library", DT_CUDA_LIBRARY);
    json_object_set_new(object, "capability", json_sprintf("%d.%d", card.major, card.minor));
    dt_strbuf_init(&text);
    dt_json_write(&text, object);
    printf("%s\n", text.data);
    dt_strbuf_release(&text);
    json_decref(object);
out:
    return st;
}

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;

    long index = 0;

    if (argc > 1) {
        char *end = argv[1];

        if (strncmp(argv[1], "cuda:", 5) == 0)
            index = strtol(argv[1] + 5, &end, 10);
        if (end == argv[1] || *end != '\0' || index < 0 || index > 1023) {
            fprintf(stderr, "card_info: '%s' is no device: expected cuda:0, cuda:1, ...\n",
                    argv[1]);
            return 2;
        }
    }
    if (print_card((int)index, &err) == DT_OK)
        return 0;
    printf("skipped: %s\n", err.message);
    return 77;
}
