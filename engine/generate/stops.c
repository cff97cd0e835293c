#include "engine/generate/stops.h"

#include <string.h>

#include "base/utf8.h"

/* Length of the longest suffix of text that is a prefix of `stop`. */
static size_t overlap(const char *text, size_t length, const char *stop)
{
    size_t most = strlen(stop) - 1;

    for (size_t n = length < most ? length : most; n > 0; n--)
        if (memcmp(text + length - n, stop, n) == 0)
            return n;
    return 0;
}

/* Bytes of an incomplete UTF-8 character at the end of text. */
static size_t cut_character(const char *text, size_t length)
{
    static const unsigned char full[] = {0xc0, 2, 0xe0, 3, 0xf0, 4};

    for (size_t n = 1; n < DT_UTF8_MAX && n <= length; n++) {
        unsigned char c = (unsigned char)text[length - n];

        if ((c & 0xc0) == 0x80)
            continue;
        for (size_t i = 0; i < sizeof(full); i += 2)
            if (c >= full[i] && c < (i + 2 < sizeof(full) ? full[i + 2] : 0xf8))
                return full[i + 1] > n ? n : 0;
        return 0;
    }
    return 0;
}

bool dt_stops_find(size_t *until, dt_strbuf *text, size_t from, const dt_stops *stops)
{
    const char *first = NULL;
    size_t held = cut_character(text->data + from, text->length - from);

    for (size_t i = 0; i < stops->count; i++) {
        const char *found = memmem(text->data + from, text->length - from, stops->texts[i],
                                   strlen(stops->texts[i]));
        size_t begun = overlap(text->data + from, text->length - from, stops->texts[i]);

        if (found != NULL && (first == NULL || found < first))
            first = found;
        held = begun > held ? begun : held;
    }
    if (first != NULL) {
        text->length = (size_t)(first - text->data);
        text->data[text->length] = '\0';
        held = 0;
    }
    *until = text->length - held;
    return first != NULL;
}
