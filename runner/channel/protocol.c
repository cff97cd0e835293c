/* protocol: signs and checks a line of a journal (runner/PROTOCOL.md, "Journal"). */
#include "runner/channel/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char sum_key[] = ",\"sum\":\"", sequence_key[] = "\"sequence\":";
enum { SUM_DIGITS = 8, SUM_TAIL = sizeof(sum_key) - 1 + SUM_DIGITS + 2 }; /* ,"sum":"01234567"} */

/* FNV-1a. Each step is a bijection, so a single changed byte is always detected. */
static uint32_t sum_of(const char *bytes, size_t length)
{
    uint32_t sum = 2166136261u;

    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 16777619u;
    return sum;
}

void dt_journal_line_sign(dt_strbuf *text, size_t from)
{
    uint32_t sum;

    DT_ASSERT(text->length > from + 1 && text->data[text->length - 1] == '}');
    text->data[--text->length] = '\0';
    sum = sum_of(text->data + from, text->length - from);
    dt_strbuf_add_fmt(text, "%s%08x\"}", sum_key, sum);
}

static bool sum_is_good(const char *line, size_t length)
{
    char want[SUM_TAIL + 1];

    if (length <= SUM_TAIL)
        return false;
    snprintf(want, sizeof(want), "%s%08x\"}", sum_key, sum_of(line, length - SUM_TAIL));
    return memcmp(line + length - SUM_TAIL, want, SUM_TAIL) == 0;
}

/* Finds the last key of that name: text of a rank may contain it before. */
static int64_t find_sequence(const char *line, size_t length)
{
    const char *at = NULL, *next = line, *end = line + length;

    while ((next = memmem(next, (size_t)(end - next), sequence_key, sizeof(sequence_key) - 1)) !=
           NULL)
        at = next++;
    return at != NULL && at[sizeof(sequence_key) - 1] >= '0' && at[sizeof(sequence_key) - 1] <= '9'
               ? strtoll(at + sizeof(sequence_key) - 1, NULL, 10)
               : -1;
}

int64_t dt_journal_line_sequence(const char *line, size_t length)
{
    return sum_is_good(line, length) ? find_sequence(line, length - SUM_TAIL) : -1;
}
